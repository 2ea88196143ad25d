// Laplace's approximation by preconditioned solves with B = I + S K S, which is never formed. The
// gradient of the log evidence is estimated from probes (laplace_gradient.hpp).
//   Cost: a mode from the last one and probes + 1 solves a function and gradient.
#include "mercer/core/timer.hpp"
#include "mercer/inference/entries.hpp"
#include "mercer/inference/laplace/laplace_gradient.hpp"
#include "mercer/inference/laplace/laplace_posterior.hpp"

namespace mercer::inference {
namespace {

class LaplaceSolves final : public Inference {
 public:
  explicit LaplaceSolves(const InferenceSetup& setup)
      : setup_(setup),
        estimator_(setup.rows,
                   {.probes = setup.probes, .system = setup.system, .seed = setup.seed}) {}

  Evidence evaluate(const Problem& at, const Ask& ask, const Observer& observer) override {
    estimator_.use_probes(ask.probes);
    auto found = estimator_.estimate(at, ask.tolerance, ask.error_passes > 0, observer);
    Evidence out;
    out.gradient = std::move(found.gradient);
    out.standard_error = std::move(found.standard_error);
    out.stop = found.stop;
    out.iterations = found.iterations;
    out.matvecs = found.matvecs;
    out.relative_residual = found.relative_residual;
    return out;
  }
  Posterior posterior(const Problem& at, const PosteriorRequest& request,
                      const ProgressCallback& progress) override {
    const Timer timer;
    LaplaceMode start;
    start.a = estimator_.state().mode;
    start.f = estimator_.state().latent;
    start.beta = beta_;
    auto found =
        find_posterior_mode(at, setup_.rows, setup_.system, std::move(start),
                            {.tolerance = request.tolerance, .with_change = true}, progress);
    auto out = laplace_posterior(at, setup_.rows, found, request, setup_.seed, progress);
    out.solve.seconds = timer.seconds();
    start_from({std::move(found.mode.a), {}, {}});
    return out;
  }

  WarmStart warm_start() const override {
    return {estimator_.state().mode, estimator_.state().latent, beta_};
  }
  void start_from(const WarmStart& start) override {
    estimator_.resume({.mode = start.a, .latent = start.f});
    beta_ = start.beta;
  }

  State save() const override {
    const auto& s = estimator_.state();
    return {{"mode", s.mode},
            {"latent", s.latent},
            {"solutions", s.solutions},
            {"beta", beta_},
            {"numbers", Vector{{static_cast<double>(s.estimates), static_cast<double>(s.probes)}}}};
  }
  void load(const State& state, const Problem& /*like*/) override {
    const Matrix& numbers = saved_array(state, "numbers", 2);
    estimator_.resume({.mode = saved_array(state, "mode"),
                       .latent = saved_array(state, "latent"),
                       .solutions = saved_array(state, "solutions"),
                       .estimates = static_cast<int>(numbers(0)),
                       .probes = static_cast<std::uint64_t>(numbers(1))});
    beta_ = saved_array(state, "beta");
  }

 private:
  InferenceSetup setup_;
  LaplaceGradient estimator_;
  Matrix beta_;
};

// Products of a gradient, for estimates.
constexpr double kProducts = 40;

EvaluationCost laplace_solves_cost(const CostSetting& s) {
  const double vectors = 8.0 * static_cast<double>(s.n) * static_cast<double>(s.functions.count) *
                         static_cast<double>(s.columns + s.probes) * 10;
  return {vectors, kProducts * product_seconds(s.speed, s.n, s.system.op, s.system.precision,
                                               s.functions.count * s.probes)};
}

}  // namespace

InferenceInfo laplace_solves_info() {
  return {.name = "laplace-solves",
          .summary = "other likelihoods, Laplace's approximation by preconditioned solves",
          .abilities = {.evidence = EvidenceBy::solves},
          .refusal = needs_laplace,
          .takes_solver = is_iterative,
          .cost = laplace_solves_cost,
          .make = [](const InferenceSetup& setup) -> std::unique_ptr<Inference> {
            return std::make_unique<LaplaceSolves>(setup);
          }};
}

}  // namespace mercer::inference
