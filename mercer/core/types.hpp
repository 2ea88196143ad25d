// The vocabulary of every room: dense matrices are Eigen's, column-major, in double.
// A block of right-hand sides is N x t, one column each.
#pragma once

#include <Eigen/Core>

#include "mercer/core/export.hpp"

MERCER_API_BEGIN
namespace mercer {

using Index = Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// A writable view of a matrix or of a block of its columns.
using MatrixView = Eigen::Ref<Matrix>;
/// A read-only view; take it by value or by const reference.
using ConstMatrixView = Eigen::Ref<const Matrix>;
using VectorView = Eigen::Ref<Vector>;
using ConstVectorView = Eigen::Ref<const Vector>;

}  // namespace mercer
MERCER_API_END
