// The small dense problem of one point given its neighbours, for a Vecchia approximation: one
// object per task of a parallel loop, whose memory is used again from point to point.
#pragma once

#include <cstdint>
#include <span>

#include "mercer/linalg/small.hpp"
#include "mercer/operators/small_sets.hpp"

namespace mercer::approximations::detail {

/// The set of one point: its neighbours, then the point itself.
class PointSetProblem {
 public:
  PointSetProblem(const kernels::Kernel& kernel, ConstMatrixView x) : sets_(kernel), x_(x) {}

  void gather(std::span<const std::int32_t> before, Index point) {
    const auto n = static_cast<Index>(before.size()) + 1;
    points_.resize(n, x_.cols());
    for (Index j = 0; j < n; ++j)
      points_.row(j) = x_.row(j + 1 < n ? before[static_cast<std::size_t>(j)] : point);
    sets_.load(points_);
  }
  Index size() const { return points_.rows(); }

  /// R = L L', R = K + noise over the set, and g = L'^-1 e for the last unit vector e: the point's
  /// row of G, see vecchia.hpp. Returns false when the diagonal had to be raised.
  bool factorise(const Vector& noise) {
    const Index n = size();
    kernel_.resize(n, n);
    sets_.matrix(kernel_);
    kernel_.diagonal() += noise;
    const double extra = linalg::small_cholesky_raised(kernel_, l_, "vecchia");
    g_.setZero(n);
    g_(n - 1) = 1;
    linalg::small_solve_lower(n, l_.data(), linalg::Transpose::yes, g_.data());
    return extra == 0;
  }

  const Vector& g() const { return g_; }

  /// v of the score g' dR v, where e = g'y; see vecchia_likelihood.hpp.
  Vector score_vector(Vector y, double e) const {
    linalg::small_solve_lower(size(), l_.data(), linalg::Transpose::no, y.data());
    linalg::small_solve_lower(size(), l_.data(), linalg::Transpose::yes, y.data());
    // y is now R_S^-1 y = pad(b) + g e.
    return e * (y - e * g_) + 0.5 * (e * e - 1) * g_;
  }

  void gradient(ConstVectorView u, ConstVectorView v, VectorView out) { sets_.gradient(u, v, out); }

 private:
  operators::SmallSets sets_;
  ConstMatrixView x_;
  Matrix points_, kernel_, l_;
  Vector g_;
};

}  // namespace mercer::approximations::detail
