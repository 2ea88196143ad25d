// mercer evaluate: scores of a model on labelled data, which is streamed.
#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/model_text.hpp"
#include "cli/predict_command.hpp"
#include "cli/record.hpp"
#include "cli/row_source.hpp"
#include "cli/score_text.hpp"
#include "cli/shared_options.hpp"
#include "cli/variances.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/timer.hpp"

namespace mercer::cli {
namespace {

struct EvaluateCommand {
  RunOptions run;
  std::string model_path;
  std::string data_path;
  data::DataOptions rows;  // drop_missing
  models::PredictOptions options;
  PredictCommand predict;  // seed
};

void refuse_no_variances(const models::KernelMachine& model,
                         const models::PredictOptions& options) {
  if (options.variance.method != "none") return;
  if (model.schema.log_target)
    throw InvalidArgument(
        "the logarithm of the target was learned: its mean needs variances; leave --variance none "
        "out");
  if (!model.problem.gaussian() && !model.classifies())
    throw InvalidArgument(
        "the scores of this likelihood need variances; leave --variance none out");
}

void evaluate(const EvaluateCommand& command, models::KernelMachine model, const Console& console) {
  const Timer timer;
  refuse_no_variances(model, command.options);
  if (command.predict.seed) model.method.seed = *command.predict.seed;
  PredictionRows source(
      command.data_path, prediction_schema(model.schema, model.problem.gaussian()),
      row_options(data::TargetUse::required, command.rows, command.options.memory));
  data::RowBlock block;
  bool more = source.next(block);
  if (!more) throw DataError(fmt::format("{}: there are no rows with a target", command.data_path));
  auto options = command.options;
  options.variance.rows = block.rows();  // at least
  const models::Predictor predictor(std::move(model), options);
  const auto progress = source.progress(console);
  models::PredictionScores keeper(predictor);
  VarianceRecord variances{predictor.plan().variance};
  variances.of_logarithm = predictor.model().schema.log_target;
  auto sample = predictor.row_sample();
  for (; more; more = source.next(block)) {
    const auto predictions = source.predict(predictor, block, sample, progress);
    keeper.add(predictions, block.target, [&](Index row) { return source.place(block, row); });
    variances.add(predictions);
  }
  variances.error = predictor.sd_error(sample, progress);
  clear_progress_line();
  source.report(console);
  const auto scores = keeper.scores();
  if (!command.run.json) {
    print_out(fmt::format("{} on {} of {}\n\n{}{}", command.model_path, plural(scores.n(), "row"),
                          command.data_path, scores_text(scores), variances_text(variances)));
    return;
  }
  Json json = scores_json(scores);
  put_variances(json, variances);
  json["rows_missing_target"] = source.source().rows_missing_target();
  json["rows_dropped_missing"] = source.source().rows_dropped_missing();
  json["cells_filled"] = source.source().cells_filled();
  json["model"] = command.model_path;
  put(json, "seconds", timer.seconds());
  json["peak_rss_bytes"] = peak_rss_bytes();
  print_json(json);
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
  auto& [run, model_path, data_path, rows, options, predict] = command;
  arguments.positional("MODEL", model_path, "model file written by mercer fit");
  arguments.positional("DATA", data_path, "CSV file with the target; - for standard input");
  arguments.group("Data");
  arguments.add(rows, only({"drop_missing", "delimiter"}));
  arguments.group("Method");
  arguments.add(options, without({"samples", "solver", "tolerance", "quantiles"}));
  arguments.add(predict, only({"seed"}));
  add_run_options(arguments, run);
  if (!arguments.parse(words)) return exit_ok;

  apply(run);
  validate(options);
  planning::check(options.variance);
  const Console console("evaluate", run.quiet);
  auto model = load_model(model_path);
  explain_factorisations(
      model.problem.gaussian(), [&] { evaluate(command, std::move(model), console); },
      "a fit with ");
  return exit_ok;
}

}  // namespace mercer::cli
