// Fully independent training conditional: the covariance of the rows is Q, with the diagonal of K.
//   Source: Snelson & Ghahramani (2006); Quinonero-Candela & Rasmussen (2005).
//   Cost:   N m^2; predictions need the m base points only.
//   With other likelihoods than Gaussian noise it is the prior of Laplace's approximation
//   (fitc_laplace.hpp).
//   When not: the noise is to be learned: fitc explains part of it by the diagonal K - Q of rows
//   away
//           from the base points (Bauer et al. 2016); vfe does not.
#include <fmt/format.h>

#include "mercer/inference/entries.hpp"
#include "mercer/inference/sparse/fitc_laplace.hpp"
#include "mercer/inference/sparse/reduced.hpp"

namespace mercer::inference {
namespace {

/// One of the two, by the likelihood of the problem that is asked about.
class Fitc final : public Inference {
 public:
  explicit Fitc(const InferenceSetup& setup)
      : gaussian_(make_reduced(fitc_method(), setup)), laplace_(make_fitc_laplace(setup)) {}

  Evidence evaluate(const Problem& at, const Ask& ask, const Observer& observer) override {
    return of(at).evaluate(at, ask, observer);
  }
  Evidence evaluate_with_base(const Problem& at, const Ask& ask, Matrix& base_gradient) override {
    return of(at).evaluate_with_base(at, ask, base_gradient);
  }
  Posterior posterior(const Problem& at, const PosteriorRequest& request,
                      const ProgressCallback& progress) override {
    return of(at).posterior(at, request, progress);
  }
  void renew(const Problem& at) override { of(at).renew(at); }
  Matrix base_points() const override { return last_->base_points(); }
  void use_base(Matrix points) override {
    gaussian_->use_base(points);
    laplace_->use_base(std::move(points));
  }
  WarmStart warm_start() const override { return last_->warm_start(); }
  void start_from(const WarmStart& start) override { laplace_->start_from(start); }
  State save() const override { return last_->save(); }
  void load(const State& state, const Problem& like) override { of(like).load(state, like); }

 private:
  Inference& of(const Problem& at) {
    last_ = at.gaussian() ? gaussian_.get() : laplace_.get();
    return *last_;
  }

  std::unique_ptr<Inference> gaussian_, laplace_;
  Inference* last_ = gaussian_.get();
};

std::string fitc_refusal(const Problem& problem, const Observations& /*rows*/) {
  if (problem.likelihood->coupled() == nullptr) return {};
  return fmt::format(
      "the likelihood {} couples the latent functions of a row, and the curvature of fitc must be "
      "diagonal; classes one against the rest go with it",
      problem.likelihood->text());
}

// Functions beyond the first, or a mode to find, are those of Laplace's approximation; with one
// function nothing tells the likelihood, and Gaussian noise is the usual case.
EvaluationCost fitc_cost(const CostSetting& s) {
  return s.functions.count > 1 ? fitc_laplace_cost(s) : reduced_cost(fitc_method(), s);
}

}  // namespace

ReducedMethod fitc_method() {
  return {.name = "fitc", .model = {.lambda = Unexplained::diagonal}, .optimizes_base = true};
}

InferenceInfo fitc_info() {
  return {.name = "fitc",
          .summary = "approximate: base points, and each row's own variance; any likelihood",
          .abilities = {.evidence = EvidenceBy::factorisation,
                        .approximate = true,
                        .kind = EvidenceKind::approximate,
                        .base = true,
                        .optimizes_base = true,
                        .streams = true},
          .refusal = fitc_refusal,
          .takes_solver = is_cholesky,
          .cost = fitc_cost,
          .make = [](const InferenceSetup& setup) -> std::unique_ptr<Inference> {
            return std::make_unique<Fitc>(setup);
          }};
}

}  // namespace mercer::inference
