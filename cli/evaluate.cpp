// mercer evaluate: scores of a model on labelled data, which is streamed.
#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/latent_text.hpp"
#include "cli/model_text.hpp"
#include "cli/predict_command.hpp"
#include "cli/record.hpp"
#include "cli/row_source.hpp"
#include "cli/shared_options.hpp"
#include "cli/variances.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/timer.hpp"

namespace mercer::cli {
namespace {

int evaluate_regression(const EvaluateCommand& command, models::RegressionModel model,
                        const Console& console) {
  const Timer timer;
  const auto& [run, model_path, data_path, rows, given, seed] = command;
  auto options = given;
  if (seed) model.method.seed = *seed;
  RowSource source(data_path, model.schema, rows);
  data::PredictBlock block;
  bool more = source.next(block);
  if (!more) throw DataError(fmt::format("{}: there are no rows with a target", data_path));
  options.variance.rows = block.rows();  // at least
  leave_variances(model, options.variance);
  const models::Predictor predictor(std::move(model), options);
  const auto progress = source.progress(console);
  models::ScoreKeeper keeper;
  VarianceRecord variances{predictor.plan().variance};
  auto sample = predictor.row_sample();
  for (; more; more = source.next(block)) {
    const auto predictions = source.predict(predictor, block, sample, progress);
    keeper.add(block.target, predictions.mean, predictions.sd_obs);
    variances.add(predictions);
  }
  variances.error = predictor.sd_error(sample, progress);
  clear_progress_line();
  source.report(console);
  const auto scores = keeper.scores();
  if (!run.json) {
    print_out(fmt::format("{} on {} of {}\n\n{}{}", model_path, plural(scores.n, "row"), data_path,
                          scores_text(scores), variances_text(variances)));
    return exit_ok;
  }
  Json json = scores_json(scores);
  put_variances(json, variances);
  json["rows_missing_target"] = source.stream().rows_missing_target();
  json["rows_dropped_missing"] = source.stream().rows_dropped_missing();
  json["model"] = model_path;
  put(json, "seconds", timer.seconds());
  json["peak_rss_bytes"] = peak_rss_bytes();
  print_json(json);
  return exit_ok;
}

}  // namespace

int run_evaluate(const Words& words) {
  Arguments arguments(
      "evaluate", "  mercer evaluate concrete.mcr test.csv",
      "Predicts every row of DATA and compares with its target: rmse, nll, coverage and\n"
      "others, or for classes error_rate, nll, brier, auc and calibration. Scores are\n"
      "in the units of the target; rows without a target are left out and counted.\n"
      "Where DATA has the noise or count column that the model was learned with, a row\n"
      "is scored as an observation with that noise.");
  EvaluateCommand command;
  auto& [run, model_path, data_path, rows, options, seed] = command;
  arguments.positional("MODEL", model_path, "model file written by mercer fit");
  arguments.positional("DATA", data_path, "CSV file with the target; - for standard input");
  arguments.group("Data");
  arguments.flag("--drop-missing", rows.drop_missing,
                 "leave out rows with a missing input instead of refusing");
  arguments.group("Method");
  add_variance_options(arguments, options.variance);
  arguments.bytes("--memory", options.memory,
                  "memory to stay inside, as 8G or 500M\n[default: 80 % of what is free]");
  arguments.option("--seed", "S", seed, "[default: that of the model]");
  add_run_options(arguments, run);
  if (!arguments.parse(words)) return exit_ok;

  apply(run);
  models::check(options.variance);
  const Console console("evaluate", run.quiet);
  auto any = load_any_model(model_path);
  if (auto* latent = std::get_if<models::LatentModel>(&any))
    return latent_factorisations(
        [&] { return evaluate_latent(command, std::move(*latent), console); });
  return evaluate_regression(command, std::get<models::RegressionModel>(std::move(any)), console);
}

}  // namespace mercer::cli
