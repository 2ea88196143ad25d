// Tiled Cholesky factorisation: LAPACK and BLAS on tiles, tiles in parallel, fixed order of sums.
//   Source: Buttari et al. (2009), a class of parallel tiled linear algebra algorithms.
//   Cost:   n^3/3 flops to factor, 2n^3/3 more for the inverse, in place: 8 n^2 bytes (and those of
//           a row of tiles for the inverse).
//   Same bits for any number of threads.
#pragma once

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::linalg {

/// The lower factor L of a symmetric positive-definite matrix, A = L L'.
class Cholesky {
 public:
  /// Factors a (its lower triangle is read) in place. Throws NotPositiveDefinite, which names the
  /// pivot and says what can be done, or Interrupted
  /// when a StopScope says so, within a tile.
  explicit Cholesky(Matrix a);

  Index size() const { return l_.rows(); }
  /// The factor; only its lower triangle is meaningful.
  const Matrix &factor() const { return l_; }
  double log_det() const;
  /// x = A^-1 b in place.
  void solve_in_place(MatrixView b) const;
  /// b = L^-1 b in place.
  void solve_lower_in_place(MatrixView b) const;
  /// Consumes the factor and returns A^-1, both triangles (no second n x n array).
  Matrix inverse() &&;
  /// The same, of which only the lower triangle is meaningful.
  Matrix lower_inverse() &&;
  /// Consumes the factor and returns its memory, to build the next matrix in.
  Matrix storage() && { return std::move(l_); }

 private:
  Matrix l_;
};

/// Bytes and floating-point operations of a factorisation, for the planner.
double cholesky_bytes(Index n);
double cholesky_flops(Index n);
/// g such that the computed factor is that of A + D, |D_ij| <= g sqrt(a_ii a_jj). Sums run inside
/// a tile, then over tiles: about (tile + n / tile) roundings instead of n.
double cholesky_rounding(Index n);

}  // namespace mercer::linalg
MERCER_API_END
