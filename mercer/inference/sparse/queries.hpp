// The queries of sparse posteriors (sparse_posterior.hpp).
#pragma once

#include <memory>

#include "mercer/inference/sparse/base_factor.hpp"
#include "mercer/inference/sparse/sparse_posterior.hpp"
#include "mercer/inference/sparse/sparse_sums.hpp"

namespace mercer::inference {

/// What all queries of approximations share: there are no solves to check variances by.
class SparseQuery : public Query {
 public:
  CheckedVariances check_variances(const QueryBlock& block, ConstMatrixView sd,
                                   const QueryProgress& progress) override;

 protected:
  /// Moments of `functions` functions at `rows` rows, with nothing in them yet.
  static Moments empty_moments(Index rows, Index functions, bool variance);
  /// Variances raised to the floor.
  static void raise_variances(const QueryBlock& block, Moments& out);
};

/// Mean and variance of one function from its belief at the base points.
struct BeliefAtRows {
  Vector mean;
  Vector variance;  // without k** - v*'v*; empty when not asked for
};
/// `v`: V' of the rows.
BeliefAtRows belief_at(const SparseFunction& f, const Matrix& v, ConstMatrixView basis,
                       bool variance);

/// The rows of a block that the posterior keeps: `y` are its weights, and there are no slopes.
SparseSlice stored_block(const Problem& problem, const SparsePosterior& posterior, Index number);

std::unique_ptr<Query> make_pic_query(const Problem& problem, const SparsePosterior& posterior,
                                      const SparseQueryOptions& options);
std::unique_ptr<Query> make_bcm_query(const Problem& problem, const SparsePosterior& posterior,
                                      const SparseQueryOptions& options);
std::unique_ptr<Query> make_rbcm_query(const Problem& problem, const SparsePosterior& posterior,
                                       const SparseQueryOptions& options);

}  // namespace mercer::inference
