// The Vecchia likelihood: each row given its most correlated earlier rows. A deterministic evidence
// with gradient and information matrix in time linear in N; it is learned from, and corrected by
// gradients of the exact one, but has no posterior of its own.
//   Cost: N m^3 flops and N m^2 kernel values with derivatives for m neighbours.
#include "mercer/approximations/vecchia_likelihood.hpp"
#include "mercer/inference/entries.hpp"
#include "mercer/inference/exact/gaussian_posterior.hpp"

namespace mercer::inference {
namespace {

Index default_neighbours(Index n) { return std::min<Index>(n < 20000 ? 31 : 63, n - 1); }

class Vecchia final : public Inference {
 public:
  explicit Vecchia(const InferenceSetup& setup) : setup_(setup) {}

  Evidence evaluate(const Problem& at, const Ask& ask, const Observer& /*observer*/) override {
    if (!likelihood_) renew(at);
    const auto& rows = setup_.rows;
    const Index n = rows.size();
    const double s2 = at.noise();
    auto found =
        likelihood_->evaluate({at.kernel, rows.noise.at(s2).vector(n),
                               rows.noise.slope(s2).vector(n), rows.target(), at.basis(rows.x)},
                              ask.gradient);
    Evidence out;
    // What merging took away is known exactly; of the information, its mean.
    out.value = found.value + rows.replicates.log_likelihood(s2);
    out.raised_conditionals = found.raised;
    if (!ask.gradient) return out;
    const Index last = found.gradient.size() - 1;
    out.gradient = std::move(found.gradient);
    out.gradient(last) += rows.replicates.slope(s2);
    out.information = std::move(found.information);
    out.information(last, last) += 0.5 * static_cast<double>(rows.replicates.merged_rows());
    return out;
  }

  void renew(const Problem& at) override {
    const auto& rows = setup_.rows;
    likelihood_ = std::make_unique<approximations::VecchiaLikelihood>(
        at.kernel, rows.noise.at(at.noise()), rows.x,
        approximations::VecchiaOptions{
            .neighbours = setup_.neighbours.value_or(default_neighbours(rows.size())),
            .seed = setup_.seed});
  }

 private:
  InferenceSetup setup_;
  std::unique_ptr<approximations::VecchiaLikelihood> likelihood_;
};

EvaluationCost vecchia_cost(const CostSetting& s) {
  const Index m = s.neighbours.value_or(default_neighbours(s.n));
  const double derivative =
      s.speed.pair_seconds_double * (2 + static_cast<double>(s.parameters) / 2);
  return {approximations::VecchiaLikelihood::bytes(s.n, s.d, m),
          static_cast<double>(s.n) * static_cast<double>((m + 1) * (m + 1)) * 2 * derivative};
}

}  // namespace

InferenceInfo vecchia_info() {
  return {.name = "vecchia",
          .summary = "Gaussian noise, each row given its nearest; evidence only",
          .abilities = {.evidence = EvidenceBy::surrogate, .posterior = false},
          .refusal = needs_gaussian_noise,
          .takes_solver = [](std::string_view) { return false; },
          .cost = vecchia_cost,
          .make = [](const InferenceSetup& setup) -> std::unique_ptr<Inference> {
            return std::make_unique<Vecchia>(setup);
          }};
}

}  // namespace mercer::inference
