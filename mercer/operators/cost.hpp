// What products cost: memory by formula, time by a short measurement. For `mercer plan`.
#pragma once

#include "mercer/operators/kernel_operator.hpp"

namespace mercer::operators {

/// Bytes of a TiledOperator of n points in d inputs while it multiplies `columns` vectors:
/// points twice (the caller's order and sorted), vectors and sums in sorted order, and each
/// thread's tiles.
double tiled_bytes(Index n, Index d, Index columns);

/// Bytes of a StoredOperator in the same situation.
double stored_bytes(Index n, Index d, Index columns, Precision precision);

/// Seconds of a product with `columns` vectors per entry of the N x N matrix, measured on a
/// subsample of at most 2000 of the points for 20 to 50 ms, with the current number of threads.
/// A product of N points then takes about N^2 times this.
double measure_seconds_per_pair(const kernels::Kernel& kernel, ConstMatrixView sample_points,
                                Precision precision, Index columns);

}  // namespace mercer::operators
