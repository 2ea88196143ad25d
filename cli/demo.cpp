// mercer demo: the whole story on simulated data whose truth is known.
#include <fmt/format.h>

#include <cmath>

#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/model_text.hpp"
#include "cli/shared_options.hpp"
#include "cli/units.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/data/simulate.hpp"
#include "mercer/data/split.hpp"
#include "mercer/models/scores.hpp"
#include "mercer/models/simulate.hpp"

namespace mercer::cli {
namespace {

constexpr Index kPoints = 2500;
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
  const inference::RegressionProblem problem{kernel, kNoise, inference::MeanKind::zero};
  Rng rng(seed, "demo-points");
  const Matrix x = data::uniform_points(kPoints, 2, rng);
  const auto draw = models::draw_from_gp(problem, x, seed, available_memory_bytes());
  const auto split = data::split_rows(kPoints, 0.2, seed);
  Simulated out;
  out.train = data::make_dataset(data::take_rows(ConstMatrixView(x), split.train),
                                 data::take_rows(ConstVectorView(draw.target), split.train),
                                 {"east", "north"});
  out.test_inputs = data::take_rows(ConstMatrixView(x), split.test);
  out.test_target = data::take_rows(ConstVectorView(draw.target), split.test);
  return out;
}

std::string truth_table(const models::RegressionModel& model) {
  const auto learned = original(model.problem, model.scaling);
  const auto lengthscales = learned.lengthscales();
  Table table("lrr", {"", "truth", "learned"});
  table.row({"signal sd", number(std::sqrt(kSignalVariance)),
             number(std::sqrt(learned.signal_variance))});
  table.row({"noise sd", number(std::sqrt(kNoise)), number(std::sqrt(learned.noise_variance))});
  table.row({"lengthscale east", number(kLengthscales[0]), number(lengthscales[0])});
  table.row({"lengthscale north", number(kLengthscales[1]), number(lengthscales[1])});
  return table.text();
}

/// The same hyperparameters solved anew by one method; means at the test points.
struct Resolved {
  models::Predictions predictions;
  models::FitResult fit;
};
Resolved solve_again(const Simulated& data, const models::RegressionModel& model,
                     const std::string& solver, double tolerance, const Console& console) {
  const auto values = standardised(model.problem);
  models::FitOptions options;
  options.method.kernel = "matern52";
  options.method.lengthscale = values.lengthscales();
  options.method.signal_variance = values.signal_variance;
  options.method.noise = values.noise_variance;
  options.method.solver = solver;
  options.method.tolerance = tolerance;
  options.train.train = "none";
  Resolved out;
  out.fit = models::fit(data.train, options, console.progress());
  models::PredictOptions means;
  means.variance = false;
  out.predictions = models::Predictor(out.fit.model, means).predict(data.test_inputs);
  return out;
}

std::string certificate_table(const Simulated& data, const models::RegressionModel& model,
                              const Console& console) {
  const auto exact = solve_again(data, model, "cholesky", 1e-6, console);
  Table table("rrrr", {"tolerance", "iterations", "promised within", "really within"});
  for (const double tolerance : {1e-2, 1e-4, 1e-8}) {
    const auto rough = solve_again(data, model, "cg", tolerance, console);
    const double distance = (rough.predictions.mean - exact.predictions.mean).cwiseAbs().maxCoeff();
    table.row({number(tolerance, 1), count(rough.fit.solve.iterations),
               number(rough.predictions.error_bound.maxCoeff(), 2), number(distance, 2)});
  }
  return table.text();
}

}  // namespace

int run_demo(const Words& words) {
  Arguments arguments("demo", "  mercer demo",
                      "Simulates a field with known hyperparameters, learns them back, predicts\n"
                      "points it has not seen, and checks its own promises; under a minute.");
  bool quiet = false;
  std::uint64_t seed = 1;
  std::optional<int> threads;
  arguments.option("--seed", "S", seed, "another simulated field");
  arguments.flag("--quiet", quiet, "no progress on standard error");
  arguments.option("--threads", "T", threads, "threads [default: all cores]");
  if (!arguments.parse(words)) return exit_ok;
  apply(RunOptions{false, quiet, threads});

  const Timer timer;
  const Console console("demo", quiet);
  print_out(
      fmt::format("1. Data. A random field over the unit square, drawn from a Gaussian process\n"
                  "   (matern52 kernel): {} noisy observations, a fifth of them set apart.\n\n",
                  count(kPoints)));
  const auto data = simulate(seed);

  const models::FitOptions options;
  const auto fit = models::fit(data.train, options, console.progress());
  clear_progress_line();
  print_out(fmt::format("2. Plan. {}\n   Estimated {}; took {}.\n\n", wrapped(fit.plan.reason, 3),
                        duration(fit.plan.seconds), duration(fit.seconds)));
  print_out(fmt::format("3. Learning. {} of L-BFGS on the exact likelihood:\n\n{}\n",
                        plural(fit.training.steps, "step"), truth_table(fit.model)));

  const models::Predictor predictor(fit.model, {});
  const auto predictions = predictor.predict(data.test_inputs, console.progress());
  models::ScoreKeeper keeper;
  keeper.add(data.test_target, predictions.mean, predictions.sd_obs);
  clear_progress_line();
  print_out(fmt::format(
      "4. Prediction of the {} points set apart. An rmse near the noise sd of {} is as\n"
      "   good as it gets; the intervals should cover 90 and 95 %.\n\n{}\n",
      count(data.test_target.size()), number(std::sqrt(kNoise), 2), scores_text(keeper.scores())));

  const auto table = certificate_table(data, fit.model, console);
  clear_progress_line();
  print_out(fmt::format(
      "5. Certificate. The same system solved by iteration, stopped early or late, against\n"
      "   a dense factorisation: the means at those points keep the promise each time.\n\n{}\n",
      table));
  print_out(
      fmt::format("Done in {}, peak memory {}. Next, with your own table:\n"
                  "  mercer plan data.csv --target y\n"
                  "  mercer fit data.csv --target y -m model.mcr\n",
                  duration(timer.seconds()), format_bytes(static_cast<double>(peak_rss_bytes()))));
  return exit_ok;
}

}  // namespace mercer::cli
