// The options that verbs share, each group with its fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/arguments.hpp"
#include "cli/console.hpp"
#include "mercer/data/dataset.hpp"
#include "mercer/data/predict_stream.hpp"
#include "mercer/models/names.hpp"

namespace mercer::cli {

struct RunOptions {
  bool json = false;
  bool quiet = false;
  std::optional<int> threads;
};

template <class Visitor>
void visit_fields(RunOptions& o, Visitor&& field) {
  field({"json", "", "print one JSON object, and nothing else", "", Affects::nothing}, o.json,
        Any{});
  field({"quiet", "", "no progress and no notes on standard error", "", Affects::nothing}, o.quiet,
        Any{});
  field({"threads", "T", "threads; the result has the same bits with any number", "all cores",
         Affects::nothing},
        o.threads, Positive{});
}

/// The options of every run under their title.
void add_run_options(Arguments& arguments, RunOptions& options);
/// Sets the number of threads, which must be positive, and under a limit on address space maps the
/// buffers of OpenBLAS for them.
void apply(const RunOptions& options);

/// Notes about the configuration file.
void tell_config(const Arguments& arguments, const Console& console);

struct DataFlags {
  std::string path;
  data::DataOptions options;
};
/// The columns of DATA and how they are read, under their title.
void add_data_options(Arguments& arguments, DataFlags& flags);
/// Reads DATA inside the memory of `method`. An unreadable file is exit code 3.
data::Dataset read(DataFlags& flags, const models::MethodOptions& method = {});
/// Passes on what the reader has to say.
void tell(const data::Dataset& data, const Console& console);
/// Reads DATA and prints its notes.
data::Dataset read(DataFlags& flags, const Console& console,
                   const models::MethodOptions& method = {});
/// The options that predict and evaluate share, as those of the stream of rows.
data::PredictOptions row_options(data::TargetUse target, const data::DataOptions& options,
                                 std::optional<std::uint64_t> memory);
/// How many bytes a run may take: what was asked for, or most of what is free.
std::uint64_t reading_memory(std::optional<std::uint64_t> asked);

/// Model and method, with the lists of choices below the options; `left_out` are fields that the
/// verb does not have.
void add_method_options(Arguments& arguments, models::MethodOptions& options,
                        std::vector<std::string_view> left_out = {});
/// Throws InvalidArgument when one of these fields was given although it has no effect; `why` says
/// why.
void refuse_given(const Arguments& arguments, const std::vector<std::string>& names,
                  const std::string& why);

/// True when an option was given that only numbers with Gaussian noise have.
bool asks_for_numbers(const Arguments& arguments);
/// Refuses those, and what else means nothing without Gaussian noise.
void refuse_gaussian_options(const Arguments& arguments, const std::string& why);

}  // namespace mercer::cli
