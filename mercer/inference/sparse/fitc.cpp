// Fully independent training conditional: the covariance of the rows is Q, with the diagonal of K.
//   Source: Snelson & Ghahramani (2006); Quinonero-Candela & Rasmussen (2005).
//   Cost:   N m^2; predictions need the m base points only.
//   When not: the noise is to be learned: fitc explains part of it by the diagonal K - Q of rows
//   away
//           from the base points (Bauer et al. 2016); vfe does not.
#include "mercer/inference/entries.hpp"
#include "mercer/inference/sparse/reduced.hpp"

namespace mercer::inference {

ReducedMethod fitc_method() {
  return {.name = "fitc", .model = {.lambda = Unexplained::diagonal}, .optimizes_base = true};
}

InferenceInfo fitc_info() {
  return {.name = "fitc",
          .summary = "approximate: base points, and each row's own variance",
          .abilities = {.evidence = EvidenceBy::factorisation,
                        .approximate = true,
                        .kind = EvidenceKind::approximate,
                        .base = true,
                        .optimizes_base = true,
                        .streams = true},
          .refusal = sparse_needs_gaussian_noise,
          .takes_solver = is_cholesky,
          .cost = [](const CostSetting& s) { return reduced_cost(fitc_method(), s); },
          .make = [](const InferenceSetup& setup) { return make_reduced(fitc_method(), setup); }};
}

}  // namespace mercer::inference
