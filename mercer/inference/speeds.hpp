// From what a method states (values, products, flops) to seconds. Speeds are measured for what is
// told to the user, and nominal where a choice depends on them: the same command must make the same
// choice, and so give the same bits, on a busy day too.
#pragma once

#include "mercer/inference/choice.hpp"
#include "mercer/kernels/kernel.hpp"

namespace mercer::inference {

struct Speeds {
  double pair_seconds_double = 0;  // one entry of K times one vector, tiled, all threads
  double pair_seconds_single = 0;
  double column_seconds_double = 0;  // each further right-hand side, per entry of K
  double column_seconds_single = 0;
  double flops = 1;      // of a Cholesky factorisation, per second
  double bandwidth = 1;  // bytes read per second by all threads
};

/// Of a typical machine with two cores.
Speeds nominal_speeds(const kernels::Kernel& kernel, Index d);

/// One product of K with `columns` vectors.
double product_seconds(const Speeds& speeds, Index n, OperatorKind op, SolvePrecision precision,
                       Index columns);
/// Building a preconditioner; `product` is the time of a product with one vector.
double build_seconds(const Speeds& speeds, const preconditioners::Cost& cost, double product);
/// Applying it to `columns` vectors.
double apply_seconds(const Speeds& speeds, const preconditioners::Cost& cost, double product,
                     Index columns);

}  // namespace mercer::inference
