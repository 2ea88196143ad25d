// Reduced-rank approximation: the weights of all N kernels from the low-rank prior,
//     w = (Q + D)^-1 (y - A beta),   mean = a*'beta + k(x*, X) w.
//   Source: Williams & Seeger (2001); Tresp & Schwaighofer (2001). At a base point it equals srm,
//           since k(b, X) P = S_bX there.
//   Variance: the source gives none; it is that of dtc, which has the same model of the rows.
//   Cost:   N m^2; predictions N kernel values each, and the model keeps all rows.
//   When not: nearly always; away from the base points its error is larger than that of srm, as w
//   is
//           of size (K - Q) w / D there.
#include "mercer/inference/entries.hpp"
#include "mercer/inference/sparse/reduced.hpp"

namespace mercer::inference {
namespace {

// C^-1 r = D^-1 (r - V'mean_weights), slice by slice.
void keep_weights_of_rows(const Problem& at, const Observations& rows, const BaseFactor& base,
                          const SparseSolution& solution, SparsePosterior& out) {
  out.x = rows.x;
  out.weights.resize(rows.size());
  for_slices(rows.size(), [&](Index first, Index count) {
    const auto s = slice_of(at, rows, first, count);
    Vector r = s.y;
    if (s.basis.cols() > 0) r -= s.basis * solution.beta;
    r -= base.whitened(s.x) * solution.mean_weights;
    out.weights.segment(first, count) = r.cwiseQuotient(s.noise);
  });
}

ReducedMethod rra_method() { return {.name = "rra", .keep_rows = keep_weights_of_rows}; }

}  // namespace

InferenceInfo rra_info() {
  return {.name = "rra",
          .summary = "approximate: weights of all kernels from a low-rank prior",
          .abilities = {.evidence = EvidenceBy::factorisation,
                        .approximate = true,
                        .kind = EvidenceKind::approximate,
                        .evidence_of = srm_info().name,
                        .base = true},
          .refusal = sparse_needs_gaussian_noise,
          .takes_solver = is_cholesky,
          .cost = [](const CostSetting& s) { return reduced_cost(rra_method(), s); },
          .make = [](const InferenceSetup& setup) { return make_reduced(rra_method(), setup); }};
}

}  // namespace mercer::inference
