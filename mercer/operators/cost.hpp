// The time of products by tiles, measured. Every operator states its memory and its time by formula
// (operator_info.hpp); these measurements are the constants.
#pragma once

#include "mercer/operators/kernel_operator.hpp"

MERCER_API_BEGIN
namespace mercer::operators {

/// Seconds of a product with `columns` vectors per entry of the N x N matrix, measured on a
/// subsample of at most 2000 of the points for 20 to 50 ms, with the current number of threads.
/// A product of N points then takes about N^2 times this.
double measure_seconds_per_pair(const kernels::Kernel& kernel, ConstMatrixView sample_points,
                                Precision precision, Index columns);

}  // namespace mercer::operators
MERCER_API_END
