// Exact inference with Gaussian noise by preconditioned solves with H = K + D, which is never
// formed. The gradient of the evidence is estimated from probes (evidence_gradient.hpp), the
// posterior is exact to the tolerance of its solve.
//   Cost: iterations x one block product a gradient, and a pass over the tiles with derivatives.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "mercer/core/error.hpp"
#include "mercer/inference/entries.hpp"
#include "mercer/inference/exact/gaussian_posterior.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/preconditioners/vecchia.hpp"

namespace mercer::inference {
namespace {

class ExactSolves final : public Inference {
 public:
  explicit ExactSolves(const InferenceSetup& setup)
      : setup_(setup),
        estimator_(setup.rows, {.kind = setup.probe_kind,
                                .probes = setup.probes,
                                .system = iterative(setup.system),
                                .seed = setup.seed}) {}

  Evidence evaluate(const Problem& at, const Ask& ask, const Observer& observer) override {
    if (!ask.gradient) return value(at, ask);
    estimator_.use_probes(ask.probes);
    return estimator_.estimate(at, ask.tolerance, ask.error_passes, observer, ask.random_stop);
  }
  std::string unbiased_refusal() const override {
    return inference::unbiased_refusal(iterative(setup_.system));
  }
  Posterior posterior(const Problem& at, const PosteriorRequest& request,
                      const ProgressCallback& progress) override {
    Matrix solution = std::exchange(start_, {});
    auto out = gaussian_posterior(at, setup_.rows, setup_.system, setup_.seed, request, progress,
                                  &solution);
    last_ = std::move(solution);
    return out;
  }

  /// `a` is H^-1 [y, A] of the last posterior. Only what is asked for is a start: a posterior has
  /// the same bits whatever was solved before.
  WarmStart warm_start() const override { return {last_, {}, {}}; }
  void start_from(const WarmStart& start) override { start_ = start.a; }

  State for_more_rows() const override;
  State save() const override;
  void load(const State& state, const Problem& like) override;

 private:
  // The log evidence with log|H| by Lanczos quadrature: with the same probes every time, so that
  // its error varies slowly with the hyperparameters.
  Evidence value(const Problem& at, const Ask& ask) {
    const auto posterior =
        gaussian_posterior(at, setup_.rows, iterative(setup_.system), setup_.seed,
                           {.tolerance = ask.tolerance, .with_evidence = true}, {});
    Evidence out;
    out.iterations = posterior.solve.iterations;
    out.matvecs = posterior.solve.matvecs;
    out.stop = posterior.solve.stop;
    out.relative_residual = posterior.certificate.relative_residual;
    const auto& evidence = posterior.evidence;
    if (!evidence.known)
      throw NotPositiveDefinite(
          fmt::format("the evidence by solves is not known: {}", evidence.reason), 0);
    out.value = evidence.value;
    out.value_error = std::hypot(evidence.probe_error, evidence.solver_error);
    return out;
  }

  static SystemChoice iterative(SystemChoice choice) {
    if (choice.direct()) choice.solver = krylov::default_solver().name;
    return choice;
  }

  InferenceSetup setup_;
  EvidenceGradient estimator_;
  Matrix last_, start_;
};

State state_of(const EvidenceGradient::State& s) {
  return {
      {"solutions", s.solutions},
      {"built_at", s.built_at},
      {"numbers", Vector{{s.stale ? 1.0 : 0.0, static_cast<double>(s.estimates),
                          static_cast<double>(s.level), static_cast<double>(s.iterations_when_new),
                          static_cast<double>(s.probes), s.pass_error}}}};
}

State ExactSolves::save() const { return state_of(estimator_.state()); }

// How much of a preconditioner the solves need.
State ExactSolves::for_more_rows() const {
  EvidenceGradient::State s;
  s.level = estimator_.state().level;
  return state_of(s);
}

void ExactSolves::load(const State& state, const Problem& like) {
  const Matrix& numbers = saved_array(state, "numbers", 6);
  EvidenceGradient::State s;
  s.solutions = saved_array(state, "solutions");
  s.built_at = saved_array(state, "built_at");
  s.stale = numbers(0) != 0;
  s.estimates = static_cast<int>(numbers(1));
  s.level = static_cast<int>(numbers(2));
  s.iterations_when_new = static_cast<int>(numbers(3));
  s.probes = static_cast<std::uint64_t>(numbers(4));
  s.pass_error = numbers(5);
  estimator_.resume(std::move(s), like);
}

// What the solves of a gradient usually take: iterations, and passes with derivatives.
constexpr double kIterations = 10, kDerivativePasses = 3;

EvaluationCost solves_cost(const CostSetting& s) {
  const auto n = static_cast<double>(s.n);
  const Index columns = s.columns + s.probes;
  const Index m = preconditioners::default_neighbours(s.n);
  // Values of the kernel with derivatives, one thread's work on small sets counted as pairs.
  const double derivative =
      s.speed.pair_seconds_double * (2 + static_cast<double>(s.parameters) / 2);
  preconditioners::PreconditionerOptions sparse;
  sparse.neighbours = m;
  const auto factor = preconditioners::vecchia_info().cost(s.n, s.d, sparse);
  const double product = product_seconds(s.speed, s.n, s.system.op, s.system.precision, columns);
  EvaluationCost out;
  out.seconds = build_seconds(s.speed, factor, product) + kIterations * product +
                kDerivativePasses * 0.5 * n * n * derivative +
                n * static_cast<double>((m + 1) * (m + 1)) * derivative;
  // One set of operators for the estimate, one that the preconditioner may refer to.
  const auto operator_bytes = [&](const operators::OperatorInfo& op, operators::Precision p) {
    return op.bytes(s.n, s.d, columns, p);
  };
  out.bytes = 2 * (operator_bytes(operators::default_operator(), operators::Precision::float64) +
                   operator_bytes(operators::operators().find(s.system.op),
                                  product_precision(s.system.precision))) +
              factor.peak_bytes + krylov::solver(s.system.solver).bytes(s.n, columns, true) +
              8 * n * static_cast<double>(columns) * 8;
  if (s.system.preconditioner != "auto" && s.system.preconditioner != "none")
    out.bytes += preconditioners::preconditioner(s.system.preconditioner)
                     .cost(s.n, s.d, s.system.preconditioning)
                     .peak_bytes;
  return out;
}

}  // namespace

InferenceInfo exact_solves_info() {
  return {.name = "exact-solves",
          .summary = "Gaussian noise, by preconditioned solves; gradients from probes",
          .abilities = {.evidence = EvidenceBy::solves},
          .refusal = needs_gaussian_noise,
          .takes_solver = is_iterative,
          .cost = solves_cost,
          .make = [](const InferenceSetup& setup) -> std::unique_ptr<Inference> {
            return std::make_unique<ExactSolves>(setup);
          }};
}

}  // namespace mercer::inference
