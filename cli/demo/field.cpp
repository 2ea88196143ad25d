// Sections 1 to 4 of the demo: a field in four dimensions with known hyperparameters, the plan, the
// fit on all rows, and predictions of rows that were set apart.
#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "cli/demo/parts.hpp"
#include "cli/format.hpp"
#include "cli/score_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/data/simulate.hpp"
#include "mercer/data/split.hpp"
#include "mercer/models/prediction_scores.hpp"

namespace mercer::cli::demo {
namespace {

std::string verdict(const models::PlanRow& row) {
  if (row.chosen) return "chosen";
  if (!row.allowed) return "ruled out";
  return row.fits ? "fits" : "too big";
}

// Bytes of the covariance matrix of n rows, and of its Cholesky factor in its place.
double dense_bytes(Index n) { return 8.0 * static_cast<double>(n) * static_cast<double>(n); }

models::FitOptions fit_options(const Setting& setting) {
  models::FitOptions options;
  options.method.seed = setting.seed;
  options.method.solver = setting.size.solver;
  options.train.subset = setting.size.learning_rows;
  options.evidence = false;
  options.train.restarts = 0;  // the likelihood of this field has one peak
  return options;
}

std::string learning_text(const models::FitResult& fit, const TimeBox& box, const Size& size) {
  const auto& training = fit.training;
  std::string text;
  if (fit.plan.train_method == "exact") {
    text = fmt::format("The exact likelihood of {} rows was evaluated {} times",
                       count(fit.plan.train_rows), training.evaluations);
  } else {
    text = fmt::format(
        "Hyperparameters were learned on {} random rows by {} of the Vecchia likelihood",
        count(fit.plan.train_rows), plural(training.surrogate_evaluations, "evaluation"));
    if (training.gradients() > 0)
      text += fmt::format(", corrected by {} of the exact one",
                          plural(training.gradients(), "gradient"));
    if (!training.history.empty() && training.history.back().predicted_gain)
      text += fmt::format("; at the last, {} of log likelihood was still to be gained",
                          number(*training.history.back().predicted_gain, 2));
  }
  text += fmt::format(" ({}).", duration(training.seconds));
  if (box.ended_learning())
    text += fmt::format(
        " The time box of {} ended the learning there; `mercer fit` would have gone on until less "
        "than 0.1 is to be gained.",
        duration(*size.learning_seconds));
  return text;
}

std::string truth_table(const Truth& truth, const models::FitResult& fit,
                        const std::vector<std::string>& names) {
  const auto learned = models::original(fit.model.problem, fit.model.scaling);
  const auto lengthscales = learned.lengthscales();
  Table table("lrr", {"", "truth", "learned"});
  table.row({"signal sd", number(std::sqrt(truth.signal_variance)),
             number(std::sqrt(learned.signal_variance))});
  table.row({"noise sd", number(std::sqrt(truth.noise_variance)),
             number(std::sqrt(learned.noise_variance.value_or(0)))});
  for (std::size_t i = 0; i < lengthscales.size(); ++i)
    table.row({"lengthscale " + names[i], number(truth.lengthscales[i]), number(lengthscales[i])});
  return table.text(5);
}

std::string solve_text(const models::FitResult& fit) {
  const auto& built = fit.preconditioner;
  std::string how = "a Cholesky factor of its matrix";
  if (fit.plan.system.solver != "cholesky")
    how = fmt::format("{} of conjugate gradients ({}{})", plural(fit.solve.iterations, "iteration"),
                      built.name.empty() || built.name == "none"
                          ? std::string("without a preconditioner")
                          : "preconditioner " + built.name,
                      built.rank > 0 ? fmt::format(" of rank {}", built.rank) : "");
  return fmt::format(
      "The system of {} rows was solved by {} in {}. The certificate: every predicted mean is "
      "within {} of the exact posterior mean at these hyperparameters, in units of y; the relative "
      "residual, computed anew in double precision, is {}.",
      count(fit.model.x.rows()), how, duration(fit.build_seconds + fit.solve.seconds),
      number(fit.model.certificate.mean_error_bound, 2),
      number(fit.model.certificate.relative_residual, 2));
}

Json fit_json(const models::FitResult& fit, const TimeBox& box) {
  Json json = {{"n", fit.model.x.rows()},
               {"time_box_ended_learning", box.ended_learning()},
               {"time_box_exceeded", box.exceeded()},
               {"train_method", fit.plan.train_method},
               {"train_rows", fit.plan.train_rows},
               {"gradients", fit.training.gradients()},
               {"solver", fit.plan.system.solver},
               {"preconditioner", fit.preconditioner.name},
               {"rank", fit.preconditioner.rank},
               {"iterations", fit.solve.iterations},
               {"stop", std::string(to_string(fit.solve.stop))}};
  put(json, "train_seconds", fit.training.seconds);
  put(json, "solve_seconds", fit.build_seconds + fit.solve.seconds);
  json["hyperparameters"] = hyperparameters_json(fit.model.problem, fit.model.scaling);
  json["certificate"] = certificate_json(fit.model);
  return json;
}

// The share of rows that an interval of this probability covers, when the model is right, in 19 of
// 20 samples of n independent rows.
std::string expected_range(double probability, Index n) {
  const double half = 1.96 * std::sqrt(probability * (1 - probability) / static_cast<double>(n));
  return fmt::format("{:.1f} to {:.1f} %", 100 * (probability - half), 100 * (probability + half));
}

// The share of true values inside mean -+ z sd.
double covered(const Vector& truth, const Vector& mean, const Vector& sd, double z) {
  return ((truth - mean).array().abs() <= z * sd.array()).cast<double>().mean();
}

}  // namespace

Size size_of(bool quick) {
  Size size;
  if (!quick) return size;
  size.rows = 3000;
  size.test_rows = 400;
  size.dense_rows = 500;
  size.to_the_end = 1500;
  size.class_rows = 150;
  size.class_test_rows = 300;
  size.learning_rows = 600;
  size.solver = "cg";  // so few rows would be factored
  size.learning_seconds = size.fit_seconds = size.plain_seconds = std::nullopt;
  return size;
}

TimeBox::TimeBox(const Console& console, std::optional<double> learning,
                 std::optional<double> whole)
    : inner_(console.progress()),
      learning_(learning),
      whole_(whole),
      state_(std::make_shared<State>()) {}

ProgressCallback TimeBox::progress() const {
  return [inner = inner_, learning = learning_, whole = whole_, state = state_](const Progress& p) {
    if (inner(p) == Action::stop) state->interrupted = true;
    if (state->interrupted) return Action::stop;
    const double seconds = state->timer.seconds();
    if (p.ends_stage && learning && seconds > *learning) state->ended_learning = true;
    if (p.ends_stage && state->ended_learning) return Action::stop;
    if (whole && seconds > *whole) state->exceeded = true;
    return state->exceeded ? Action::stop : Action::proceed;
  };
}

Field simulate_field(const Setting& setting) {
  Field field;
  const Index d = static_cast<Index>(field.truth.lengthscales.size());
  const Index n = setting.size.rows + setting.size.test_rows;
  const auto free = static_cast<double>(available_memory_bytes());
  setting.section(
      "Data",
      fmt::format("A random field in {} dimensions, drawn from a Gaussian process with "
                  "known hyperparameters (Matern-5/2): {} noisy observations to learn from, "
                  "{} more set apart. Their covariance matrix alone would take {}; this "
                  "machine has {} free{}.",
                  d, count(setting.size.rows), count(setting.size.test_rows),
                  format_bytes(dense_bytes(setting.size.rows)), format_bytes(free),
                  free < dense_bytes(setting.size.rows) ? ", so no dense method can hold it" : ""));
  auto kernel = kernels::Kernel::parse("matern52", d);
  kernel.set_lengthscales(field.truth.lengthscales);
  kernel.set_all_variances(field.truth.signal_variance);
  const inference::Problem problem{kernel, field.truth.noise_variance, inference::MeanKind::zero};
  Rng rng(setting.seed, "demo-points");
  const Matrix x = data::uniform_points(n, d, rng);
  studies::DrawOptions options;
  options.seed = setting.seed;
  options.memory_bytes = free;
  options.method = studies::DrawMethod::vecchia;
  options.neighbours = 60;
  const auto draw = studies::draw_from_gp(problem, x, options, setting.console.progress());

  field.train = data::make_dataset(x.topRows(setting.size.rows),
                                   draw.target.head(setting.size.rows), {"a", "b", "c", "d"});
  field.test_inputs = x.bottomRows(setting.size.test_rows);
  field.test_target = draw.target.tail(setting.size.test_rows);
  field.test_latent = draw.latent.tail(setting.size.test_rows);
  return field;
}

void show_plan(const Setting& setting, const Field& field, Json& json) {
  const auto plan = models::plan_fit(field.train, fit_options(setting));
  Table table("lllrrl", {"", "stage", "method", "memory", "time", ""});
  for (const auto& row : plan.rows)
    table.row({row.chosen ? "*" : "", row.stage, row.method, format_bytes(row.bytes),
               duration(row.seconds), verdict(row)});
  setting.section("Plan",
                  fmt::format("What a run needs is known before it starts: every way to learn and "
                              "to solve, with its memory and its estimated time. {}",
                              plan.reason));
  setting.table(table.text(3));
  json["plan"] = plan_json(plan);
  put(json, "dense_bytes", dense_bytes(field.train.size()));
}

models::FitResult fit_field(const Setting& setting, const Field& field, Json& json) {
  const auto& size = setting.size;
  const TimeBox box(setting.console, size.learning_seconds, size.fit_seconds);
  setting.section(
      "Fit",
      fmt::format("Hyperparameters are learned, then the system of all {} rows is "
                  "solved to a relative residual of {}; the matrix is never stored.",
                  count(field.train.size()), number(fit_options(setting).method.tolerance, 1)));
  models::FitResult fit;
  try {
    fit = models::fit(field.train, fit_options(setting), box.progress());
    if (box.interrupted()) throw Interrupted("interrupted while learning");
    setting.paragraph(learning_text(fit, box, size));
  } catch (const Interrupted&) {
    if (!box.exceeded() || box.interrupted()) throw;
    std::vector<Index> rows(static_cast<std::size_t>(size.dense_rows));
    std::iota(rows.begin(), rows.end(), Index{0});
    setting.paragraph(fmt::format(
        "The fit did not end within its time box of {}: this machine is slow or busy. The demo "
        "goes on with a fit of {} rows.",
        duration(*size.fit_seconds), count(size.dense_rows)));
    fit = models::fit(data::take_rows(field.train, rows), fit_options(setting),
                      setting.console.progress());
  }
  setting.table(truth_table(field.truth, fit, {"a", "b", "c", "d"}));
  setting.paragraph(
      "The noise is known well. The signal and its lengthscales are not, however many the rows: "
      "one "
      "field over a few lengthscales is one observation of them, and a smaller signal with shorter "
      "lengthscales explains it nearly as well.");
  setting.paragraph(solve_text(fit));
  json["truth"] = {{"signal_variance", field.truth.signal_variance},
                   {"noise_variance", field.truth.noise_variance},
                   {"lengthscales", field.truth.lengthscales}};
  json["fit"] = fit_json(fit, box);
  return fit;
}

void predict_field(const Setting& setting, const Field& field, const models::FitResult& fit,
                   Json& json) {
  models::PredictOptions options;
  options.variance.check_rows = setting.size.check_rows;
  const models::Predictor predictor(fit.model, options);
  const auto p = predictor.predict(field.test_inputs, setting.console.progress());
  models::ScoreKeeper keeper;
  keeper.add(field.test_target, p.mean, p.sd_obs);
  const auto scores = keeper.scores();
  const Index n = scores.n;
  const double latent90 = covered(field.test_latent, p.mean, p.latent_sd.col(0), 1.6449);
  const double latent_rmse =
      (p.mean - field.test_latent).norm() / std::sqrt(static_cast<double>(n));

  setting.section(
      "Predictions",
      fmt::format(
          "The {} rows set apart. An observation cannot be predicted better than its noise, "
          "whose standard deviation is {}; the root mean squared error is {}. The field "
          "itself, which only a simulation knows, is met with an error of {}.",
          count(n), number(std::sqrt(field.truth.noise_variance), 3), number(scores.rmse, 3),
          number(latent_rmse, 3)));
  Table table("lrrl", {"interval", "covers", "a calibrated model", ""});
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  table.row({"90 % of y", percent(scores.coverage90), expected_range(0.9, n), "in 19 of 20 runs"});
  table.row({"95 % of y", percent(scores.coverage95), expected_range(0.95, n), "in 19 of 20 runs"});
  table.row({"90 % of f", percent(latent90), "about 90 %", "neighbouring rows err together"});
  setting.table(table.text(3));
  if (p.sd_error)
    setting.paragraph(fmt::format(
        "Standard deviations of f are those given the nearest rows only ({}), so they are too "
        "wide rather than too narrow. On {} of the predicted rows, chosen at random, they were "
        "also "
        "solved for exactly: the largest difference is {}.",
        predictor.plan().variance, p.sd_error->rows, number(p.sd_error->largest, 2)));
  Json evaluation = scores_json(scores);
  put(evaluation, "latent_coverage90", latent90);
  put(evaluation, "latent_rmse", latent_rmse);
  put(evaluation, "largest_error_bound", p.error_bound.maxCoeff());
  json["evaluation"] = std::move(evaluation);
}

}  // namespace mercer::cli::demo
