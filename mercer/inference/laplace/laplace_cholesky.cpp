// Laplace's approximation by Cholesky factorisations of B = I + S K S, exact in value and gradient.
//   Cost: N^3 flops a latent function and evidence, 8 N^2 bytes each; a few factorisations more
//         without a mode and a factor close by.
#include "mercer/core/timer.hpp"
#include "mercer/inference/entries.hpp"
#include "mercer/inference/laplace/exact_laplace.hpp"
#include "mercer/inference/laplace/laplace_posterior.hpp"

namespace mercer::inference {
namespace {

class LaplaceCholesky final : public Inference {
 public:
  explicit LaplaceCholesky(const InferenceSetup& setup)
      : setup_(setup), exact_(setup.rows, {.tolerance = 1e-4, .solve_tolerance = 1e-4}) {}

  Evidence evaluate(const Problem& at, const Ask& ask, const Observer& /*observer*/) override {
    auto found = exact_.evaluate(at, ask.gradient);
    last_.a = found.mode.a;
    last_.beta = found.mode.beta;
    last_.f.resize(0, 0);
    theta_ = at.log_parameters();
    Evidence out;
    out.value = found.value;
    out.gradient = std::move(found.gradient);
    return out;
  }
  Posterior posterior(const Problem& at, const PosteriorRequest& request,
                      const ProgressCallback& progress) override {
    const Timer timer;
    auto found =
        find_posterior_mode(at, setup_.rows, setup_.system, start(),
                            {.tolerance = request.tolerance, .with_change = true}, progress);
    auto out = laplace_posterior(at, setup_.rows, found, request, setup_.seed, progress);
    out.solve.seconds = timer.seconds();
    last_ = {std::move(found.mode.a), {}, {}};
    return out;
  }

  WarmStart warm_start() const override { return last_; }
  void start_from(const WarmStart& start) override {
    last_ = start;
    if (start.a.size() > 0) exact_.start_at(start.a);
  }

  State save() const override { return {{"a", last_.a}, {"beta", last_.beta}, {"theta", theta_}}; }
  void load(const State& state, const Problem& like) override {
    theta_ = saved_array(state, "theta", like.log_parameters().size());
    auto problem = like;
    problem.set_log_parameters(theta_);
    last_ = {saved_array(state, "a"), {}, saved_array(state, "beta")};
    exact_.resume(problem, last_.a, last_.beta);
  }

 private:
  LaplaceMode start() const {
    LaplaceMode out;
    out.a = last_.a;
    out.f = last_.f;
    out.beta = last_.beta;
    return out;
  }

  InferenceSetup setup_;
  ExactLaplace exact_;
  WarmStart last_;
  Vector theta_;  // of the last evidence
};

EvaluationCost laplace_cholesky_cost(const CostSetting& s) {
  return {exact_laplace_bytes(s.n, s.functions),
          exact_laplace_flops(s.n, s.functions) / s.speed.flops};
}

}  // namespace

InferenceInfo laplace_info() {
  return {.name = "laplace",
          .summary = "other likelihoods, Laplace's approximation by Cholesky factorisations",
          .abilities = {.evidence = EvidenceBy::factorisation},
          .refusal = needs_laplace,
          .takes_solver = is_cholesky,
          .cost = laplace_cholesky_cost,
          .make = [](const InferenceSetup& setup) -> std::unique_ptr<Inference> {
            return std::make_unique<LaplaceCholesky>(setup);
          }};
}

}  // namespace mercer::inference
