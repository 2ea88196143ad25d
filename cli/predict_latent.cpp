// mercer predict and mercer evaluate for classes, counts and outliers.
#include <fmt/format.h>

#include <cmath>

#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/latent_text.hpp"
#include "cli/predict_command.hpp"
#include "cli/row_source.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/timer.hpp"

namespace mercer::cli {
namespace {

struct Column {
  std::string name;
  Vector values;
};

// The numbers of a block; of none for the names. `label` stands before them for classes.
std::vector<Column> columns_of(const models::LatentModel& model, const models::LatentPredictions& p,
                               bool with_sd) {
  std::vector<Column> out;
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

class Sink {
 public:
  Sink(const PredictCommand& command, const models::LatentModel& model, bool with_sd)
      : command_(command),
        model_(model),
        with_sd_(with_sd),
        as_json_(command.run.json && command.output == "-") {
    std::vector<std::string> header;
    if (command.with_inputs)
      for (const auto& column : model.schema.inputs) header.push_back(column.name);
    if (model.classifies()) header.push_back("label");
    for (auto& column : columns_of(model, {}, with_sd)) header.push_back(std::move(column.name));
    if (!as_json_) writer_.emplace(command.output, std::move(header));
  }

  void add(const Matrix& inputs, const models::LatentPredictions& p) {
    const auto columns = columns_of(model_, p, with_sd_);
    const auto labels = labels_of(model_, p.probabilities);
    if (as_json_) {
      for (const auto& label : labels) json_["label"].push_back(label);
      for (const auto& column : columns)
        for (const double value : column.values) json_[column.name].push_back(value);
      return;
    }
    for (Index i = 0; i < inputs.rows(); ++i) {
      if (command_.with_inputs) write_inputs(*writer_, model_.schema, inputs, i);
      if (model_.classifies()) writer_->text(labels[static_cast<std::size_t>(i)]);
      for (const auto& column : columns) writer_->number(column.values[i]);
      writer_->end_row();
    }
  }

  Json close() {
    if (writer_) writer_->close();
    return std::move(json_);
  }

 private:
  const PredictCommand& command_;
  const models::LatentModel& model_;
  bool with_sd_, as_json_;
  std::optional<data::CsvWriter> writer_;
  Json json_ = Json::object();
};

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
  Sink sink(command, predictor.model(), with_sd);
  const auto progress = source.progress(console);
  LatentTotals totals;
  for (; more; more = source.next(block)) {
    const auto predictions = source.predict(predictor, block, progress);
    sink.add(block.inputs, predictions);
    totals.add(predictions);
  }
  clear_progress_line();
  source.report(console);
  Json columns = sink.close();
  if (totals.clamped > 0)
    console.warn(fmt::format(
        "{} variances came out below zero by rounding and were raised to 1e-12 of the prior "
        "variance",
        totals.clamped));
  if (command.run.json) {
    Json json = {{"n", totals.rows}, {"model", command.model_path}, {"output", command.output}};
    if (predictor.model().certificate.rigorous) {
      put(json, "largest_error_bound", totals.largest_bound);
    } else {
      json["largest_error_bound"] = nullptr;
      json["largest_error_bound_reason"] = kNoBound;
    }
    put_variances(json, totals.variances);
    json["clamped_variances"] = totals.clamped;
    json["matvecs"] = totals.matvecs;
    put(json, "seconds", timer.seconds());
    json["peak_rss_bytes"] = peak_rss_bytes();
    json.update(columns);
    print_json(json);
  } else if (command.output != "-") {
    print_out(fmt::format("Predicted    {} into {} in {}\n{}", plural(totals.rows, "row"),
                          command.output, duration(timer.seconds()),
                          variances_text(totals.variances)));
  } else if (const auto text = variances_sentence(totals.variances); !text.empty()) {
    console.note("variances " + text);
  }
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
  LatentTotals totals;
  for (; more; more = source.next(block)) {
    const auto predictions = source.predict(predictor, block, progress);
    scores.add(predictor, predictions, block.target,
               [&](Index row) { return source.place(block, row); });
    totals.add(predictions);
  }
  clear_progress_line();
  source.report(console);
  if (!command.run.json) {
    print_out(fmt::format("{} on {} of {}\n\n{}{}", command.model_path,
                          plural(scores.rows(), "row"), command.data_path, scores.text(),
                          variances_text(totals.variances)));
    return exit_ok;
  }
  Json json = scores.json();
  put_variances(json, totals.variances);
  json["rows_missing_target"] = source.stream().rows_missing_target();
  json["rows_dropped_missing"] = source.stream().rows_dropped_missing();
  json["model"] = command.model_path;
  put(json, "seconds", timer.seconds());
  json["peak_rss_bytes"] = peak_rss_bytes();
  print_json(json);
  return exit_ok;
}

}  // namespace mercer::cli
