// The words after a verb, turned into fields. A thin layer over CLI11, so that help pages and
// messages look the same everywhere and only one source compiles that library. Options come from
// the lists of fields beside the algorithms (mercer/core/options.hpp):
//
//   arguments.group("Method");
//   arguments.add(options.method, without({"mean"}));
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/option.hpp"

namespace mercer::cli {

/// Which fields of a struct a verb takes, by name; all those for users when nothing is said.
struct Pick {
  std::vector<std::string_view> only, without;
  bool takes(std::string_view name) const;
};
inline Pick only(std::vector<std::string_view> names) { return {std::move(names), {}}; }
inline Pick without(std::vector<std::string_view> names) { return {{}, std::move(names)}; }

class Arguments {
 public:
  /// `example` are the lines shown first by --help; `summary` says what the verb does.
  Arguments(const std::string& verb, const std::string& example, const std::string& summary);
  ~Arguments();

  void positional(const std::string& name, std::string& value, const std::string& help);

  /// Options that follow are listed under this title.
  void group(const std::string& title);
  /// The fields of a struct that were not added before; present values are shown as defaults.
  template <class Options>
  void add(Options& options, const Pick& pick = {}) {
    for (auto& option : list_options(options))
      if (option.for_users && pick.takes(option.name)) add(std::move(option));
  }
  void add(Option option);
  /// --config FILE: values of these options from a JSON file; words override it.
  void add_config();

  /// Lines of text after the options: lists of choices.
  void appendix(const std::string& title, const std::string& text);

  /// Fills the fields; false when --help was asked for and printed. Throws InvalidArgument.
  bool parse(const std::vector<std::string>& words);
  /// Whether this field was among the words, or had another value than its default in the file.
  bool given(std::string_view name) const;
  /// Every option that steers the run, as it was after parsing: what --config takes back.
  const Json& record() const;
  /// What should be said of the configuration file, a sentence each.
  const std::vector<std::string>& notes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mercer::cli
