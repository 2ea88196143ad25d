// Kernel conjugate gradients: the posterior mean of regression, or the mode of a logistic model, in
// the function space, with a duality gap for a bound. No evidence.
//   Source: Ratliff & Bagnell (2007).
//   Cost:   one product with K an iteration.
#include "mercer/krylov/kernel_cg.hpp"

#include <fmt/format.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/inference/entries.hpp"
#include "mercer/inference/exact/gaussian_posterior.hpp"
#include "mercer/inference/laplace/laplace_posterior.hpp"
#include "mercer/krylov/registry.hpp"

namespace mercer::inference {
namespace {

constexpr std::string_view kKernelCgSolver = "kcg";  // of its solver

struct Iterations {
  StopReason stop = StopReason::converged;
  int count = 0;
  std::int64_t matvecs = 0;
};

// A gap of g above the least loss is a distance of at most sqrt(2 g) in the norm of the function
// space, so that sqrt(2 g k**) <= tolerance is asked for.
Matrix minimise(const Problem& problem, const Observations& rows, const SystemChoice& choice,
                double tolerance, const ProgressCallback& progress, Iterations& done) {
  const auto k = make_operators(problem.kernel, rows.x, choice.op, SolvePrecision::float64);
  Matrix a = Matrix::Zero(rows.size(), rows.functions());
  const Matrix signs = (2 * rows.y.array() - 1).matrix();
  const double prior = problem.kernel.diagonal(rows.x).maxCoeff();
  const Observer observer = [&](const Iteration& it) {
    return progress
               ? progress({"solve", -1,
                           fmt::format("iteration {}, relative gap {:.1e}", it.number, it.value)})
               : Action::proceed;
  };
  krylov::KernelCgOptions options;
  options.tolerance = tolerance;
  while (done.count < choice.max_iterations) {
    options.max_iterations = choice.max_iterations - done.count;
    const auto result = krylov::kernel_cg(*k.exact, {krylov::KernelLoss::logistic, 1.0}, signs, a,
                                          options, observer);
    done.count += std::max(1, result.iterations);
    done.matvecs += result.matvecs;
    done.stop = result.stop;
    const double bound = std::sqrt(2 * prior * std::max(0.0, result.gap.maxCoeff()));
    if (done.stop != StopReason::converged || bound <= tolerance) break;
    options.tolerance *= 1e-3;
    done.stop = StopReason::iteration_limit;
  }
  return a;
}

// Least squares in the function space of K: H x = b with H = K + s2 I. Its gap bounds the residual
// only from one side, so it is asked for more until the residual itself is small enough.
SystemReport solve_in_function_space(const IterativeSystem& system, ConstMatrixView b, MatrixView x,
                                     double tolerance, const Observer& observer, Matrix* residual) {
  if (!system.noise.uniform())
    throw InvalidArgument("`solver=kcg` needs the same noise in all rows; take another solver");
  const krylov::RegularizedLoss problem{krylov::KernelLoss::squared, system.noise(0)};
  krylov::KernelCgOptions options;
  options.tolerance = tolerance * tolerance;
  SystemReport report;
  while (report.iterations < system.choice.max_iterations) {
    options.max_iterations = system.choice.max_iterations - report.iterations;
    const auto result = krylov::kernel_cg(*system.k.exact, problem, b, x, options, observer);
    report.iterations += std::max(1, result.iterations);
    report.matvecs += result.matvecs;
    report.stop = result.stop;
    measure_residual(system.k, system.noise, b, x, residual, report);
    if (report.relative_residual <= tolerance) break;
    if (result.stop != StopReason::converged) return report;
    report.stop = StopReason::iteration_limit;
    options.tolerance *= 0.01;
  }
  if (report.relative_residual <= tolerance) report.stop = StopReason::converged;
  return report;
}

class KernelCg final : public Inference {
 public:
  explicit KernelCg(const InferenceSetup& setup) : setup_(setup) {}

  Evidence evaluate(const Problem& /*at*/, const Ask& /*ask*/,
                    const Observer& /*observer*/) override {
    throw InvalidArgument("kernel conjugate gradients have no evidence");
  }
  Posterior posterior(const Problem& at, const PosteriorRequest& request,
                      const ProgressCallback& progress) override {
    const auto& rows = setup_.rows;
    if (at.gaussian())
      return gaussian_posterior(at, rows, setup_.system, setup_.seed, request, progress);
    const Timer timer;
    Iterations done;
    LaplaceMode start;
    start.a = minimise(at, rows, setup_.system, request.tolerance, progress, done);
    if (done.stop == StopReason::interrupted)
      throw Interrupted("interrupted during the iterations");
    // What else is known at the mode is found by preconditioned solves; the plan leaves a rank
    // where there is memory for it.
    auto choice = setup_.system;
    choice.solver = krylov::default_solver().name;
    choice.preconditioner = choice.preconditioning.rank ? "auto" : "none";
    auto found = find_posterior_mode(
        at, rows, choice, std::move(start),
        {.tolerance = request.tolerance, .max_steps = 0, .with_change = true}, progress);
    auto& mode = found.mode;
    if (mode.stop != StopReason::converged && done.stop == StopReason::converged)
      done.stop = StopReason::stagnation;
    if (mode.stop != StopReason::converged) mode.stop = done.stop;
    mode.iterations = done.count;
    mode.matvecs += done.matvecs;
    auto out = laplace_posterior(at, rows, found, request, setup_.seed, progress);
    out.solve.seconds = timer.seconds();
    out.preconditioner = {.name = "none"};  // of the mode
    return out;
  }

 private:
  InferenceSetup setup_;
};

std::string refusal(const Problem& problem, const Observations& rows) {
  if (!rows.noise.uniform())
    return problem.gaussian() ? "`solver=kcg` needs the same noise in all rows; take another solver"
                              : "`solver=kcg` needs the same weight in all rows; take another "
                                "solver";
  if (problem.gaussian()) return {};
  if (problem.likelihood->text() != "bernoulli-logit")
    return fmt::format(
        "`solver=kcg` minimises the logistic loss; the likelihood {} is for cg or cholesky",
        problem.likelihood->text());
  if (problem.mean != MeanKind::zero)
    return "`solver=kcg` minimises a loss without a mean; leave `mean` out, or take cg";
  return {};
}

EvaluationCost cost(const CostSetting& s) { return {krylov::kernel_cg_bytes(s.n, s.columns), 0}; }

}  // namespace

InferenceInfo kernel_cg_info() {
  return {.name = "kernel-cg",
          .summary = "kernel conjugate gradients: posterior mean or logistic mode, no evidence",
          .abilities = {},
          .refusal = refusal,
          .takes_solver = [](std::string_view solver) { return solver == kKernelCgSolver; },
          .cost = cost,
          .make = [](const InferenceSetup& setup) -> std::unique_ptr<Inference> {
            return std::make_unique<KernelCg>(setup);
          },
          .solver =
              SystemSolver{
                  .name = kKernelCgSolver,
                  .summary = "kernel conjugate gradients in the function space, with a duality gap",
                  .takes_preconditioner = false,
                  .double_only = true,
                  .takes_row_noise = false,
                  .bytes = [](Index n, Index columns,
                              bool) { return krylov::kernel_cg_bytes(n, columns); },
                  .solve = solve_in_function_space}};
}

}  // namespace mercer::inference
