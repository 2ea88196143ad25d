// Deterministic training conditional: the rows are explained as f = E[f | f_b] exactly, with the
// noise D alone; new points keep the variance that base points leave.
//   Source: Seeger, Williams & Lawrence (2003); Quinonero-Candela & Rasmussen (2005).
//   Cost:   N m^2; predictions need the m base points only.
//   When not: hyperparameters are learned with few base points: the evidence takes what base points
//           do not explain for noise, or rewards noise that is too small. vfe has the same
//           posterior with a bound of the evidence.
#include "mercer/inference/entries.hpp"
#include "mercer/inference/sparse/reduced.hpp"

namespace mercer::inference {

ReducedMethod dtc_method() { return {.name = "dtc"}; }

InferenceInfo dtc_info() {
  return {.name = "dtc",
          .summary = "approximate: training rows as their mean given m base points",
          .abilities = {.evidence = EvidenceBy::factorisation,
                        .approximate = true,
                        .kind = EvidenceKind::approximate,
                        .evidence_of = srm_info().name,
                        .base = true,
                        .streams = true},
          .refusal = sparse_needs_gaussian_noise,
          .takes_solver = is_cholesky,
          .cost = [](const CostSetting& s) { return reduced_cost(dtc_method(), s); },
          .make = [](const InferenceSetup& setup) { return make_reduced(dtc_method(), setup); }};
}

}  // namespace mercer::inference
