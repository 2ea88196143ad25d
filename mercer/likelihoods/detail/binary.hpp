// What the likelihoods of two classes share. y is 0 or 1.
#pragma once

#include <string>

#include "mercer/likelihoods/likelihood.hpp"

namespace mercer::likelihoods::detail {

inline std::string binary_fault(double y) { return y == 0 || y == 1 ? "" : "must be 0 or 1"; }

/// +1 for class 1, -1 for class 0.
inline double sign_of(double y) { return 2 * y - 1; }

/// P(Y <= y), P(Y = 0) given.
inline double binary_cdf(double y, double p0) { return y < 0 ? 0 : y < 1 ? p0 : 1; }

inline double binary_quantile(double p, double p0) { return p <= p0 ? 0 : 1; }

}  // namespace mercer::likelihoods::detail
