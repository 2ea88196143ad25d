// mercer compare --methods: approximations against the exact posterior on the user's data.
#include <fmt/format.h>

#include <filesystem>

#include "cli/approximation.hpp"
#include "cli/approximations_text.hpp"
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/option_list.hpp"
#include "cli/row_source.hpp"
#include "cli/signals.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/atomic_file.hpp"
#include "mercer/data/split.hpp"
#include "mercer/models/input_names.hpp"

namespace mercer::cli {
namespace {

struct ApproximationsFlags {
  FitCommand fit;
  studies::ApproximationsOptions options;
  CompareCommand files;
  TestFile test;
};

void add_approximations_options(Arguments& arguments, ApproximationsFlags& flags) {
  auto& fit = flags.fit;
  arguments.positional("DATA", fit.data.path, "CSV file; - for standard input");
  arguments.group("Comparison");
  arguments.add(flags.options);
  arguments.add(flags.test);
  arguments.add(fit.fit.approximation, without({"check_rows", "stream", "reservoir"}));
  arguments.group("Output");
  arguments.add(flags.files);
  add_data_options(arguments, fit.data);
  arguments.add(fit.fit, only({"merge"}));
  arguments.group("Learning");
  arguments.add(fit.fit.train, without({"checkpoint"}));
  arguments.group("Task");
  arguments.add(fit, only({"task", "likelihood"}));
  add_method_options(arguments, fit.fit.method, {"rank"});
  add_run_options(arguments, fit.run);
  arguments.add_config();
}

// Before any data are read. The approximations have their own checks, one by one.
void check_approximations(ApproximationsFlags& flags, const Arguments& arguments) {
  auto& fit = flags.fit;
  validate(fit);
  auto method = fit.fit.method;
  if (method.preconditioner == "auto") method.preconditioning.blocks.reset();
  planning::check(method);
  studies::check(flags.options, fit.fit);
  const auto& [csv, picture] = flags.files;
  if (!flags.test.path.empty() && flags.options.test_fraction)
    throw InvalidArgument(
        "`test` names the rows to predict and `test_fraction` draws them; give one");
  if (flags.test.path == "-" && fit.data.path == "-")
    throw InvalidArgument(
        "DATA and --test are both standard input, which can be read once only; name a file for one "
        "of them");
  if (!flags.test.exact.empty() && flags.test.path.empty())
    throw InvalidArgument(
        "`exact` is a model of all rows of DATA, so that none of them can be set aside; name other "
        "rows with `test`");
  if (!csv.empty() && csv == picture)
    throw InvalidArgument("--csv and --picture name the same file");
  if (fit.run.json && csv == "-")
    throw InvalidArgument("--json and --csv - both want standard output; name a file with --csv");
  if (!csv.empty()) check_output("--csv", csv, {fit.data.path, flags.test.path, flags.test.exact});
  if (!picture.empty())
    check_output_file("--picture", picture, {fit.data.path, flags.test.path, flags.test.exact});
  settle_task(fit, arguments);
}

// The exact fit of the same rows, from a file.
std::optional<models::KernelMachine> exact_model(const std::string& path, const data::Dataset& data,
                                                 const models::FitOptions& fit) {
  if (path.empty()) return {};
  auto model = models::KernelMachine::load(path);
  const auto record = Json::parse(model.record, nullptr, false);
  const auto hash = fmt::format("{:016x}", data.fingerprint);
  if (!record.is_object() || record.value("data_hash", std::string()) != hash)
    throw InvalidArgument(fmt::format(
        "`exact`: {} was not learned from the rows of DATA; fit them with mercer fit", path));
  if (model.sparse || model.mean_only || model.num_draws() > 1)
    throw InvalidArgument(
        fmt::format("`exact`: {} is no exact posterior at one set of hyperparameters", path));
  const auto& own = model.problem;
  const auto kernel = kernels::Kernel::parse(fit.method.kernel, models::input_names(model.schema));
  if (own.kernel.text() != kernel.text() || own.mean != inference::mean_kind(fit.method.mean) ||
      own.gaussian() != (fit.likelihood == "gaussian"))
    throw InvalidArgument(fmt::format(
        "`exact`: {} has another kernel, mean or likelihood (kernel {}, mean {}) than is compared "
        "here ({}, {}); give its `kernel` and `mean`, or fit DATA with these",
        path, own.kernel.text(), to_string(own.mean), kernel.text(), fit.method.mean));
  return model;
}

// The rows to predict: those of the file, or a share of the data, which is taken out of them.
studies::TestRows test_rows(const ApproximationsFlags& flags, data::Dataset& data) {
  const auto& fit = flags.fit;
  studies::TestRows out;
  if (flags.test.path.empty()) {
    constexpr double kFifth = 0.2;
    const bool standardize = fit.data.options.standardize;
    const auto split = data::split_rows(data.size(), flags.options.test_fraction.value_or(kFifth),
                                        fit.fit.method.seed);
    auto test = data::take_rows(data, split.test, standardize);
    data = data::take_rows(data, split.train, standardize);
    out.inputs = std::move(test.inputs);
    out.target = std::move(test.target);
    out.noise = std::move(test.noise);
    out.name = [](Index row) { return fmt::format("row {} of those to predict", row + 1); };
    return out;
  }
  const bool gaussian = fit.fit.likelihood == "gaussian";
  PredictionRows source(
      flags.test.path, prediction_schema(data.schema, gaussian),
      row_options(data::TargetUse::required, fit.data.options, fit.fit.method.memory));
  auto rows = source.all();
  if (rows.rows() == 0)
    throw DataError(fmt::format("{}: there are no rows with a target", flags.test.path));
  out.inputs = std::move(rows.inputs);
  out.target = std::move(rows.target);
  out.noise = std::move(rows.noise);
  out.name = [path = flags.test.path, lines = std::move(rows.lines)](Index row) {
    return fmt::format("{}: line {}", path, lines[static_cast<std::size_t>(row)]);
  };
  return out;
}

void write_files(const ApproximationsFlags& flags, const studies::ApproximationsResult& result) {
  const auto write = [](const std::string& path, const std::string& text) {
    if (path == "-") return print_out(text);
    AtomicFile file(path);
    file.write(text);
    file.commit();
  };
  if (!flags.files.csv.empty()) write(flags.files.csv, with_dashes(approximations_csv(result)));
  if (flags.files.picture.empty()) return;
  const auto chart = approximations_picture(
      result, std::filesystem::path(flags.fit.data.path).filename().string());
  if (chart.lines.empty())
    throw InvalidArgument("--picture: no run has anything to draw; see why in the table");
  write(flags.files.picture, svg(chart));
}

}  // namespace

int run_compare_approximations(const Words& words) {
  Arguments arguments(
      "compare",
      "  mercer compare data.csv --target y --methods exact,srm,fitc,vfe --ranks 100,300,1000\n"
      "  mercer compare data.csv --methods exact,bcm,vfe --test test.csv --picture error.svg",
      "Fits each approximation of the Gaussian process with each number of base points, and\n"
      "the exact one, and shows what they cost, their scores on rows that none has seen, and\n"
      "how far they are from the exact posterior there.");
  ApproximationsFlags flags;
  add_approximations_options(arguments, flags);
  if (!arguments.parse(words)) return exit_ok;
  auto& fit = flags.fit;
  apply(fit.run);
  check_approximations(flags, arguments);
  const Console console("compare", fit.run.quiet);
  tell_config(arguments, console);
  auto data = read(fit.data, console, fit.fit.method);
  settle_likelihood(fit, arguments, data, console);
  auto& approximation = fit.fit.approximation;
  if (!names_base_choice(approximation.base)) {
    approximation.points =
        read_base(approximation.base, data, fit.data.options, fit.fit.method.memory);
    flags.options.ranks = {approximation.points.rows()};
  }
  const auto test = test_rows(flags, data);
  const auto exact = exact_model(flags.test.exact, data, fit.fit);
  const auto result = studies::compare_approximations(
      data, test, fit.fit, flags.options, console.progress(), exact ? &*exact : nullptr);
  clear_progress_line();
  for (const auto& warning : result.warnings) console.warn(warning);
  if (result.interrupted)
    console.warn(fmt::format("interrupted: {} are done and shown", result.runs.size()));
  write_files(flags, result);
  if (fit.run.json) {
    Json json = approximations_json(result);
    json["kernel"] = fit.fit.method.kernel;
    json["options"] = arguments.record();
    json["data"] = data_json(data, fit.data.path);
    print_json(json);
  } else if (flags.files.csv != "-") {
    print_out(with_dashes(approximations_text(result, flags.options.learn)));
  }
  return result.interrupted ? exit_code_when_stopped() : exit_ok;
}

}  // namespace mercer::cli
