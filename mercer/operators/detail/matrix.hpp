// Kernel matrices and columns of them, written out in double.
#pragma once

#include <span>

#include "mercer/operators/detail/strip_evaluator.hpp"

namespace mercer::operators::detail {

/// Columns and rows of the strips that matrices are written by.
inline constexpr Index kMatrixPanel = 256;
inline constexpr Index kMatrixRows = 8;

/// out(:, k) = K(x, x_which[k]).
void matrix_columns(const Program& program, const Matrix& x, const PointSet& sorted,
                    std::span<const Index> which, MatrixView out);

/// out = K(a, b).
void dense_cross(const Program& program, ConstMatrixView a, ConstMatrixView b, MatrixView out);

/// out = K(x, x), equal to its transpose bit for bit.
void dense_symmetric(const Program& program, ConstMatrixView x, MatrixView out);
/// The same of prepared points that are not sorted, in one thread. The evaluator takes at least
/// points.padded() rows and kMatrixPanel columns.
void dense_symmetric(const Program& program, const PointSet& points,
                     StripEvaluator<double>& evaluator, MatrixView out);
/// The lower triangle of out = that of K(x, x).
void dense_lower(const Program& program, ConstMatrixView x, MatrixView out);

}  // namespace mercer::operators::detail
