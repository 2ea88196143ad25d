// The words after a verb, turned into fields. A thin layer over CLI11, so that help pages and
// messages look the same everywhere and only one source compiles that library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mercer/core/types.hpp"

namespace mercer::cli {

class Arguments {
 public:
  /// `example` are the lines shown first by --help; `summary` says what the verb does.
  Arguments(const std::string& verb, const std::string& example, const std::string& summary);
  ~Arguments();

  void positional(const std::string& name, std::string& value, const std::string& help);

  /// Options that follow are listed under this title.
  void group(const std::string& title);
  void flag(const std::string& names, bool& value, const std::string& help);
  // `what` stands for the value in the help page; the present value is shown as the default.
  void option(const std::string& names, const std::string& what, std::string& value,
              const std::string& help);
  void option(const std::string& names, const std::string& what, double& value,
              const std::string& help);
  void option(const std::string& names, const std::string& what, int& value,
              const std::string& help);
  void option(const std::string& names, const std::string& what, std::uint64_t& value,
              const std::string& help);
  void option(const std::string& names, const std::string& what, std::optional<double>& value,
              const std::string& help);
  void option(const std::string& names, const std::string& what, std::optional<Index>& value,
              const std::string& help);
  void option(const std::string& names, const std::string& what, std::optional<int>& value,
              const std::string& help);
  void option(const std::string& names, const std::string& what,
              std::optional<std::uint64_t>& value, const std::string& help);
  /// An amount of memory: 8G, 500M.
  void bytes(const std::string& names, std::optional<std::uint64_t>& value,
             const std::string& help);
  /// a,b,c and repetitions of the option.
  void list(const std::string& names, const std::string& what, std::vector<std::string>& values,
            const std::string& help);
  void list(const std::string& names, const std::string& what, std::vector<double>& values,
            const std::string& help);

  /// Lines of text after the options: lists of choices.
  void appendix(const std::string& title, const std::string& text);

  /// Fills the fields; false when --help was asked for and printed. Throws InvalidArgument.
  bool parse(const std::vector<std::string>& words);
  /// Whether this option ("--steps") was among the words.
  bool given(const std::string& name) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mercer::cli
