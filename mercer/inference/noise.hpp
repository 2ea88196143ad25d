// The noise of the observations, row by row, and what is left of rows that were merged.
//   The noise variance of row i is s2 share(i) + known(i): s2 is learned, `known` is measured, and
//   a row that is the mean of c observations has the share 1/c.
//
// Rows j with the same inputs tell the process no more than one row at their weighted mean. With
// noise s2 a_j, weights 1/a_j, C = sum_j 1/a_j and m of them,
//     prod_j N(y_j; f, s2 a_j) = N(mean; f, s2/C) (2 pi s2)^-(m-1)/2 (C prod_j a_j)^-1/2
//                                exp(-sum_j (y_j - mean)^2 / (2 s2 a_j)),
// so posterior and likelihood of all rows follow exactly from those of the merged ones.
#pragma once

#include <span>

#include "mercer/linalg/diagonal.hpp"

namespace mercer::inference {

struct RowNoise {
  Vector share = {};  // empty: 1 for all
  Vector known = {};  // empty: 0 for all

  bool uniform() const { return share.size() == 0 && known.size() == 0; }
  /// The noise variances, and their derivatives by log s2.
  linalg::Diagonal at(double s2) const;
  linalg::Diagonal slope(double s2) const;
  RowNoise rows(std::span<const Index> which) const;
};

/// What merging took away from each row that is left; empty when nothing was merged.
struct Replicates {
  Vector removed = {};  // m - 1
  Vector log_det = {};  // log(C prod_j a_j)
  Vector squares = {};  // sum_j (y_j - mean)^2 / a_j

  /// The rows that went into others.
  Index merged_rows() const { return static_cast<Index>(removed.sum()); }
  /// Log likelihood of all rows minus that of the merged ones, and its derivative by log s2.
  double log_likelihood(double s2) const;
  double slope(double s2) const;
  Replicates rows(std::span<const Index> which) const;
};

/// What is learned from, on the scale that the model works on.
struct Observations {
  Matrix x;  // N x d, a point in each row
  Vector y;
  RowNoise noise = {};
  Replicates replicates = {};

  Index size() const { return y.size(); }
  /// With those that were merged into others.
  Index rows_before_merging() const { return size() + replicates.merged_rows(); }
  Observations rows(std::span<const Index> which) const;
};

}  // namespace mercer::inference
