// Partially independent training conditional: the covariance of the rows is Q, but that of K within
// each block of rows.
//   Source: Schwaighofer & Tresp (2003), as the weight form of the Bayesian committee machine;
//           Quinonero-Candela & Rasmussen (2005).
//   Cost:   N m^2 + N B m + N B^2 for blocks of B rows; predictions need the m base points only.
//   When not: predictions close to a block are wanted: they know it through the base points only;
//           pic joins them to the block.
#include "mercer/inference/entries.hpp"
#include "mercer/inference/sparse/reduced.hpp"

namespace mercer::inference {
namespace {

ReducedMethod pitc_method() { return {.name = "pitc", .model = {.lambda = Unexplained::blocks}}; }

}  // namespace

InferenceInfo pitc_info() {
  return {.name = "pitc",
          .summary = "approximate: exact within blocks of rows, base points between them",
          .abilities = {.evidence = EvidenceBy::factorisation,
                        .approximate = true,
                        .kind = EvidenceKind::approximate,
                        .base = true,
                        .blocks = true},
          .refusal = sparse_needs_gaussian_noise,
          .takes_solver = is_cholesky,
          .cost = [](const CostSetting& s) { return reduced_cost(pitc_method(), s); },
          .make = [](const InferenceSetup& setup) { return make_reduced(pitc_method(), setup); }};
}

}  // namespace mercer::inference
