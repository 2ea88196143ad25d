// The small least-squares problem of one GMRES cycle: min |beta e_1 - H y| for the (k + 1) x k
// Hessenberg matrix, kept as R by Givens rotations, so that the residual norm is known at each
// step.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "mercer/core/types.hpp"

namespace mercer::krylov::detail {

class Hessenberg {
 public:
  void start(double beta) {
    last_ = beta;
    rotations_.clear();
    rhs_.clear();
    r_.clear();
  }

  Index steps() const { return static_cast<Index>(rhs_.size()); }
  double residual() const { return std::abs(last_); }

  /// h has steps() + 2 entries, the last is |w| after orthogonalisation; h is used up. False when
  /// the column depends on those before: it is left out then.
  bool append(std::vector<double>& h) {
    const std::size_t k = rhs_.size();
    double squares = 0;
    for (std::size_t i = 0; i < k + 2; ++i) squares += h[i] * h[i];
    for (std::size_t i = 0; i < k; ++i) {
      const auto [c, s] = rotations_[i];
      const double upper = c * h[i] + s * h[i + 1];
      h[i + 1] = c * h[i + 1] - s * h[i];
      h[i] = upper;
    }
    const double diagonal = std::hypot(h[k], h[k + 1]);
    if (!(diagonal > std::numeric_limits<double>::epsilon() * std::sqrt(squares))) return false;
    const Rotation rotation{h[k] / diagonal, h[k + 1] / diagonal};
    h[k] = diagonal;
    r_.insert(r_.end(), h.begin(), h.begin() + static_cast<std::ptrdiff_t>(k) + 1);
    rotations_.push_back(rotation);
    rhs_.push_back(rotation.c * last_);
    last_ *= -rotation.s;
    return true;
  }

  /// y of length steps(), by back substitution with R.
  void solve(std::vector<double>& y) const {
    y = rhs_;
    for (Index j = steps() - 1; j >= 0; --j) {
      const double* column = r_.data() + j * (j + 1) / 2;
      double& y_j = y[static_cast<std::size_t>(j)];
      y_j /= column[j];
      for (Index i = 0; i < j; ++i) y[static_cast<std::size_t>(i)] -= column[i] * y_j;
    }
  }

 private:
  struct Rotation {
    double c, s;
  };
  double last_ = 0;  // the entry below the rotated right-hand side: +- the residual norm
  std::vector<Rotation> rotations_;
  std::vector<double> rhs_;
  std::vector<double> r_;  // upper triangle, column by column
};

}  // namespace mercer::krylov::detail
