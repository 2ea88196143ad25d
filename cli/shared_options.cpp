#include "cli/shared_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/blas_setup.hpp"
#include "cli/exit_code.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/data/text.hpp"
#include "mercer/planning/plan.hpp"

namespace mercer::cli {

void add_run_options(Arguments& arguments, RunOptions& options) {
  arguments.group("Run");
  arguments.add(options);
}

void apply(const RunOptions& options) {
  validate(options);
  if (options.threads && *options.threads > 4096)
    throw InvalidArgument(fmt::format(
        "`threads` is {}, more than this program can use; give at most 4096", *options.threads));
  if (options.threads) set_num_threads(*options.threads);
  reserve_blas_buffers();
}

void tell_config(const Arguments& arguments, const Console& console) {
  for (const auto& note : arguments.notes()) console.note(note);
}

void add_data_options(Arguments& arguments, DataFlags& flags) {
  arguments.group("Data");
  arguments.add(flags.options);
}

std::uint64_t reading_memory(std::optional<std::uint64_t> asked) {
  models::MethodOptions method;
  method.memory = asked;
  return static_cast<std::uint64_t>(
      planning::memory_budget(method, static_cast<double>(program_bytes)));
}

data::PredictOptions row_options(data::TargetUse target, const data::DataOptions& options,
                                 std::optional<std::uint64_t> memory) {
  auto csv = data::csv_options(options);
  csv.memory = reading_memory(memory);
  return {.target = target, .drop_missing = options.drop_missing, .csv = csv};
}

data::Dataset read(DataFlags& flags, const models::MethodOptions& method) {
  flags.options.memory = reading_memory(method.memory);
  auto& advice = flags.options.target_advice;
  if (advice.empty())
    advice = flags.options.text_target
                 ? "if the column holds classes, say `task=classification`"
                 : "this is about numbers: name a numeric column with `target`, or learn classes "
                   "with fit `task=classification`";
  auto dataset =
      io_errors_as(exit_data, [&] { return data::read_dataset(flags.path, flags.options); });
  if (!dataset.schema.target_levels.empty() && !flags.options.text_target)
    throw DataError(fmt::format("the target {} holds categories; {}",
                                data::shown(dataset.schema.target), advice));
  return dataset;
}

void tell(const data::Dataset& data, const Console& console) {
  for (const auto& message : data.messages) console.note(message);
}

data::Dataset read(DataFlags& flags, const Console& console, const models::MethodOptions& method) {
  auto dataset = read(flags, method);
  tell(dataset, console);
  return dataset;
}

void add_method_options(Arguments& arguments, models::MethodOptions& options,
                        std::vector<std::string_view> left_out) {
  arguments.group("Model (values are on standardised data unless --no-standardize)");
  std::vector<std::string_view> model;
  for (const char* name :
       {"kernel", "isotropic", "lengthscale", "signal_variance", "noise", "mean"})
    if (std::find(left_out.begin(), left_out.end(), name) == left_out.end()) model.push_back(name);
  arguments.add(options, only(model));
  arguments.group("Method");
  arguments.add(options, without(std::move(left_out)));
  arguments.appendix("Kernels", planning::describe_kernels());
  arguments.appendix("Solvers", planning::describe_solvers());
  arguments.appendix("Operators", planning::describe_operators());
  arguments.appendix("Preconditioners", planning::describe_preconditioners());
}

void refuse_given(const Arguments& arguments, const std::vector<std::string>& names,
                  const std::string& why) {
  for (const auto& name : names)
    if (arguments.given(name))
      throw InvalidArgument(fmt::format("{}, so `{}` has no meaning; leave it out", why, name));
}

bool asks_for_numbers(const Arguments& arguments) {
  return arguments.given("noise") || arguments.given("noise_column") ||
         arguments.given("log_target");
}

void refuse_gaussian_options(const Arguments& arguments, const std::string& why) {
  refuse_given(arguments,
               {"noise", "noise_column", "log_target", "merge", "probe_kind", "accuracy"}, why);
}

}  // namespace mercer::cli
