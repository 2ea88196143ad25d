// Variational free energy: the posterior of dtc is the best Gaussian one in the Kullback-Leibler
// sense that depends on the rows through f_b, and
//     log N(y; A beta, Q + D) - 1/2 tr(D^-1 (K - Q))
// is a lower bound of the exact log evidence, whatever the base points; more of them raise it.
//   Source: Titsias (2009).
//   Cost:   N m^2; predictions need the m base points only.
//   When not: base points are far too few for the lengthscale: the bound then prefers large noise.
#include "mercer/inference/entries.hpp"
#include "mercer/inference/sparse/reduced.hpp"

namespace mercer::inference {

ReducedMethod vfe_method() {
  return {.name = "vfe", .model = {.trace_term = true}, .optimizes_base = true};
}

InferenceInfo vfe_info() {
  return {.name = "vfe",
          .summary = "approximate: variational, with a lower bound of the evidence",
          .abilities = {.evidence = EvidenceBy::factorisation,
                        .approximate = true,
                        .kind = EvidenceKind::bound,
                        .base = true,
                        .optimizes_base = true,
                        .streams = true},
          .refusal = sparse_needs_gaussian_noise,
          .takes_solver = is_cholesky,
          .cost = [](const CostSetting& s) { return reduced_cost(vfe_method(), s); },
          .make = [](const InferenceSetup& setup) { return make_reduced(vfe_method(), setup); }};
}

}  // namespace mercer::inference
