// mercer predict: mean, standard deviations, quantiles and error bound for every row of DATA, which
// is streamed: memory does not depend on its length.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/format.hpp"
#include "cli/latent_text.hpp"
#include "cli/model_text.hpp"
#include "cli/prediction_sink.hpp"
#include "cli/record.hpp"
#include "cli/row_source.hpp"
#include "cli/shared_options.hpp"
#include "cli/variances.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/data/csv_writer.hpp"

namespace mercer::cli {
namespace {

// Of predictions, or of none for the names.
std::vector<PredictionColumn> columns_of(const models::Predictions& p,
                                         const models::VarianceOptions& options) {
  std::vector<PredictionColumn> columns = {{"mean", p.mean}};
  if (options.method != "none")
    columns.insert(columns.end(), {{"sd_latent", p.sd_latent},
                                   {"sd_obs", p.sd_obs},
                                   {"q05", p.quantile(0.05)},
                                   {"q95", p.quantile(0.95)}});
  columns.push_back({"error_bound", p.error_bound});
  for (Index s = 0; s < options.joint_samples; ++s)
    columns.push_back({fmt::format("sample_{}", s + 1),
                       s < p.samples.cols() ? Vector(p.samples.col(s)) : Vector()});
  return columns;
}

Json execute(const PredictCommand& command, models::RegressionModel model, const Console& console,
             PredictionTotals& totals) {
  const Timer timer;
  if (command.seed) model.method.seed = *command.seed;
  RowSource source(command.data_path, model.schema,
                   {data::TargetUse::ignored, command.drop_missing});
  data::PredictBlock block;
  bool more = source.next(block);
  auto options = command.options;
  options.variance.rows = block.rows();  // at least
  const models::Predictor predictor(std::move(model), options);
  totals.variances.method = predictor.plan().variance;
  PredictionSink sink(command, predictor.model().schema,
                      columns_of(models::Predictions(), command.options.variance));
  const auto progress = source.progress(console);
  auto sample = predictor.row_sample();
  for (; more; more = source.next(block)) {
    const auto predictions = source.predict(predictor, block, sample, progress);
    sink.add(block.inputs, columns_of(predictions, command.options.variance));
    totals.add(predictions);
  }
  totals.variances.error = predictor.sd_error(sample, progress);
  if (totals.variances.error) totals.matvecs += totals.variances.error->matvecs;
  clear_progress_line();
  source.report(console);
  Json columns = sink.close();
  totals.seconds = timer.seconds();
  return columns;
}

void check(const PredictCommand& command) {
  models::check(command.options.variance);
  if (command.samples && *command.samples < 1)
    throw InvalidArgument(fmt::format("--samples is {}, but must be positive", *command.samples));
  if (command.options.tolerance && !BelowOne::holds(*command.options.tolerance))
    throw InvalidArgument(fmt::format("--tolerance is {}, but must be {}",
                                      *command.options.tolerance, BelowOne::text));
  if (command.with_inputs && command.run.json && command.output == "-")
    throw InvalidArgument("--with-inputs needs a CSV output; name one with -o or leave out --json");
  check_output("--output", command.output, {command.model_path, command.data_path});
}

void add_predict_options(Arguments& arguments, PredictCommand& command) {
  arguments.positional("MODEL", command.model_path, "model file written by mercer fit");
  arguments.positional("DATA", command.data_path, "CSV file; - for standard input");
  arguments.group("Output");
  arguments.option("-o,--output", "FILE", command.output,
                   "CSV to write; - is standard output; .gz packs it");
  arguments.flag("--no-variance", command.no_variance,
                 "--variance none: only mean and error_bound, which is quick");
  arguments.option("--samples", "n", command.samples,
                   "n joint draws of f as columns sample_1 .. sample_n; the\nsame functions for "
                   "every file, whatever piece of it");
  arguments.flag("--with-inputs", command.with_inputs, "copy the model's input columns in front");
  arguments.flag("--drop-missing", command.drop_missing,
                 "leave out rows with a missing input instead of refusing");
  arguments.group("Method");
  add_variance_options(arguments, command.options.variance);
  arguments.option("--solver", "NAME", command.options.solver,
                   fmt::format("for variances: {}", fmt::join(models::solver_names(), " | ")));
  arguments.option("--tolerance", "E", command.options.tolerance,
                   "of iterative variance solves [default: from the noise]");
  arguments.bytes("--memory", command.options.memory,
                  "memory to stay inside, as 8G or 500M\n[default: 80 % of what is free]");
  arguments.option("--seed", "S", command.seed, "[default: that of the model]");
  add_run_options(arguments, command.run);
}

}  // namespace

int run_predict(const Words& words) {
  Arguments arguments(
      "predict", "  mercer predict concrete.mcr new.csv -o predictions.csv",
      "Predicts the target for every row of DATA, whose columns are found by name.\n"
      "Writes mean, sd_latent (of f), sd_obs (of y), q05, q95 (quantiles of y) and\n"
      "error_bound (distance of mean from the exact one, at most), in the units of\n"
      "the target; for classes label, a probability for each, latent_mean, latent_sd\n"
      "and error_bound (of latent_mean). DATA is streamed: memory does not depend on\n"
      "its length. Where it has the noise or count column that the model was learned\n"
      "with, sd_obs counts it.");
  PredictCommand command;
  add_predict_options(arguments, command);
  if (!arguments.parse(words)) return exit_ok;

  apply(command.run);
  if (command.no_variance && arguments.given("--variance"))
    throw InvalidArgument("--no-variance is --variance none; give one of them");
  if (command.no_variance) command.options.variance.method = "none";
  command.options.variance.joint_samples = command.samples.value_or(0);
  check(command);
  models::MethodOptions solver_check;
  solver_check.solver = command.options.solver;
  models::check(solver_check);
  const Console console("predict", command.run.quiet);
  auto model = load_any_model(command.model_path);
  if (auto* latent = std::get_if<models::LatentModel>(&model))
    return latent_factorisations(
        [&] { return predict_latent(command, std::move(*latent), console); });
  auto regression = std::get<models::RegressionModel>(std::move(model));
  leave_variances(regression, command.options.variance);
  PredictionTotals totals;
  Json columns = execute(command, std::move(regression), console, totals);
  report(command, totals, columns, console);
  return exit_ok;
}

}  // namespace mercer::cli
