#include "mercer/inference/system.hpp"

#include <limits>

#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/inference/adaptive.hpp"
#include "mercer/inference/solvers.hpp"
#include "mercer/krylov/energy_error.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/linalg/linear_operator.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "mercer/preconditioners/registry.hpp"

namespace mercer::inference {
namespace {

using operators::Precision;

// Factors K + D; when rounding makes that impossible, adds the least jitter of a short
// ladder that helps. Returns the jitter added.
double factor_with_jitter(const kernels::Kernel& kernel, const linalg::Diagonal& noise,
                          const Matrix& x, std::optional<linalg::Cholesky>& factor) {
  double jitter = 0;
  for (const double relative : {0.0, 1e-10, 1e-8, 1e-6}) {
    Matrix h(x.rows(), x.rows());
    operators::dense_matrix(kernel, x, h);
    jitter = relative * h.diagonal().mean();
    h.diagonal() += noise.plus(jitter).vector(x.rows());
    try {
      factor.emplace(std::move(h));
      return jitter;
    } catch (const NotPositiveDefinite&) {
      if (relative == 1e-6) throw;
    }
  }
  return jitter;
}

}  // namespace

std::string_view to_string(SolvePrecision precision) {
  switch (precision) {
    case SolvePrecision::float64:
      return "double";
    case SolvePrecision::mixed:
      return "mixed";
    case SolvePrecision::float32:
      return "single";
  }
  return "unknown";
}

Operators make_operators(const kernels::Kernel& kernel, const Matrix& x, std::string_view op,
                         SolvePrecision precision) {
  if (precision == SolvePrecision::float64)
    return {operators::make(op, kernel, x, Precision::float64), nullptr};
  return {operators::make(operators::default_operator().name, kernel, x, Precision::float64),
          operators::make(op, kernel, x, Precision::float32)};
}

Vector energy_errors(const krylov::SolveResult& result) {
  Vector out(static_cast<Index>(result.coefficients.size()));
  for (Index j = 0; j < out.size(); ++j)
    out(j) = krylov::energy_error(result.coefficients[static_cast<std::size_t>(j)])
                 .value_or(std::numeric_limits<double>::infinity());
  return out;
}

void measure_residual(const Operators& k, const linalg::Diagonal& noise, ConstMatrixView b,
                      ConstMatrixView x, Matrix* handed_out, SystemReport& report) {
  Matrix r(b.rows(), b.cols());
  k.exact->apply(x, r);
  r = b - r;
  noise.add_product(-1.0, x, r);
  report.residual_norms = r.colwise().norm();
  report.relative_residual = 0;
  for (Index j = 0; j < b.cols(); ++j) {
    const double scale = b.col(j).norm();
    report.relative_residual =
        std::max(report.relative_residual, report.residual_norms(j) / (scale > 0 ? scale : 1.0));
  }
  report.matvecs += b.cols();
  if (handed_out != nullptr) *handed_out = std::move(r);
}

krylov::SolverOptions solver_options(const SystemChoice& choice, double tolerance) {
  krylov::SolverOptions options;
  options.tolerance = tolerance;
  options.max_iterations = choice.max_iterations;
  options.stagnation_window = choice.stagnation_window;
  options.random_stop = choice.random_stop;
  return options;
}

SystemReport report_of(krylov::SolveResult result) {
  SystemReport report;
  report.fell_back_to_double = result.fell_back_to_double;
  report.stop = result.stop;
  report.iterations = result.iterations;
  report.inner_iterations = static_cast<int>(result.inner_iterations);
  report.matvecs = result.total_matvecs();
  report.energy_errors = energy_errors(result);
  report.residuals = std::move(result.residuals);
  report.random_stops = std::move(result.random_stops);
  report.residual_norms = std::move(result.residual_norms);
  report.relative_residual = result.relative_residual;
  return report;
}

SystemReport solve_iteratively(const IterativeSystem& system, ConstMatrixView b, MatrixView x,
                               double tolerance, const Observer& observer, Matrix* residual,
                               krylov::Trail* trail) {
  if (const auto own = solver(system.choice.solver).solve)
    return own(system, b, x, tolerance, observer, residual);
  const auto& [k, noise, choice, preconditioner, adaptive] = system;
  auto options = solver_options(choice, tolerance);
  krylov::SolverContext context;
  context.preconditioner = preconditioner;
  context.observer = observer;
  context.residual = residual;
  context.trail = trail;
  const linalg::ShiftedOperator high(*k.exact, noise);
  const linalg::ShiftedOperator low(k.fast ? *k.fast : *k.exact, noise);
  if (choice.precision == SolvePrecision::mixed) context.low_precision = &low;
  const bool single = choice.precision == SolvePrecision::float32;
  const auto& method = krylov::solver(choice.solver);
  options.keep_coefficients = method.keeps_coefficients;
  const auto& a = single ? low : high;
  auto result = adaptive ? adaptive->solve(method, a, b, x, options, context)
                         : method.solve(a, b, x, options, context);
  auto report = report_of(std::move(result));
  if (single) {
    // What is promised is the residual in double: single precision may not claim more than that.
    measure_residual(k, noise, b, x, residual, report);
    if (report.stop == StopReason::converged && report.relative_residual > tolerance)
      report.stop = StopReason::stagnation;
  }
  return report;
}

struct RegularizedSystem::Impl {
  SystemChoice choice;
  linalg::Diagonal noise;
  double jitter = 0;
  double build_seconds = 0;
  preconditioners::BuildReport preconditioner_report{.name = "none"};
  std::shared_ptr<const Operators> k;
  std::unique_ptr<linalg::Preconditioner> preconditioner;
  std::unique_ptr<Adaptive> adaptive;  // instead, when the choice is "auto"
  std::optional<linalg::Cholesky> factor;

  void build(std::shared_ptr<const Operators> products, linalg::Diagonal d, SystemChoice how);
  void build_preconditioner();
  SystemReport solve_directly(ConstMatrixView b, MatrixView x, Matrix* handed_out) const;
};

void RegularizedSystem::Impl::build(std::shared_ptr<const Operators> products, linalg::Diagonal d,
                                    SystemChoice how) {
  k = std::move(products);
  noise = std::move(d);
  choice = std::move(how);
  noise.require_size(k->exact->size(), "system");
  noise.require_positive("system");
  if (!choice.direct()) return build_preconditioner();
  jitter = factor_with_jitter(k->exact->kernel(), noise, k->exact->points(), factor);
  if (jitter > 0) noise = noise.plus(jitter);
}

void RegularizedSystem::Impl::build_preconditioner() {
  const auto& kernel = k->exact->kernel();
  const preconditioners::Target target{*k->exact, noise, k->fast.get()};
  if (choice.preconditioner == "auto") {
    AdaptiveOptions options{.speeds = nominal_speeds(kernel, k->exact->points().cols()),
                            .op = choice.op,
                            .precision = choice.precision,
                            .max_rank = choice.preconditioning.rank.value_or(kAdaptiveMaxRank),
                            .expected_solves = choice.expected_solves,
                            .seed = choice.preconditioning.seed};
    adaptive = std::make_unique<Adaptive>(target, std::move(options));
    return;
  }
  auto built = preconditioners::make(choice.preconditioner, target, choice.preconditioning);
  preconditioner = std::move(built.preconditioner);
  preconditioner_report = std::move(built.report);
}

SystemReport RegularizedSystem::Impl::solve_directly(ConstMatrixView b, MatrixView x,
                                                     Matrix* handed_out) const {
  SystemReport report;
  x = b;
  factor->solve_in_place(x);
  measure_residual(*k, noise, b, x, handed_out, report);
  report.stop =
      report.relative_residual <= choice.tolerance ? StopReason::converged : StopReason::stagnation;
  return report;
}

RegularizedSystem::RegularizedSystem(const kernels::Kernel& kernel, linalg::Diagonal noise,
                                     const Matrix& x, SystemChoice choice)
    : impl_(std::make_unique<Impl>()) {
  const Timer timer;
  // A factorisation needs products only to measure its residual.
  const bool direct = choice.direct();
  auto k = make_operators(kernel, x, direct ? operators::default_operator().name : choice.op,
                          direct ? SolvePrecision::float64 : choice.precision);
  impl_->build(std::make_shared<const Operators>(std::move(k)), std::move(noise),
               std::move(choice));
  impl_->build_seconds = timer.seconds();
}

RegularizedSystem::RegularizedSystem(std::shared_ptr<const Operators> k, linalg::Diagonal noise,
                                     SystemChoice choice)
    : impl_(std::make_unique<Impl>()) {
  const Timer timer;
  impl_->build(std::move(k), std::move(noise), std::move(choice));
  impl_->build_seconds = timer.seconds();
}

RegularizedSystem::~RegularizedSystem() = default;
RegularizedSystem::RegularizedSystem(RegularizedSystem&&) noexcept = default;

SystemReport RegularizedSystem::solve(ConstMatrixView b, MatrixView x,
                                      const Observer& observer) const {
  return solve(b, x, impl_->choice.tolerance, observer);
}

SystemReport RegularizedSystem::solve(ConstMatrixView b, MatrixView x, double tolerance,
                                      const Observer& observer, Matrix* residual,
                                      krylov::Trail* trail) const {
  if (b.rows() != impl_->k->exact->size())
    throw DimensionMismatch("solve: rows of b", b.rows(), "number of points",
                            impl_->k->exact->size());
  const Timer timer;
  const double built_before = impl_->adaptive ? impl_->adaptive->build_seconds() : 0;
  const IterativeSystem iterative{*impl_->k, impl_->noise, impl_->choice,
                                  impl_->preconditioner.get(), impl_->adaptive.get()};
  auto report = impl_->factor
                    ? impl_->solve_directly(b, x, residual)
                    : solve_iteratively(iterative, b, x, tolerance, observer, residual, trail);
  report.seconds = timer.seconds();
  if (impl_->adaptive) report.seconds -= impl_->adaptive->build_seconds() - built_before;
  return report;
}

const SystemChoice& RegularizedSystem::choice() const { return impl_->choice; }
const linalg::Diagonal& RegularizedSystem::noise() const { return impl_->noise; }
double RegularizedSystem::jitter() const { return impl_->jitter; }
double RegularizedSystem::build_seconds() const {
  return impl_->build_seconds + (impl_->adaptive ? impl_->adaptive->build_seconds() : 0);
}
const preconditioners::BuildReport& RegularizedSystem::preconditioner_report() const {
  return impl_->adaptive ? impl_->adaptive->report() : impl_->preconditioner_report;
}
const linalg::Cholesky* RegularizedSystem::factor() const {
  return impl_->factor ? &*impl_->factor : nullptr;
}

}  // namespace mercer::inference
