// Exact inference with Gaussian noise by a Cholesky factorisation of H = K + D.
//   Cost: N^3 flops and 8 N^2 bytes an evidence with gradient; N^3/3 for the posterior.
#include "mercer/inference/entries.hpp"
#include "mercer/inference/exact/exact_evidence.hpp"
#include "mercer/inference/exact/gaussian_posterior.hpp"

namespace mercer::inference {
namespace {

class Exact final : public Inference {
 public:
  explicit Exact(const InferenceSetup& setup)
      : rows_(setup.rows), system_(setup.system), seed_(setup.seed) {}

  Evidence evaluate(const Problem& at, const Ask& ask, const Observer& /*observer*/) override {
    return exact_evidence(at, rows_, ask.gradient);
  }
  Posterior posterior(const Problem& at, const PosteriorRequest& request,
                      const ProgressCallback& progress) override {
    return gaussian_posterior(at, rows_, system_, seed_, request, progress);
  }

 private:
  const Observations& rows_;
  SystemChoice system_;
  std::uint64_t seed_;
};

EvaluationCost cholesky_cost(const CostSetting& s) {
  const auto n = static_cast<double>(s.n);
  return {exact_evidence_bytes(s.n),
          exact_evidence_flops(s.n, true) / s.speed.flops +
              n * n * s.speed.pair_seconds_double * (2 + static_cast<double>(s.parameters) / 2)};
}

}  // namespace

InferenceInfo exact_info() {
  return {.name = "exact",
          .summary = "Gaussian noise, by a Cholesky factorisation",
          .abilities = {.evidence = EvidenceBy::factorisation},
          .refusal = needs_gaussian_noise,
          .takes_solver = is_cholesky,
          .cost = cholesky_cost,
          .make = [](const InferenceSetup& setup) -> std::unique_ptr<Inference> {
            return std::make_unique<Exact>(setup);
          }};
}

}  // namespace mercer::inference
