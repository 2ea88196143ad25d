// The largest eigenvalues and vectors of K from products with random vectors: K ~ F F'.
//   Source: Halko, Martinsson & Tropp (2011); Nystrom form, Tropp et al. (2017).
//             Y = K^q Omega, orthonormal between powers: Q;  K ~ (K Q) (Q'K Q)^-1 (K Q)',
//           cut to the rank asked. Eigenvalues of Q'K Q below rounding of the products are left
//           out, where the source shifts K before a Cholesky factorisation.
//   Cost:   (q + 1)(rank + oversample) products with the whole K, in blocks; (9 q + 7) N rank^2
//           flops; 8 N (2 rank + 20) bytes.
//   When not: K is expensive: a column here is a product, where a landmark's is N kernel values.
//           For the same rank nothing is much closer to K.
#pragma once

#include <cstdint>

#include "mercer/approximations/low_rank.hpp"
#include "mercer/core/options.hpp"
#include "mercer/operators/kernel_operator.hpp"

namespace mercer::approximations {

struct RandomizedSvdOptions {
  Index rank = 100;            // at most; N when larger
  Index oversample = 10;       // columns more than the rank, cut at the end
  Index power_iterations = 1;  // q: each one more product, and a sharper cut
  std::uint64_t seed = 0;
};

template <class Visitor>
void visit_fields(RandomizedSvdOptions& o, Visitor&& field) {
  field("rank", o.rank, Positive{});
  field("oversample", o.oversample, NonNegative{});
  field("power_iterations", o.power_iterations, NonNegative{});
}

/// No `pivots`; `clipped` are columns lost to rounding: K has no more than the rank returned.
LowRank randomized_svd(const operators::KernelOperator& k,
                       const RandomizedSvdOptions& options = {});

/// Single-column products with K.
double randomized_svd_products(Index n, const RandomizedSvdOptions& options);
double randomized_svd_flops(Index n, const RandomizedSvdOptions& options);
double randomized_svd_bytes(Index n, const RandomizedSvdOptions& options);

}  // namespace mercer::approximations
