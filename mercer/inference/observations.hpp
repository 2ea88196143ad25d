// What is learned from, for every likelihood: points, observations of one or several latent
// functions, how often each row was observed, and what is left of rows that were merged.
//   A row of weight c was observed c times. With Gaussian noise y is the mean of these, and its
//   noise variance is s2/c + known: s2 is learned, `known` is measured. With every other likelihood
//   each of the c observations was y, and the log density of the row counts c times.
//
// Rows j with the same inputs tell the process no more than one row at their weighted mean. With
// noise s2 a_j, weights 1/a_j, C = sum_j 1/a_j and m of them,
//     prod_j N(y_j; f, s2 a_j) = N(mean; f, s2/C) (2 pi s2)^-(m-1)/2 (C prod_j a_j)^-1/2
//                                exp(-sum_j (y_j - mean)^2 / (2 s2 a_j)),
// so posterior and likelihood of all rows follow exactly from those of the merged ones.
#pragma once

#include <span>

#include "mercer/linalg/diagonal.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

struct RowNoise {
  Vector weight = {};  // observations that a row stands for; empty: 1 for all
  Vector known = {};   // noise variance besides s2, Gaussian only; empty: 0 for all

  bool uniform() const { return weight.size() == 0 && known.size() == 0; }
  /// Gaussian: the noise variances, and their derivatives by log s2.
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

/// On the scale that the model works on.
struct Observations {
  Matrix x;            // N x d, a point in each row
  Matrix y;            // N x C, a column for every latent function
  Vector offset = {};  // C, a constant that is added to each function; empty: 0 for all
  RowNoise noise = {};
  Replicates replicates = {};  // with Gaussian noise only

  Index size() const { return x.rows(); }
  Index functions() const { return y.cols(); }
  /// The observations of a single latent function.
  ConstVectorView target() const { return y.col(0); }
  double weight_of(Index row) const { return noise.weight.size() > 0 ? noise.weight(row) : 1.0; }
  /// With those that were merged into others.
  Index rows_before_merging() const { return size() + replicates.merged_rows(); }
  Observations rows(std::span<const Index> which) const;
};

}  // namespace mercer::inference
MERCER_API_END
