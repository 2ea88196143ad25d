// Partial Cholesky factorisation with greedy pivots: K ~ F F', each column of F from the point
// with the largest variance left.
//   Source: Harbrecht, Peters & Schneider (2012); Gardner et al. (2018) as a preconditioner.
//   Cost:   rank N kernel values, N rank^2 flops (bound by memory: each column reads F once), 8 N
//           rank bytes.
//   When not: lengthscales much shorter than the data: the residual falls slowly with the rank.
#pragma once

#include "mercer/approximations/low_rank.hpp"
#include "mercer/core/options.hpp"
#include "mercer/operators/kernel_operator.hpp"

MERCER_API_BEGIN
namespace mercer::approximations {

struct PivotedCholeskyOptions {
  Index rank = 100;      // at most; N when larger
  double tolerance = 0;  // stop when trace(K - F F') <= tolerance trace(K)
};

template <class Visitor>
void visit_fields(PivotedCholeskyOptions& o, Visitor&& field) {
  field("rank", o.rank, Positive{});
  field("tolerance", o.tolerance, NonNegative{});
}

/// Ties go to the first point. Points that add nothing (duplicates) are passed over.
LowRank pivoted_cholesky(const operators::KernelOperator& k,
                         const PivotedCholeskyOptions& options = {});

double pivoted_cholesky_bytes(Index n, Index rank);
/// Besides the kernel values.
double pivoted_cholesky_flops(Index n, Index rank);

}  // namespace mercer::approximations
MERCER_API_END
