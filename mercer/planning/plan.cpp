#include "mercer/planning/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/planning/approximation_plan.hpp"
#include "mercer/planning/system_plan.hpp"
#include "mercer/planning/training_plan.hpp"
#include "mercer/planning/variance_plan.hpp"
#include "mercer/preconditioners/registry.hpp"

namespace mercer::planning {
namespace {

// Right-hand sides of variances that are solved for together.
constexpr Index kVarianceColumns = 64;
// What the solves of a check come to, for its estimate.
constexpr double kCheckTolerance = 1e-3;

// An operator or a preconditioner that the mathematics does not allow for this kernel or these
// data.
void refuse_unsuitable(const MethodOptions& method, const kernels::Kernel& kernel,
                       ConstMatrixView x) {
  if (method.op != "auto") {
    const auto reason =
        operators::refusal(operators::operators().find(method.op), kernel, x.rows(), x.cols());
    if (!reason.empty()) throw InvalidArgument(fmt::format("`operator={}`: {}", method.op, reason));
  }
  if (method.preconditioner == "auto") return;
  const auto& entry = preconditioners::preconditioner(method.preconditioner);
  if (entry.refusal == nullptr) return;
  const auto reason = entry.refusal(kernel, x.rows(), x.cols());
  if (!reason.empty())
    throw InvalidArgument(fmt::format("`preconditioner={}`: {}", entry.name, reason));
}

Plan begin_plan(const kernels::Kernel& kernel, ConstMatrixView x, const MethodOptions& method) {
  check(method);
  refuse_unsuitable(method, kernel, x);
  Plan plan;
  plan.n = x.rows();
  plan.d = x.cols();
  plan.calibration = calibrate(kernel, x);
  // An estimate, not the resident size of the moment: the same command makes the same plan. The
  // data are there twice, as read and as scaled.
  plan.base_bytes = base_bytes(x.rows(), x.cols());
  plan.budget_bytes = memory_budget(method, plan.base_bytes);
  plan.peak_bytes = plan.base_bytes;
  return plan;
}

System system_of(const kernels::Kernel& kernel, double noise, ConstMatrixView x) {
  const Index sample = std::min<Index>(x.rows(), 1000);
  return {.kernel = kernel,
          .n = x.rows(),
          .d = x.cols(),
          .noise = noise,
          .prior_variance = kernel.diagonal(x.topRows(sample)).mean()};
}

Plan plan_for_variances(System system, ConstMatrixView x, const MethodOptions& method,
                        const VarianceOptions& variance) {
  check(variance);
  Plan plan = begin_plan(system.kernel, x, method);
  system.purpose = PlanFor::predict;
  plan_variances(system, variance, plan, [&](const VarianceSolves& solves, Plan& into) {
    System some = system;
    some.rows = solves.rows;
    some.draws = solves.draws;
    MethodOptions how = method;
    if (solves.loose) how.tolerance = std::max(how.tolerance, kCheckTolerance);
    return plan_system(some, how, into);
  });
  return plan;
}

}  // namespace

double base_bytes(Index n, Index d) {
  return static_cast<double>(program_bytes) +
         16.0 * static_cast<double>(n) * static_cast<double>(d + 1);
}

double memory_budget(const MethodOptions& method, double base) {
  if (method.memory) return static_cast<double>(*method.memory);
  return base + 0.8 * static_cast<double>(available_memory_bytes());
}

Plan make_plan(const kernels::Kernel& kernel, double noise, ConstMatrixView x,
               const MethodOptions& method, PlanFor purpose, const VarianceOptions& variance) {
  auto system = system_of(kernel, noise, x);
  if (purpose == PlanFor::predict) {
    refuse_unbiased(method, "variances and draws need");
    system.columns = kVarianceColumns;
    return plan_for_variances(system, x, method, variance);
  }
  Plan plan = begin_plan(kernel, x, method);
  system.columns = 1 + inference::mean_basis_size(inference::mean_kind(method.mean), x.cols());
  plan_system(system, method, plan);
  return plan;
}

Plan plan_coupled_query(const inference::Problem& problem, double noise, ConstMatrixView x,
                        Index functions, MethodOptions method, const VarianceOptions& variance) {
  const auto text = problem.likelihood->text();
  if (variance.method == "vecchia")
    throw InvalidArgument(fmt::format(
        "`variance={}` takes each latent function by itself, and the likelihood {} couples them; "
        "give exact, samples or none",
        variance.method, text));
  if (method.solver != "auto" && inference::solver(method.solver).solve != nullptr)
    throw InvalidArgument(fmt::format(
        "`solver={}` finds weights, not the covariances of the likelihood {}; take {} or leave "
        "`solver` out",
        method.solver, text, krylov::default_solver().name));
  refuse_unbiased(method, "variances and draws need");
  auto system = system_of(problem.kernel, noise, x);
  system.form = SystemForm::curved;
  system.functions = {functions, true};
  return plan_for_variances(system, x, method, variance);
}

Plan plan_fit(const inference::Problem& problem, double noise, const inference::Observations& rows,
              const MethodOptions& method, const TrainOptions& train,
              const ApproximationOptions& approximation,
              const std::optional<StreamSetting>& stream) {
  check(train);
  check(approximation, method);
  refuse_unbiased(method, "a model has");
  if (approximation.asked()) {
    Plan plan = begin_plan(problem.kernel, rows.x, without_base(method));
    if (stream) {
      plan_stream(problem, noise, rows, method, train, approximation, *stream, plan);
      return plan;
    }
    plan_approximation(problem, noise, rows, method, train, approximation, plan);
    return plan;
  }
  Plan plan = begin_plan(problem.kernel, rows.x, method);
  // One vector of each function more where a mode is searched for.
  const auto system = posterior_system(problem, noise, rows, problem.gaussian() ? 0 : 1);
  if (train.train != "none")
    plan_training(problem, noise, rows, method, train, least_bytes(system, method, plan), plan);
  plan_system(system, method, plan);
  // Refuses a solver that this model cannot have.
  plan.inference = inference::posterior_method(problem, rows, plan.system.solver);
  list_approximations(problem, rows, train, plan);
  return plan;
}

bool plan_again(const inference::Problem& learned, const inference::Observations& rows,
                const MethodOptions& method, Plan& plan) {
  if (!learned.gaussian() || plan.approximate) return false;
  const double noise = rows.noise.at(learned.noise()).harmonic_mean();
  const auto best = choose(posterior_system(learned, noise, rows, 0), method, plan);
  const auto chosen = [&](const PlanRow& row) { return row.stage == "solve" && row.chosen; };
  const auto before = std::find_if(plan.rows.begin(), plan.rows.end(), chosen);
  if (!best.row.fits || before == plan.rows.end() || before->method == best.row.method)
    return false;
  plan.reason += fmt::format(" With what was learned it solves by {} instead: the quickest there.",
                             best.row.method);
  plan.seconds += best.row.seconds - before->seconds;
  before->chosen = false;
  for (auto& row : plan.rows)
    if (row.stage == "solve" && row.method == best.row.method) {
      row = best.row;
      row.chosen = true;
    }
  plan.system = best.choice;
  plan.peak_bytes = std::max(plan.peak_bytes, plan.base_bytes + best.row.bytes);
  plan.inference = inference::posterior_method(learned, rows, plan.system.solver);
  return true;
}

}  // namespace mercer::planning
