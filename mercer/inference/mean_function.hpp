// The mean of a Gaussian process: zero, an unknown constant, or an unknown linear trend. The
// coefficients are estimated by generalised least squares together with the kernel weights, and
// their uncertainty enters the predictive variance (universal kriging).
#pragma once

#include <string_view>
#include <vector>

#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

enum class MeanKind { zero, constant, linear };

std::string_view to_string(MeanKind kind);
/// Throws InvalidArgument that lists the names there are.
MeanKind mean_kind(std::string_view name);
std::vector<std::string_view> mean_kinds();

/// Number of basis functions for points with d inputs: 0, 1 or d + 1.
Index mean_basis_size(MeanKind kind, Index d);
/// The basis at the rows of x: N x 0, a column of ones, or ones and the inputs, without those that
/// `left_out` numbers (ascending).
Matrix mean_basis(MeanKind kind, ConstMatrixView x, const std::vector<Index>& left_out = {});

/// The inputs that a linear trend must do without on these points, ascending: each one that is a
/// combination of the constant and the inputs before it (to a millionth of its size), as the last
/// level of a one-hot category always is. Empty unless the mean is linear.
///   Cost: Gram-Schmidt, twice for accuracy: 4 N d^2 flops.
/// Throws DataError when the trend has as many independent columns as there are points: it would
/// pass through any targets and leave nothing to the process.
std::vector<Index> dependent_inputs(MeanKind kind, ConstMatrixView x);

}  // namespace mercer::inference
MERCER_API_END
