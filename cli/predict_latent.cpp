// mercer predict and mercer evaluate for classes, counts and outliers.
#include <fmt/format.h>

#include <cmath>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/latent_text.hpp"
#include "cli/prediction_sink.hpp"
#include "cli/row_source.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/timer.hpp"

namespace mercer::cli {
namespace {

// The numbers of a block; of none for the names. `label` stands before them for classes.
std::vector<PredictionColumn> columns_of(const models::LatentModel& model,
                                         const models::LatentPredictions& p, bool with_sd) {
  std::vector<PredictionColumn> out;
  const auto part = [](const Matrix& m, Index c) {
    return c < m.cols() ? Vector(m.col(c)) : Vector();
  };
  if (!model.classifies()) {
    out = {{"mean", p.mean}};
    if (with_sd)
      out.insert(out.end(), {{"sd_latent", part(p.latent_sd, 0)},
                             {"sd_obs", p.sd_obs},
                             {"q05", p.q05},
                             {"q95", p.q95}});
    out.push_back({"latent_mean", part(p.latent_mean, 0)});
    if (model.certificate.rigorous) out.push_back({"error_bound", part(p.error_bound, 0)});
    return out;
  }
  for (Index c = 0; c < model.classes.count(); ++c)
    out.push_back({"probability_" + model.classes.labels[static_cast<std::size_t>(c)],
                   part(p.probabilities, c)});
  const Index functions = model.a.cols();
  const auto suffix = [&](Index c) {
    return functions == 1 ? std::string() : "_" + model.classes.labels[static_cast<std::size_t>(c)];
  };
  for (Index c = 0; c < functions; ++c) {
    out.push_back({"latent_mean" + suffix(c), part(p.latent_mean, c)});
    if (with_sd) out.push_back({"latent_sd" + suffix(c), part(p.latent_sd, c)});
  }
  Vector bound = p.error_bound.rows() > 0 ? Vector(p.error_bound.rowwise().maxCoeff()) : Vector();
  out.push_back({"error_bound", std::move(bound)});
  return out;
}

std::vector<std::string> labels_of(const models::LatentModel& model, const Matrix& probabilities) {
  std::vector<std::string> out;
  for (Index i = 0; i < probabilities.rows(); ++i) {
    Index best = 0;
    probabilities.row(i).maxCoeff(&best);
    out.push_back(model.classes.labels[static_cast<std::size_t>(best)]);
  }
  return out;
}

void refuse_none(const models::LatentModel& model, const models::PredictOptions& options) {
  if (options.variance.joint_samples > 0)
    throw InvalidArgument("--samples draws from Gaussian regressions; leave it out");
  if (model.map_only && options.variance.method != "auto" && options.variance.method != "none")
    throw InvalidArgument(
        "kernel logistic regression has no uncertainty of its own; leave --variance out");
}

}  // namespace

int predict_latent(const PredictCommand& command, models::LatentModel model,
                   const Console& console) {
  const Timer timer;
  refuse_none(model, command.options);
  if (command.seed) model.method.seed = *command.seed;
  RowSource source(command.data_path, model.schema,
                   {data::TargetUse::ignored, command.drop_missing});
  data::PredictBlock block;
  bool more = source.next(block);
  auto options = command.options;
  options.variance.rows = block.rows();
  const models::LatentPredictor predictor(std::move(model), options);
  const bool with_sd = !predictor.model().map_only && options.variance.method != "none";
  const auto& fitted = predictor.model();
  PredictionSink sink(command, fitted.schema, columns_of(fitted, {}, with_sd), fitted.classifies());
  const auto progress = source.progress(console);
  PredictionTotals totals;
  totals.of = "latent mean";
  if (!fitted.certificate.rigorous) totals.largest_bound.reset();
  for (; more; more = source.next(block)) {
    const auto predictions = source.predict(predictor, block, progress);
    sink.add(block.inputs, columns_of(fitted, predictions, with_sd),
             labels_of(fitted, predictions.probabilities));
    totals.add(predictions);
  }
  clear_progress_line();
  source.report(console);
  Json columns = sink.close();
  totals.seconds = timer.seconds();
  report(command, totals, columns, console);
  return exit_ok;
}

int evaluate_latent(const EvaluateCommand& command, models::LatentModel model,
                    const Console& console) {
  const Timer timer;
  refuse_none(model, command.options);
  if (!model.classifies() && command.options.variance.method == "none")
    throw InvalidArgument(
        "the scores of this likelihood need variances; leave --variance none out");
  if (command.seed) model.method.seed = *command.seed;
  RowSource source(command.data_path, model.schema, command.rows);
  data::PredictBlock block;
  bool more = source.next(block);
  if (!more) throw DataError(fmt::format("{}: there are no rows with a target", command.data_path));
  auto options = command.options;
  options.variance.rows = block.rows();
  const models::LatentPredictor predictor(std::move(model), options);
  const auto progress = source.progress(console);
  LatentScores scores(predictor.model());
  VarianceRecord variances;
  for (; more; more = source.next(block)) {
    const auto predictions = source.predict(predictor, block, progress);
    scores.add(predictor, predictions, block.target,
               [&](Index row) { return source.place(block, row); });
    variances.add(predictions);
  }
  clear_progress_line();
  source.report(console);
  if (!command.run.json) {
    print_out(fmt::format("{} on {} of {}\n\n{}{}", command.model_path,
                          plural(scores.rows(), "row"), command.data_path, scores.text(),
                          variances_text(variances)));
    return exit_ok;
  }
  Json json = scores.json();
  put_variances(json, variances);
  json["rows_missing_target"] = source.stream().rows_missing_target();
  json["rows_dropped_missing"] = source.stream().rows_dropped_missing();
  json["model"] = command.model_path;
  put(json, "seconds", timer.seconds());
  json["peak_rss_bytes"] = peak_rss_bytes();
  print_json(json);
  return exit_ok;
}

}  // namespace mercer::cli
