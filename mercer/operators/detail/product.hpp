// Products of kernel matrices that are never stored.
#pragma once

#include "mercer/operators/detail/packed_vectors.hpp"
#include "mercer/operators/detail/schedule.hpp"
#include "mercer/operators/detail/strip_evaluator.hpp"

namespace mercer::operators::detail {

/// Partial sums for columns are kept in tile precision over this many rows.
inline constexpr Index kFlushRows = 128;

/// Rows evaluated before they are multiplied: a strip stays in the first-level cache; with several
/// chunks of vectors a taller one is read once per chunk.
Index strip_rows(const std::vector<VectorChunk>& chunks);

/// y = K(x, x) v.
void symmetric_product(const Program& program, const PointSet& points, Precision precision,
                       ConstMatrixView v, MatrixView y);

/// y = K(a, x) v.
void cross_product(const Program& program, const PointSet& rows, const PointSet& columns,
                   Precision precision, ConstMatrixView v, MatrixView y);

}  // namespace mercer::operators::detail
