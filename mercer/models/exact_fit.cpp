// Gaussian-process regression: the posterior is normal, and everything is exact but for the
// tolerance of the solves.
#include "mercer/core/error.hpp"
#include "mercer/models/certificate.hpp"
#include "mercer/models/exact_solve.hpp"
#include "mercer/models/fit_method.hpp"
#include "mercer/models/likelihood_value.hpp"
#include "mercer/models/merging.hpp"
#include "mercer/models/scaled_data.hpp"
#include "mercer/models/training.hpp"

namespace mercer::models {
namespace {

// Watching a run needs no more digits than a picture shows.
inference::SystemChoice watching_system(inference::SystemChoice choice) {
  choice.tolerance = std::max(choice.tolerance, 1e-3);
  return choice;
}

inference::Weights weights_of(const SolvedSystem& solved, ConstMatrixView basis) {
  try {
    return inference::combine_solves(solved.solution, basis);
  } catch (const NotPositiveDefinite& error) {
    throw DataError(error.what());  // nearly dependent columns: the data's doing, not the noise's
  }
}

class ExactFit final : public FitMethod {
 public:
  ExactFit(const data::Dataset& data, const FitOptions& options) : seed_(options.method.seed) {
    if (options.classes.count() > 0)
      throw InvalidArgument(
          "the likelihood gaussian is not one of classes; give bernoulli-logit or "
          "bernoulli-probit");
    auto scaled = scale(data, options.standardize);
    scaling = std::move(scaled.scaling);
    rows_ = std::move(scaled.data);
    start = start_problem(options.method, data.schema, rows_.x, rows_.target());
    start.trend_left_out = inference::dependent_inputs(start.mean, rows_.x);
    const bool by_kernel_cg = options.method.solver == "kcg";
    if (by_kernel_cg && !rows_.noise.at(1.0).uniform())
      throw InvalidArgument("--solver kcg needs the same noise in all rows; take another solver");
    // Last: scale, start values and trend are those of all rows, merged or not.
    // Merged rows have a noise of their own, which kcg cannot have.
    if (options.merge && !by_kernel_cg) rows_ = merge_replicates(std::move(rows_));
    merged_rows = rows_.replicates.merged_rows();
    plan = make_plan(start.kernel, rows_.noise.at(start.noise()).harmonic_mean(), rows_.x,
                     options.method, options.train, PlanFor::fit);
  }

  Learned learn(const LearnRequest& request) override { return train(start, rows_, plan, request); }

  Posterior posterior(const inference::Problem& problem, const PosteriorRequest& request,
                      const ProgressCallback& progress) override {
    const Matrix basis = problem.basis(rows_.x);
    auto solved =
        solve_system(problem, rows_, basis,
                     request.watching ? watching_system(plan.system) : plan.system, progress);
    Posterior out;
    LatentFunction f;
    f.weights = weights_of(solved, basis);
    f.noise = solved.noise;
    out.certificate = certify(problem, solved.noise, f.weights, rows_, scaling.target_sd);
    out.solve = std::move(solved.report);
    out.jitter = solved.jitter;
    out.preconditioner = std::move(solved.preconditioner);
    out.build_seconds = solved.build_seconds;
    if (request.with_evidence) out.evidence = evidence(problem, f.weights, out.solve, progress);
    out.functions.push_back(std::move(f));
    return out;
  }

  Matrix& points() override { return rows_.x; }

 private:
  LikelihoodValue evidence(const inference::Problem& problem, const inference::Weights& weights,
                           const inference::SystemReport& solve,
                           const ProgressCallback& progress) const {
    if (plan.system.solver == "cholesky") return evaluate_likelihood(problem, rows_);
    if (solve.stop == StopReason::converged)
      return estimate_likelihood(problem, rows_, weights, seed_, progress);
    LikelihoodValue out;
    out.method = "none";
    out.reason = "the solve did not converge";
    return out;
  }

  std::uint64_t seed_;
  inference::Observations rows_;
};

}  // namespace

std::unique_ptr<FitMethod> make_exact_fit(const data::Dataset& data, const FitOptions& options) {
  return std::make_unique<ExactFit>(data, options);
}

}  // namespace mercer::models
