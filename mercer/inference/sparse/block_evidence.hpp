// The evidence of blocks of rows that are taken for independent, which the committee machines learn
// by: the sum of the blocks' exact log evidences, with one beta of the mean for all of them.
//     F = sum_i log N(y_i; A_i beta, K_ii + D_i)
//   Source: Deisenroth & Ng (2015), section 2.2 (without a mean).
//   Cost:   N B^2 flops and 8 B^2 bytes for blocks of B rows; N B kernel values.
//   It is no bound of the exact evidence: rows of different blocks are taken for independent.
#pragma once

#include "mercer/inference/inference.hpp"
#include "mercer/inference/sparse/sparse_posterior.hpp"

namespace mercer::inference {

struct BlockEvidence {
  double value = 0;
  Vector gradient;  // in problem.log_parameters(); empty when not asked for
  Vector beta;
  Matrix beta_covariance;
};
/// Throws NotPositiveDefinite.
BlockEvidence block_evidence(const Problem& problem, const Observations& rows,
                             const approximations::Clusters& blocks, bool gradient);

/// bcm or rbcm; `takes_base`: base points may be given or chosen, which the posterior then has.
std::unique_ptr<Inference> make_committee(std::string_view name, const InferenceSetup& setup,
                                          bool takes_base);
EvaluationCost committee_cost(const CostSetting& setting);

}  // namespace mercer::inference
