// mercer demo: the whole story on simulated data whose truth is known.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/model_text.hpp"
#include "cli/record.hpp"
#include "cli/score_text.hpp"
#include "cli/shared_options.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/data/simulate.hpp"
#include "mercer/data/split.hpp"
#include "mercer/models/fit.hpp"
#include "mercer/models/scores.hpp"
#include "mercer/studies/simulate.hpp"

namespace mercer::cli {
namespace {

constexpr Index kPoints = 2000;
constexpr double kLengthscales[2] = {0.15, 0.40};
constexpr double kSignalVariance = 4.0;
constexpr double kNoise = 0.09;

struct Simulated {
  data::Dataset train;
  Matrix test_inputs;
  Vector test_target;
};

Simulated simulate(std::uint64_t seed) {
  auto kernel = kernels::Kernel::parse("matern52", 2);
  kernel.set_lengthscales({kLengthscales[0], kLengthscales[1]});
  kernel.set_all_variances(kSignalVariance);
  const inference::Problem problem{kernel, kNoise, inference::MeanKind::zero};
  Rng rng(seed, "demo-points");
  const Matrix x = data::uniform_points(kPoints, 2, rng);
  const auto draw = studies::draw_from_gp(
      problem, x, {.seed = seed, .memory_bytes = static_cast<double>(available_memory_bytes())});
  const auto split = data::split_rows(kPoints, 0.2, seed);
  Simulated out;
  out.train = data::make_dataset(data::take_rows(ConstMatrixView(x), split.train),
                                 data::take_rows(ConstVectorView(draw.target), split.train),
                                 {"east", "north"});
  out.test_inputs = data::take_rows(ConstMatrixView(x), split.test);
  out.test_target = data::take_rows(ConstVectorView(draw.target), split.test);
  return out;
}

std::string truth_table(const models::KernelMachine& model) {
  const auto learned = models::original(model.problem, model.scaling);
  const auto lengthscales = learned.lengthscales();
  Table table("lrr", {"", "truth", "learned"});
  table.row({"signal sd", number(std::sqrt(kSignalVariance)),
             number(std::sqrt(learned.signal_variance))});
  table.row({"noise sd", number(std::sqrt(kNoise)), number(std::sqrt(*learned.noise_variance))});
  table.row({"lengthscale east", number(kLengthscales[0]), number(lengthscales[0])});
  table.row({"lengthscale north", number(kLengthscales[1]), number(lengthscales[1])});
  return table.text();
}

/// The same hyperparameters solved anew by one method; means at the test points.
struct Resolved {
  models::Predictions predictions;
  models::FitResult fit;
};
Resolved solve_again(const Simulated& data, const models::KernelMachine& model,
                     const std::string& solver, double tolerance, const Console& console) {
  const auto values = models::standardised(model.problem);
  models::FitOptions options;
  options.method.kernel = "matern52";
  options.method.lengthscale = values.lengthscales();
  options.method.signal_variance = values.signal_variance;
  options.method.noise = values.noise_variance;
  options.method.solver = solver;
  options.method.preconditioner = "none";
  options.method.tolerance = tolerance;
  options.train.train = "none";
  Resolved out;
  out.fit = models::fit(data.train, options, console.progress());
  models::PredictOptions means;
  means.variance.method = "none";
  out.predictions = models::Predictor(out.fit.model, means).predict(data.test_inputs);
  return out;
}

/// One promise of the certificate and how it was kept.
struct Promise {
  double tolerance, promised, really;
  int iterations;
};

std::vector<Promise> check_promises(const Simulated& data, const models::KernelMachine& model,
                                    const Console& console) {
  const auto exact = solve_again(data, model, "cholesky", 1e-6, console);
  std::vector<Promise> promises;
  for (const double tolerance : {1e-2, 1e-4, 1e-8}) {
    const auto rough = solve_again(data, model, "cg", tolerance, console);
    const double distance = (rough.predictions.mean - exact.predictions.mean).cwiseAbs().maxCoeff();
    promises.push_back({tolerance, rough.predictions.error_bound.maxCoeff(), distance,
                        rough.fit.solve.iterations});
  }
  return promises;
}

std::string promises_table(const std::vector<Promise>& promises) {
  Table table("rrrr", {"tolerance", "iterations", "promised within", "really within"});
  for (const auto& p : promises)
    table.row(
        {number(p.tolerance, 1), count(p.iterations), number(p.promised, 2), number(p.really, 2)});
  return table.text();
}

Json demo_json(const models::FitResult& fit, const models::RegressionScores& scores,
               const std::vector<Promise>& promises, double seconds) {
  Json json;
  json["n"] = fit.model.x.rows();
  json["truth"] = {{"signal_variance", kSignalVariance},
                   {"noise_variance", kNoise},
                   {"lengthscales", {kLengthscales[0], kLengthscales[1]}}};
  json["hyperparameters"] = hyperparameters_json(fit.model.problem, fit.model.scaling);
  json["evaluation"] = scores_json(scores);
  json["promises"] = Json::array();
  for (const auto& p : promises) {
    Json entry = {{"iterations", p.iterations}};
    put(entry, "tolerance", p.tolerance);
    put(entry, "promised", p.promised);
    put(entry, "really", p.really);
    json["promises"].push_back(std::move(entry));
  }
  put(json, "seconds", seconds);
  json["peak_rss_bytes"] = peak_rss_bytes();
  return json;
}

}  // namespace

int run_demo(const Words& words) {
  Arguments arguments("demo", "  mercer demo",
                      "Simulates a field with known hyperparameters, learns them back, predicts\n"
                      "points it has not seen, and checks its own promises; under a minute.");
  RunOptions run;
  DemoCommand command;
  arguments.add(command);
  add_run_options(arguments, run);
  if (!arguments.parse(words)) return exit_ok;
  apply(run);

  const Timer timer;
  const Console console("demo", run.quiet);
  const auto tell = [&](const std::string& text) {
    clear_progress_line();
    if (!run.json) print_out(text);
  };
  tell(
      fmt::format("1. Data. A random field over the unit square, drawn from a Gaussian process\n"
                  "   (matern52 kernel): {} noisy observations, a fifth of them set apart.\n\n",
                  count(kPoints)));
  const auto data = simulate(command.seed);

  models::FitOptions options;
  options.train.restarts = 1;  // the likelihood of this field has one peak: a check, not a search
  const auto fit = models::fit(data.train, options, console.progress());
  tell(fmt::format("2. Plan. {}\n   Estimated {}; took {}.\n\n", wrapped(fit.plan.reason, 3),
                   duration(fit.plan.seconds), duration(fit.seconds)));
  tell(fmt::format("3. Learning. {} of L-BFGS on the exact likelihood:\n\n{}\n",
                   plural(fit.training.steps, "step"), truth_table(fit.model)));

  const models::Predictor predictor(fit.model, {});
  const auto predictions = predictor.predict(data.test_inputs, console.progress());
  models::ScoreKeeper keeper;
  keeper.add(data.test_target, predictions.mean, predictions.sd_obs);
  const auto scores = keeper.scores();
  tell(fmt::format(
      "4. Prediction of the {} points set apart. An rmse near the noise sd of {} is as\n"
      "   good as it gets; the intervals should cover 90 and 95 %.\n\n{}\n",
      count(data.test_target.size()), number(std::sqrt(kNoise), 2), scores_text(scores)));

  const auto promises = check_promises(data, fit.model, console);
  const bool kept = std::all_of(promises.begin(), promises.end(),
                                [](const Promise& p) { return p.really <= p.promised; });
  tell(fmt::format(
      "5. Certificate. The same system solved by iteration, stopped early or late, against\n"
      "   a dense factorisation: the means at those points {} the promise{}.\n\n{}\n",
      kept ? "keep" : "BREAK", kept ? " each time" : "; please report this",
      promises_table(promises)));
  tell(
      fmt::format("Done in {}, peak memory {}. Next, with your own table:\n"
                  "  mercer plan data.csv --target y\n"
                  "  mercer fit data.csv --target y -m model.mcr\n",
                  duration(timer.seconds()), format_bytes(static_cast<double>(peak_rss_bytes()))));
  if (run.json) print_json(demo_json(fit, scores, promises, timer.seconds()));
  return kept ? exit_ok : exit_internal;
}

}  // namespace mercer::cli
