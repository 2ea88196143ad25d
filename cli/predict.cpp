// mercer predict: mean, standard deviations, quantiles and error bound for every row of DATA, which
// is streamed: memory does not depend on its length.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/format.hpp"
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
#include "mercer/data/text.hpp"

namespace mercer::cli {
namespace {

Vector part(const Matrix& m, Index c) { return c < m.cols() ? Vector(m.col(c)) : Vector(); }

// "_label" of a class where every class has a function of its own.
std::string suffix(const models::KernelMachine& model, Index c) {
  return model.num_functions() == 1 ? "" : "_" + model.classes.labels[static_cast<std::size_t>(c)];
}

void add_numbers(const models::Predictor& predictor, const models::Predictions& p, bool with_sd,
                 std::vector<PredictionColumn>& out) {
  const auto& model = predictor.model();
  const bool gaussian = model.problem.gaussian();
  // Of a logarithm the mean needs variances; without them the median is known.
  out = {{model.schema.log_target && !with_sd ? "median" : "mean", p.mean}};
  if (with_sd)
    out.insert(out.end(), {{"sd_latent", gaussian ? p.noise_free_sd : part(p.latent_sd, 0)},
                           {"sd_obs", p.sd_obs}});
  for (const double probability : predictor.quantiles())
    out.push_back({models::quantile_name(probability),
                   part(p.quantiles, static_cast<Index>(out.size()) - 3)});
  if (!gaussian) out.push_back({"latent_mean", part(p.latent_mean, 0)});
  if (model.certificate.rigorous)
    out.push_back({"error_bound", gaussian ? p.mean_error_bound : part(p.error_bound, 0)});
  if (model.certificate.mean_error_estimate)
    out.push_back({"error_estimate", gaussian ? p.mean_error_estimate : part(p.error_estimate, 0)});
}

void add_classes(const models::KernelMachine& model, const models::Predictions& p, bool with_sd,
                 std::vector<PredictionColumn>& out) {
  for (Index c = 0; c < model.classes.count(); ++c)
    out.push_back({"probability_" + model.classes.labels[static_cast<std::size_t>(c)],
                   part(p.probabilities, c)});
  for (Index c = 0; c < model.num_functions(); ++c) {
    out.push_back({"latent_mean" + suffix(model, c), part(p.latent_mean, c)});
    if (with_sd) out.push_back({"latent_sd" + suffix(model, c), part(p.latent_sd, c)});
  }
  const auto largest = [&](const Matrix& of_functions) {
    return p.rows() > 0 ? Vector(of_functions.rowwise().maxCoeff()) : Vector();
  };
  if (model.certificate.rigorous) out.push_back({"error_bound", largest(p.error_bound)});
  if (model.certificate.mean_error_estimate)
    out.push_back({"error_estimate", largest(p.error_estimate)});
}

// The numbers of a block; of none for the names. `label` stands before them for classes.
std::vector<PredictionColumn> columns_of(const models::Predictor& predictor,
                                         const models::Predictions& p, Index draws) {
  const auto& model = predictor.model();
  const bool with_sd = predictor.plan().variance != "none";
  std::vector<PredictionColumn> out;
  if (model.classifies())
    add_classes(model, p, with_sd, out);
  else
    add_numbers(predictor, p, with_sd, out);
  for (Index c = 0; c < model.num_functions(); ++c)
    for (Index s = 0; s < draws; ++s)
      out.push_back(
          {fmt::format("sample_{}{}", s + 1, suffix(model, c)), part(p.samples, c * draws + s)});
  return out;
}

std::vector<std::string> labels_of(const models::KernelMachine& model,
                                   const Matrix& probabilities) {
  std::vector<std::string> out;
  for (Index i = 0; i < probabilities.rows(); ++i) {
    Index best = 0;
    probabilities.row(i).maxCoeff(&best);
    out.push_back(model.classes.labels[static_cast<std::size_t>(best)]);
  }
  return out;
}

void execute(const PredictCommand& command, models::KernelMachine model, const Console& console) {
  const Timer timer;
  PredictionTotals totals;
  if (command.seed) model.method.seed = *command.seed;
  auto reading = row_options(data::TargetUse::ignored, command.data, command.options.memory);
  reading.carry = command.id;
  reading.carry_id = command.id.empty();
  reading.carry_all = command.with_inputs;
  PredictionRows source(command.data_path,
                        prediction_schema(model.schema, model.problem.gaussian()), reading);
  data::RowBlock block;
  bool more = source.next(block);
  auto options = command.options;
  options.variance.rows = block.rows();  // at least
  const models::Predictor predictor(std::move(model), options);
  const auto& fitted = predictor.model();
  const Index draws = options.variance.joint_samples;
  totals.variances.method = predictor.plan().variance;
  totals.variances.of_logarithm = fitted.schema.log_target;
  if (!fitted.problem.gaussian()) totals.of = "latent mean";
  if (fitted.schema.log_target && totals.variances.method == "none") totals.of = "median";
  if (!fitted.certificate.rigorous) {
    totals.largest_bound.reset();
    totals.no_bound = no_bound_reason(fitted);
  }
  const auto carried = source.source().carried_names();
  const auto& id = fitted.schema.id_column;
  if (!id.empty() && command.id.empty() &&
      std::find(carried.begin(), carried.end(), id) == carried.end())
    console.note(
        fmt::format("DATA has no column {}, which names the rows in the model; --id names "
                    "another",
                    data::shown(id)));
  PredictionSink sink(command, carried, columns_of(predictor, {}, draws), fitted.classifies(),
                      console);
  const auto progress = source.progress(console);
  auto sample = predictor.row_sample();
  for (; more; more = source.next(block)) {
    const auto predictions = source.predict(predictor, block, sample, progress);
    sink.add(block, columns_of(predictor, predictions, draws),
             labels_of(fitted, predictions.probabilities));
    totals.add(predictions);
  }
  totals.variances.error = predictor.sd_error(sample, progress);
  if (totals.variances.error) totals.matvecs += totals.variances.error->matvecs;
  clear_progress_line();
  source.report(console);
  sink.close();
  totals.seconds = timer.seconds();
  report(command, totals, sink, console);
}

void check(const PredictCommand& command, const Arguments& arguments) {
  validate(command.options);
  planning::check(command.options.variance);
  if (command.options.variance.method == "none" && command.options.variance.joint_samples == 0)
    refuse_given(arguments, {"tolerance", "solver"},
                 "`variance=none` without `samples` solves nothing");
  if (arguments.given("samples") && command.options.variance.joint_samples < 1)
    throw InvalidArgument("`samples` is 0, but must be positive");
  check_output("--output", command.output, {command.model_path, command.data_path});
}

void add_predict_options(Arguments& arguments, PredictCommand& command) {
  arguments.positional("MODEL", command.model_path, "model file written by mercer fit");
  arguments.positional("DATA", command.data_path, "CSV file; - for standard input");
  arguments.group("Output");
  arguments.add(command, without({"seed"}));
  arguments.add(command.options, only({"samples", "quantiles"}));
  arguments.add(command.data, only({"drop_missing", "delimiter"}));
  arguments.group("Method");
  arguments.add(command.options);
  arguments.add(command);
  add_run_options(arguments, command.run);
}

}  // namespace

int run_predict(const Words& words) {
  Arguments arguments(
      "predict", "  mercer predict concrete.mcr new.csv -o predictions.csv",
      "Predicts the target for every row of DATA, whose columns are found by name.\n"
      "Writes mean, sd_latent (of f), sd_obs (of y), q05, q95 (quantiles of y; others\n"
      "with --quantiles), error_bound and error_estimate (distance of mean from the\n"
      "exact one, at most and probably), in the units of the target; for classes\n"
      "label, a probability for each, latent_mean, latent_sd, error_bound and\n"
      "error_estimate (of latent_mean). DATA is streamed:\n"
      "memory does not depend on its length. Where it has the noise or count column\n"
      "that the model was learned with, sd_obs counts it.");
  PredictCommand command;
  add_predict_options(arguments, command);
  if (!arguments.parse(words)) return exit_ok;

  apply(command.run);
  if (command.no_variance && arguments.given("variance"))
    throw InvalidArgument("--no-variance is --variance none; give one of them");
  if (command.no_variance) command.options.variance.method = "none";
  check(command, arguments);
  const Console console("predict", command.run.quiet);
  auto model = load_model(command.model_path);
  explain_factorisations(
      model.problem.gaussian(), [&] { execute(command, std::move(model), console); },
      "a fit with ");
  return exit_ok;
}

}  // namespace mercer::cli
