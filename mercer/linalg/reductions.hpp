// Sums over all rows of a matrix whose rows may be shared among ranks. Each is the function of
// blas.hpp on the rows held here and one reduction; on one process, that function alone.
#pragma once

#include <functional>
#include <span>

#include "mercer/core/types.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/diagonal.hpp"
#include "mercer/linalg/row_space.hpp"

namespace mercer::linalg {

/// out[j] = x_j'y_j.
inline void dots(const RowSpace& space, ConstMatrixView x, ConstMatrixView y,
                 std::span<double> out) {
  column_dots(x, y, out);
  space.reduce(out);
}

/// out[j] = max_i |x(i, j)|; 0 where there is no row.
void largest_entries(const RowSpace& space, ConstMatrixView x, std::span<double> out);

/// c = a'a, both triangles.
void gram(const RowSpace& space, ConstMatrixView a, Matrix& c);
/// c = a'b; c has no gaps between its columns.
void inner_products(const RowSpace& space, ConstMatrixView a, ConstMatrixView b, MatrixView c);

/// Row i of the result is the row of `a` that is number which[i] among all; every rank gets all.
Matrix gather_rows(const RowSpace& space, ConstMatrixView a, std::span<const Index> which);

/// Diagonal::harmonic_mean over all ranks.
double harmonic_mean(const RowSpace& space, const Diagonal& d);

/// `values`, one for each row held here, of all rows; on every rank.
Vector gather_all(const RowSpace& space, ConstVectorView values);

/// Calls check(), which makes no reductions. When it throws on one rank this throws on all, so that
/// no rank waits for one that left: Error("WHO: another rank refused its part") on the others.
void check_on_all_ranks(const RowSpace& space, const char* who, const std::function<void()>& check);

}  // namespace mercer::linalg
