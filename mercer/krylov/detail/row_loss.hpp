// Losses of one row, as functions of f = f(x_i): what kernel_cg needs of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace mercer::krylov::detail {

struct LossTerms {
  double value, slope, curvature;
};

/// (f - y)^2 / 2.
struct SquaredLoss {
  static constexpr bool quadratic = true;
  static LossTerms terms(double f, double y) { return {0.5 * (f - y) * (f - y), f - y, 1.0}; }
  /// loss(f) + loss*(-a) + a f >= 0, and zero only for a = -slope: here (f - y + a)^2 / 2.
  static double duality_gap(double f, double y, double a) {
    return 0.5 * (f - y + a) * (f - y + a);
  }
};

/// log(1 + exp(-y f)), y = -1 or +1.
struct LogisticLoss {
  static constexpr bool quadratic = false;
  static LossTerms terms(double f, double y) {
    const double margin = y * f;
    const double e = std::exp(-std::abs(margin));          // never overflows
    const double p = (margin >= 0 ? e : 1.0) / (1.0 + e);  // 1 / (1 + exp(margin))
    return {std::max(-margin, 0.0) + std::log1p(e), -y * p, e / ((1.0 + e) * (1.0 + e))};
  }
  /// With p = a y: log(1 + exp(-m)) + p log p + (1 - p) log(1 - p) + p m; infinite outside [0, 1].
  static double duality_gap(double f, double y, double a) {
    const double p = a * y;
    if (!(p >= 0 && p <= 1)) return std::numeric_limits<double>::infinity();
    const double entropy =
        (p > 0 ? p * std::log(p) : 0.0) + (p < 1 ? (1 - p) * std::log1p(-p) : 0.0);
    return std::max(terms(f, y).value + p * y * f + entropy, 0.0);
  }
};

}  // namespace mercer::krylov::detail
