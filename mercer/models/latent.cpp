#include "mercer/models/latent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/checksum.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/krylov/kernel_cg.hpp"
#include "mercer/models/latent_training.hpp"
#include "mercer/models/likelihood_value.hpp"
#include "mercer/models/model_parts.hpp"
#include "mercer/models/version.hpp"

namespace mercer::models {
namespace {

// The log determinant of an iterative fit, for its likelihood.
constexpr Index kLikelihoodProbes = 10;

// Counts and outliers: what the likelihood cannot observe is named by its row.
void check_target(const likelihoods::Likelihood& likelihood, const data::Dataset& data) {
  for (Index i = 0; i < data.size(); ++i)
    if (const auto why = likelihood.fault(data.target(i)); !why.empty())
      throw DataError(
          fmt::format("the target '{}' holds {} (row {} of those used): with the "
                      "likelihood {} it {}",
                      data.schema.target, data.target(i), i + 1, likelihood.text(), why));
}

// Options, classes and targets that do not go with the likelihood are refused.
void check_request(const data::Dataset& data, const LatentFitOptions& options,
                   const Classes& classes, const likelihoods::Likelihood& likelihood) {
  if (likelihood.is_binary() != (classes.count() > 0))
    throw InvalidArgument(fmt::format(
        "the likelihood {} is {}", options.likelihood,
        likelihood.is_binary() ? "one of classes; say --task classification"
                               : "not one of classes; give bernoulli-logit or bernoulli-probit"));
  if (options.method.mean != "zero")
    throw InvalidArgument("--mean is that of Gaussian regression; leave it out with a likelihood");
  if (options.method.noise)
    throw InvalidArgument(
        "--noise is that of Gaussian regression; the likelihood has its own spread");
  if (data.noise.variance.size() > 0 || data.noise.count.size() > 0)
    throw InvalidArgument("noise and count columns are those of Gaussian regression");
  if (options.method.solver == "kcg" && likelihood.text() != "bernoulli-logit")
    throw InvalidArgument(fmt::format(
        "--solver kcg minimises the logistic loss; the likelihood {} is for cg or cholesky",
        likelihood.text()));
  if (classes.count() == 0) check_target(likelihood, data);
}

// Throws DataError when all rows have the same class.
std::vector<std::string> class_warnings(const Classes& classes, const Matrix& y) {
  std::vector<std::string> out;
  const auto rows = static_cast<double>(y.rows());
  for (Index c = 0; c < classes.count(); ++c) {
    const double members =
        classes.count() > 2 ? y.col(c).sum() : (c == 1 ? y.sum() : rows - y.sum());
    const auto& label = classes.labels[static_cast<std::size_t>(c)];
    if (members == rows)
      throw DataError(
          fmt::format("all rows to learn from have class '{}'; there is nothing to learn", label));
    if (members == 0)
      out.push_back(fmt::format("no row to learn from has class '{}'", label));
    else if (members == 1)
      out.push_back(
          fmt::format("class '{}' has one row only; what is said of it rests on that row", label));
  }
  return out;
}

inference::Problem start_problem(const LatentFitOptions& options, ConstMatrixView x,
                                 std::unique_ptr<likelihoods::Likelihood> likelihood) {
  // The kernel's start values are those of regression on a target of variance one.
  Vector unit(x.rows());
  for (Index i = 0; i < unit.size(); ++i) unit(i) = i % 2 == 0 ? 1 : -1;
  auto kernel = models::start_problem(options.method, x, unit).kernel;
  return {std::move(kernel), std::move(likelihood)};
}

std::uint64_t run_identity(const data::Dataset& data, const LatentFitOptions& options,
                           const Plan& plan) {
  const auto& m = options.method;
  const auto& t = options.train;
  const std::string text =
      fmt::format("latent|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", version(), data.fingerprint,
                  options.likelihood, m.kernel, fmt::join(m.lengthscale, ","),
                  m.signal_variance.value_or(-1), m.seed, t.train, t.steps.value_or(-1), t.restarts,
                  t.probes, options.standardize) +
      fmt::format("|{}|{}|{}|{}", plan.train_method, plan.train_rows, plan.start_rows,
                  identity_of(plan.train_system));
  return fingerprint(text.data(), text.size());
}

std::unique_ptr<inference::LatentSystem> make_system(const inference::Problem& problem,
                                                     const Matrix& x,
                                                     const inference::SystemChoice& choice) {
  if (choice.solver == "cholesky")
    return std::make_unique<inference::DenseLatentSystem>(problem.kernel, x);
  return std::make_unique<inference::IterativeLatentSystem>(problem.kernel, x, choice);
}

struct Solved {
  inference::LaplaceMode mode;
  std::unique_ptr<inference::LatentSystem> system;
};

// Kernel conjugate gradients: the same mode, in the function space. A gap of g above the least loss
// is a distance of at most sqrt(2 g) in the norm of that space.
inference::LaplaceMode kernel_cg_mode(const inference::Problem& problem,
                                      const inference::LatentData& data,
                                      const inference::SystemChoice& choice, double tolerance,
                                      const ProgressCallback& progress, StopReason& stop,
                                      int& iterations) {
  const auto k = inference::make_operators(problem.kernel, data.x, choice.op,
                                           inference::SolvePrecision::float64);
  inference::LaplaceMode start;
  start.a = Matrix::Zero(data.size(), data.functions());
  const Matrix signs = (2 * data.y.array() - 1).matrix();
  const double prior = problem.kernel.diagonal(data.x).maxCoeff();
  const Observer observer = [&](const Iteration& it) {
    return progress
               ? progress({"solve", -1,
                           fmt::format("iteration {}, relative gap {:.1e}", it.number, it.value)})
               : Action::proceed;
  };
  krylov::KernelCgOptions options;
  options.tolerance = tolerance;
  // A gap is asked for that bounds the latent mean: sqrt(2 g k**) <= tolerance.
  for (iterations = 0; iterations < choice.max_iterations;) {
    options.max_iterations = choice.max_iterations - iterations;
    const auto result = krylov::kernel_cg(*k.exact, {krylov::KernelLoss::logistic, 1.0}, signs,
                                          start.a, options, observer);
    iterations += std::max(1, result.iterations);
    start.matvecs += result.matvecs;
    stop = result.stop;
    const double bound = std::sqrt(2 * prior * std::max(0.0, result.gap.maxCoeff()));
    if (stop != StopReason::converged || bound <= tolerance) return start;
    options.tolerance *= 1e-3;
    stop = StopReason::iteration_limit;
  }
  return start;
}

Solved solve(const inference::Problem& problem, const inference::LatentData& data, const Plan& plan,
             double tolerance, inference::LaplaceMode start, const ProgressCallback& progress) {
  Solved out;
  auto choice = plan.system;
  const bool by_kernel_cg = choice.solver == "kcg";
  StopReason stop = StopReason::converged;
  int iterations = 0;
  std::int64_t products = 0;
  inference::NewtonOptions options;
  options.tolerance = tolerance;
  if (by_kernel_cg) {
    choice.solver = "cg";
    start = kernel_cg_mode(problem, data, plan.system, tolerance, progress, stop, iterations);
    if (stop == StopReason::interrupted) throw Interrupted("interrupted during the iterations");
    products = start.matvecs;
    options.tolerance = 1e300;  // found: only measured
  }
  out.system = make_system(problem, data.x, choice);
  out.mode = inference::find_mode(
      problem, data, *out.system, std::move(start), options, [&](const Iteration& it) {
        return progress ? progress({"solve", -1,
                                    fmt::format("Newton step {}, {:.1e}, to fall below {:.1e}",
                                                it.number, it.value, it.target)})
                        : Action::proceed;
      });
  if (out.mode.stop == StopReason::interrupted)
    throw Interrupted("interrupted while the mode was being found");
  if (by_kernel_cg) {
    const double bound =
        std::sqrt(problem.kernel.diagonal(data.x).maxCoeff()) * out.mode.residual.maxCoeff();
    out.mode.stop = bound <= tolerance              ? StopReason::converged
                    : stop == StopReason::converged ? StopReason::stagnation
                                                    : stop;
    out.mode.iterations = iterations;
    out.mode.matvecs += products;
  }
  return out;
}

LatentModel solved_model(const inference::Problem& problem, const inference::LatentData& data,
                         const inference::LaplaceMode& mode) {
  LatentModel model;
  model.problem = problem;
  model.x = data.x;
  model.a = mode.a;
  model.w = mode.w;
  model.offset = data.offset;
  model.certificate.residual = mode.residual;
  model.certificate.mean_error_bound =
      std::sqrt(problem.kernel.diagonal(data.x).maxCoeff()) * mode.residual.maxCoeff();
  model.certificate.rigorous = problem.likelihood->log_concave();
  return model;
}

// log|B| by Lanczos quadrature where it can be had, else why it cannot.
LikelihoodValue estimated_evidence(double psi, const inference::IterativeLatentSystem& system,
                                   std::uint64_t seed, const ProgressCallback& progress) {
  LikelihoodValue out;
  out.method = "none";
  if (system.preconditioner() == nullptr) {
    out.reason = "its log determinant needs a preconditioner";
    return out;
  }
  inference::LogDeterminant det;
  try {
    det = inference::log_determinant(
        system.b(), *system.preconditioner(),
        {.probes = kLikelihoodProbes, .tolerance = 1e-3, .max_iterations = 300, .seed = seed},
        [&](const Iteration&) {
          return progress ? progress({"likelihood", -1, ""}) : Action::proceed;
        });
  } catch (const InvalidArgument&) {
    out.reason = "this preconditioner has no log determinant";
    return out;
  }
  if (det.stop == StopReason::interrupted) throw Interrupted("interrupted at the likelihood");
  if (!det.positive) {
    out.reason = "the quadrature of its log determinant broke down";
    return out;
  }
  return lanczos_likelihood(psi, det, kLikelihoodProbes);
}

LikelihoodValue evidence_of(const Solved& solved, std::uint64_t seed,
                            const ProgressCallback& progress) {
  LikelihoodValue out;
  out.method = "none";
  const double psi = solved.mode.psi();
  if (solved.mode.stop != StopReason::converged) {
    out.reason = "the mode was not found";
  } else if (auto* dense = dynamic_cast<inference::DenseLatentSystem*>(solved.system.get())) {
    out.known = true;
    out.method = "cholesky";
    out.value = out.low = out.high = psi - 0.5 * dense->log_det();
  } else {
    out = estimated_evidence(
        psi, dynamic_cast<const inference::IterativeLatentSystem&>(*solved.system), seed, progress);
  }
  out.rows = solved.mode.a.rows();
  return out;
}

nlohmann::json fit_record(const data::Dataset& data, const LatentFitOptions& options,
                          const LatentFitResult& result) {
  auto record = common_record(data, options, result);
  record["newton_steps"] = result.newton_steps;
  record["stop"] = std::string(to_string(result.stop));
  return record;
}

ClassificationScores score(LatentModel model, const LatentValidation& validation) {
  PredictOptions options;
  options.variance.method = model.map_only ? "none" : "vecchia";
  if (!model.map_only) options.variance.check_rows = 0;
  const LatentPredictor predictor(std::move(model), options);
  const auto& classes = predictor.model().classes;
  std::vector<Index> truth;
  for (const double value : validation.target) {
    const auto place = classes.find(value);
    if (!place)
      throw DataError(
          fmt::format("the validation file holds class {}, which is not learned", value));
    truth.push_back(*place);
  }
  ClassScoreKeeper keeper;
  keeper.add(predictor.predict(validation.inputs).probabilities, truth);
  return keeper.scores();
}

double median(Vector values) {
  auto* middle = values.data() + values.size() / 2;
  std::nth_element(values.data(), middle, values.data() + values.size());
  return *middle;
}

data::Scaling latent_scaling(const data::Dataset& data, const LatentFitOptions& options,
                             const likelihoods::Likelihood& likelihood) {
  auto scaling = options.standardize ? data::fit_scaling(data.inputs, data.target)
                                     : data::Scaling::identity(data.inputs.cols());
  if (!likelihood.scalable()) {
    scaling.target_mean = 0;
    scaling.target_sd = 1;
  } else if (options.standardize) {
    // Outliers may not set the scale: median and median absolute deviation, where that is not zero.
    const double middle = median(data.target);
    const double spread = 1.4826 * median((data.target.array() - middle).abs());
    scaling.target_mean = middle;
    if (spread > 0) scaling.target_sd = spread;
  }
  return scaling;
}

// Inputs, targets and offsets on the scale the model works on.
inference::LatentData latent_data(const data::Dataset& data, const Classes& classes,
                                  const likelihoods::Likelihood& likelihood,
                                  const data::Scaling& scaling) {
  inference::LatentData out;
  out.x = data.inputs;
  scaling.scale_inputs(out.x);
  if (classes.count() > 0) {
    out.y = classes.indicators(data.target);
  } else {
    Vector y = data.target;
    scaling.scale_target(y);
    out.y = y;
  }
  out.offset.resize(out.y.cols());
  for (Index c = 0; c < out.y.cols(); ++c) out.offset(c) = likelihood.offset(out.y.col(c));
  return out;
}

void report(const Solved& solved, LatentFitResult& result) {
  result.stop = solved.mode.stop;
  result.newton_steps = solved.mode.steps;
  result.halvings = solved.mode.halvings;
  result.iterations = solved.mode.iterations;
  result.matvecs = solved.mode.matvecs;
  if (const auto* system =
          dynamic_cast<const inference::IterativeLatentSystem*>(solved.system.get()))
    result.preconditioner = system->preconditioner_report();
  else
    result.preconditioner.name = "none";
}

// Everything that is known before any work: what to do it on, and how.
struct Prepared {
  data::Scaling scaling;
  inference::LatentData rows;
  inference::Problem problem;
  std::vector<std::string> warnings;
  Plan plan;
};

Prepared prepare(const data::Dataset& data, const LatentFitOptions& options,
                 const Classes& classes) {
  check(options.method);
  check(options.train);
  auto likelihood = likelihoods::make(options.likelihood);
  check_request(data, options, classes, *likelihood);
  auto scaling = latent_scaling(data, options, *likelihood);
  auto rows = latent_data(data, classes, *likelihood, scaling);
  std::vector<std::string> warnings;
  if (classes.count() > 0) warnings = class_warnings(classes, rows.y);
  auto problem = start_problem(options, rows.x, std::move(likelihood));
  auto plan = plan_latent(problem.kernel, rows.x, rows.functions(), options.method, options.train);
  return {std::move(scaling), std::move(rows), std::move(problem), std::move(warnings),
          std::move(plan)};
}

}  // namespace

Plan plan_latent_fit(const data::Dataset& data, const LatentFitOptions& options,
                     const Classes& classes) {
  return prepare(data, options, classes).plan;
}

LatentFitResult fit_latent(const data::Dataset& data, const LatentFitOptions& options,
                           const Classes& classes, const ProgressCallback& progress,
                           const LatentValidation* validation) {
  const Timer timer;
  auto prepared = prepare(data, options, classes);
  const auto& rows = prepared.rows;
  auto& problem = prepared.problem;
  LatentFitResult result;
  result.warnings = std::move(prepared.warnings);
  result.plan = std::move(prepared.plan);

  const auto finish_model = [&](LatentModel model) {
    model.schema = data.schema;
    model.scaling = prepared.scaling;
    model.classes = classes;
    model.map_only = options.map_only;
    model.method = options.method;
    return model;
  };
  inference::LaplaceMode start;
  if (result.plan.trains) {
    LatentStepObserver on_step;
    if (validation != nullptr)
      on_step = [&](const inference::Problem& here, int step, double seconds) {
        const auto solved = solve(here, rows, result.plan, 1e-3, start, {});
        start.a = solved.mode.a;
        validation->on_step(
            {step, seconds,
             score(finish_model(solved_model(here, rows, solved.mode)), *validation)});
      };
    auto trained = train_latent(problem, rows, result.plan, options.train, options.method.seed,
                                run_identity(data, options, result.plan), progress, on_step);
    problem = std::move(trained.problem);
    result.training = std::move(trained.report);
    start = std::move(trained.mode);
  }

  const Timer solving;
  auto solved =
      solve(problem, rows, result.plan, options.method.tolerance, std::move(start), progress);
  report(solved, result);
  result.solve_seconds = solving.seconds();
  result.model = finish_model(solved_model(problem, rows, solved.mode));
  result.likelihood = evidence_of(solved, options.method.seed, progress);
  result.model.record = fit_record(data, options, result);
  result.seconds = timer.seconds();
  return result;
}

void LatentScoreKeeper::add(ConstVectorView target, const LatentPredictions& predictions,
                            ConstVectorView log_density) {
  plain_.add(target, predictions.mean, Vector());
  n_ += target.size();
  log_density_ += log_density.sum();
  for (Index i = 0; i < target.size(); ++i) {
    inside90_ += predictions.q05(i) <= target(i) && target(i) <= predictions.q95(i);
    inside95_ += predictions.q025(i) <= target(i) && target(i) <= predictions.q975(i);
  }
}

RegressionScores LatentScoreKeeper::scores() const {
  auto out = plain_.scores();
  out.has_sd = true;
  out.crps = std::numeric_limits<double>::quiet_NaN();
  const auto n = static_cast<double>(std::max<Index>(n_, 1));
  out.nll = -log_density_ / n;
  out.coverage90 = static_cast<double>(inside90_) / n;
  out.coverage95 = static_cast<double>(inside95_) / n;
  return out;
}

}  // namespace mercer::models
