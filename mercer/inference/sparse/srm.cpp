// Subset of regressors (subset of representers): f = k_b(x)'w with w ~ N(0, S_bb^-1), so that the
// prior has the covariance Q in place of K.
//   Source: Wahba (1990), chapter 7; Smola & Bartlett (2001); Tresp & Schwaighofer (2001).
//   Cost:   N m^2; predictions need the m base points only.
//   When not: variances are wanted: far from the base points the prior of f falls to zero, and the
//           variance with it. dtc has the same mean and an honest variance.
#include "mercer/inference/entries.hpp"
#include "mercer/inference/sparse/reduced.hpp"

namespace mercer::inference {

ReducedMethod srm_method() { return {.name = "srm"}; }

InferenceInfo srm_info() {
  return {.name = "srm",
          .summary = "approximate: a linear model in m kernels (subset of regressors)",
          .abilities = {.evidence = EvidenceBy::factorisation,
                        .approximate = true,
                        .kind = EvidenceKind::approximate,
                        .base = true,
                        .degenerate = true,
                        .streams = true},
          .refusal = sparse_needs_gaussian_noise,
          .takes_solver = is_cholesky,
          .cost = [](const CostSetting& s) { return reduced_cost(srm_method(), s); },
          .make = [](const InferenceSetup& setup) { return make_reduced(srm_method(), setup); }};
}

}  // namespace mercer::inference
