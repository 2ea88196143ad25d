// Laplace's approximation: classes, counts, numbers with outliers, and kernel logistic regression,
// which is the mode of a logit model without its uncertainty.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/krylov/kernel_cg.hpp"
#include "mercer/models/fit_method.hpp"
#include "mercer/models/laplace_training.hpp"
#include "mercer/models/likelihood_value.hpp"
#include "mercer/models/scaled_data.hpp"

namespace mercer::models {
namespace {

// The log determinant of an iterative fit, for its likelihood.
constexpr Index kLikelihoodProbes = 10;
// Of the latent mean, when a step of learning is only watched.
constexpr double kWatchingTolerance = 1e-3;

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
void check_request(const data::Dataset& data, const FitOptions& options,
                   const likelihoods::Likelihood& likelihood) {
  const auto& classes = options.classes;
  if (likelihood.is_binary() != (classes.count() > 0))
    throw InvalidArgument(fmt::format(
        "the likelihood {} is {}", options.likelihood,
        likelihood.is_binary() ? "one of classes; say --task classification"
                               : "not one of classes; give bernoulli-logit or bernoulli-probit"));
  if (options.method.noise)
    throw InvalidArgument(
        "--noise is that of Gaussian regression; the likelihood has its own spread");
  if (data.noise.variance.size() > 0)
    throw InvalidArgument("known noise variances are those of Gaussian regression");
  if (options.method.solver == "kcg" && data.noise.count.size() > 0)
    throw InvalidArgument("--solver kcg needs the same weight in all rows; take another solver");
  if (options.method.solver == "kcg" && likelihood.text() != "bernoulli-logit")
    throw InvalidArgument(fmt::format(
        "--solver kcg minimises the logistic loss; the likelihood {} is for cg or cholesky",
        likelihood.text()));
  if (options.method.solver == "kcg" && options.method.mean != "zero")
    throw InvalidArgument(
        "--solver kcg minimises a loss without a mean; leave --mean out, or take cg");
  inference::check_coupling(likelihood, inference::mean_kind(options.method.mean),
                            options.method.preconditioner);
  if (classes.count() == 0) check_target(likelihood, data);
}

// Throws DataError when all rows have the same class.
std::vector<std::string> class_warnings(const Classes& classes, const Matrix& y) {
  std::vector<std::string> out;
  const auto rows = static_cast<double>(y.rows());
  for (Index c = 0; c < classes.count(); ++c) {
    const double members = y.cols() > 1 ? y.col(c).sum() : (c == 1 ? y.sum() : rows - y.sum());
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

std::unique_ptr<inference::LaplaceSystem> make_system(const inference::Problem& problem,
                                                      const Matrix& x,
                                                      const inference::SystemChoice& choice) {
  if (choice.solver == "cholesky")
    return std::make_unique<inference::DenseLaplaceSystem>(problem.kernel, x);
  return std::make_unique<inference::IterativeLaplaceSystem>(problem.kernel, x, choice);
}

// Kernel conjugate gradients: the same mode, in the function space. A gap of g above the least loss
// is a distance of at most sqrt(2 g) in the norm of that space.
inference::LaplaceMode kernel_cg_mode(const inference::Problem& problem,
                                      const inference::Observations& data,
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

double median(Vector values) {
  auto* middle = values.data() + values.size() / 2;
  std::nth_element(values.data(), middle, values.data() + values.size());
  return *middle;
}

data::Scaling laplace_scaling(const data::Dataset& data, const FitOptions& options,
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
inference::Observations laplace_data(const data::Dataset& data, const Classes& classes,
                                     const likelihoods::Likelihood& likelihood,
                                     const data::Scaling& scaling) {
  inference::Observations out;
  out.x = data.inputs;
  scaling.scale_inputs(out.x);
  if (classes.count() > 0) {
    out.y = classes.indicators(data.target, likelihood.coupled() != nullptr);
  } else {
    Vector y = data.target;
    scaling.scale_target(y);
    out.y = y;
  }
  check_noise_columns(data.noise, data.size());
  out.noise.weight = data.noise.count;
  out.offset.resize(out.y.cols());
  for (Index c = 0; c < out.y.cols(); ++c) out.offset(c) = likelihood.offset(out.y.col(c));
  return out;
}

// The noise that the systems K + W^-1 will have, by the curvatures at the offset: 4 for classes.
double expected_noise(const likelihoods::Likelihood& likelihood,
                      const inference::Observations& rows) {
  return 1 / std::max(inference::mean_curvature(likelihood, rows), 1e-300);
}

class LaplaceFit final : public FitMethod {
 public:
  LaplaceFit(const data::Dataset& data, const FitOptions& options) : options_(options.method) {
    auto likelihood = likelihoods::make(options.likelihood);
    check_request(data, options, *likelihood);
    scaling = laplace_scaling(data, options, *likelihood);
    rows_ = laplace_data(data, options.classes, *likelihood, scaling);
    if (options.classes.count() > 0) warnings = class_warnings(options.classes, rows_.y);
    // f is of order one whatever the target, so the start values are those of a variance of one.
    const auto mean = inference::mean_kind(options.method.mean);
    start = {start_kernel(options.method, data.schema, rows_.x, 1.0), std::move(likelihood), mean,
             inference::dependent_inputs(mean, rows_.x)};
    plan = plan_laplace(start.kernel, expected_noise(*start.likelihood, rows_), rows_.x,
                        {rows_.functions(), start.likelihood->coupled() != nullptr}, options.method,
                        options.train);
  }

  Learned learn(const LearnRequest& request) override {
    auto trained = train_laplace(start, rows_, plan, request);
    mode_ = std::move(trained.mode);
    return std::move(trained.learned);
  }

  Posterior posterior(const inference::Problem& problem, const PosteriorRequest& request,
                      const ProgressCallback& progress) override;
  Matrix& points() override { return rows_.x; }

 private:
  struct Found {
    inference::LaplaceMode mode;
    std::unique_ptr<inference::LaplaceSystem> system;
  };
  Found find(const inference::Problem& problem, double tolerance, const ProgressCallback& progress);
  Found find_by_kernel_cg(const inference::Problem& problem, double tolerance,
                          const ProgressCallback& progress);
  // Newton's method from `start`, or only what is known there when no step is allowed.
  Found newton(const inference::Problem& problem, inference::LaplaceMode from,
               const inference::NewtonOptions& options, const inference::SystemChoice& choice,
               const ProgressCallback& progress) const;
  LikelihoodValue evidence(const Found& found, const ProgressCallback& progress) const;

  MethodOptions options_;
  inference::Observations rows_;
  inference::LaplaceMode mode_;  // where the next one is looked for from
};

LaplaceFit::Found LaplaceFit::newton(const inference::Problem& problem, inference::LaplaceMode from,
                                     const inference::NewtonOptions& options,
                                     const inference::SystemChoice& choice,
                                     const ProgressCallback& progress) const {
  Found out;
  out.system = make_system(problem, rows_.x, choice);
  out.mode = inference::find_mode(
      problem, rows_, *out.system, std::move(from), options, [&](const Iteration& it) {
        return progress ? progress({"solve", -1,
                                    fmt::format("Newton step {}, {:.1e}, to fall below {:.1e}",
                                                it.number, it.value, it.target)})
                        : Action::proceed;
      });
  if (out.mode.stop == StopReason::interrupted)
    throw Interrupted("interrupted while the mode was being found");
  return out;
}

LaplaceFit::Found LaplaceFit::find_by_kernel_cg(const inference::Problem& problem, double tolerance,
                                                const ProgressCallback& progress) {
  StopReason stop = StopReason::converged;
  int iterations = 0;
  auto found = kernel_cg_mode(problem, rows_, plan.system, tolerance, progress, stop, iterations);
  if (stop == StopReason::interrupted) throw Interrupted("interrupted during the iterations");
  const auto products = found.matvecs;
  auto choice = plan.system;
  choice.solver = "cg";
  auto out =
      newton(problem, std::move(found), {.tolerance = tolerance, .max_steps = 0}, choice, progress);
  if (out.mode.stop != StopReason::converged && stop == StopReason::converged)
    stop = StopReason::stagnation;
  if (out.mode.stop != StopReason::converged) out.mode.stop = stop;
  out.mode.iterations = iterations;
  out.mode.matvecs += products;
  return out;
}

LaplaceFit::Found LaplaceFit::find(const inference::Problem& problem, double tolerance,
                                   const ProgressCallback& progress) {
  if (plan.system.solver == "kcg") return find_by_kernel_cg(problem, tolerance, progress);
  return newton(problem, std::move(mode_), {.tolerance = tolerance}, plan.system, progress);
}

// psi - log|B|/2, by Lanczos quadrature where there is no factor, or why it is not known.
LikelihoodValue LaplaceFit::evidence(const Found& found, const ProgressCallback& progress) const {
  LikelihoodValue out;
  out.method = "none";
  const double psi = found.mode.psi();
  if (found.mode.stop != StopReason::converged) {
    out.reason = "the mode was not found";
  } else {
    const auto det = found.system->log_determinant(
        {.probes = kLikelihoodProbes,
         .tolerance = 1e-3,
         .max_iterations = 300,
         .seed = options_.seed},
        [&](const Iteration&) {
          return progress ? progress({"likelihood", -1, ""}) : Action::proceed;
        });
    if (det.estimate.stop == StopReason::interrupted)
      throw Interrupted("interrupted at the likelihood");
    out.reason = det.reason;
    if (det.exact) {
      out.known = true;
      out.method = "cholesky";
      out.value = out.low = out.high = psi - 0.5 * det.estimate.value;
    } else if (det.reason.empty()) {
      out = lanczos_likelihood(psi, det.estimate, kLikelihoodProbes);
    }
  }
  out.rows = found.mode.a.rows();
  return out;
}

Posterior LaplaceFit::posterior(const inference::Problem& problem, const PosteriorRequest& request,
                                const ProgressCallback& progress) {
  const Timer timer;
  const double tolerance = request.watching ? kWatchingTolerance : options_.tolerance;
  auto found = find(problem, tolerance, progress);
  const auto& mode = found.mode;
  Posterior out;
  for (Index c = 0; c < rows_.functions(); ++c) {
    LatentFunction f;
    f.weights.w = mode.a.col(c);
    const Index q = mode.beta.rows();
    f.weights.basis_solves.resize(rows_.size(), q);
    if (q > 0) {
      f.weights.basis_solves = mode.basis_solves.middleCols(c * q, q);
      f.weights.beta = mode.beta.col(c);
      f.weights.beta_covariance = mode.beta_covariance.middleCols(c * q, q);
    }
    f.curvature = mode.w.col(c);
    f.offset = rows_.offset(c);
    out.functions.push_back(std::move(f));
  }
  out.certificate.residual = mode.residual;
  out.certificate.mean_error_bound = scaling.unscale_width(
      std::sqrt(problem.kernel.diagonal(rows_.x).maxCoeff()) * mode.residual.maxCoeff());
  // A flat prior of the trend leaves its coefficients without a strongly convex loss.
  out.certificate.rigorous =
      problem.likelihood->log_concave() && problem.mean == inference::MeanKind::zero;
  out.certificate.trend_defect = mode.trend_defect;
  out.certificate.trend_residual = mode.trend_residual;
  out.solve.stop = mode.stop;
  out.solve.iterations = mode.iterations;
  out.solve.matvecs = mode.matvecs;
  out.newton_steps = mode.steps;
  out.halvings = mode.halvings;
  out.preconditioner = found.system->preconditioner_report();
  out.solve.seconds = timer.seconds();
  if (request.with_evidence) out.evidence = evidence(found, progress);
  if (request.watching) mode_.a = mode.a;
  return out;
}

}  // namespace

std::unique_ptr<FitMethod> make_laplace_fit(const data::Dataset& data, const FitOptions& options) {
  return std::make_unique<LaplaceFit>(data, options);
}

}  // namespace mercer::models
