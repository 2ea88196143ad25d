// From what a method states (values, products, flops) to seconds. Speeds are measured for what is
// told to the user, and nominal where a choice depends on them: the same command must make the same
// choice, and so give the same bits, on a busy day too.
#pragma once

#include "mercer/inference/choice.hpp"
#include "mercer/kernels/kernel.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

using operators::Speeds;

/// Of a typical machine with two cores.
Speeds nominal_speeds(const kernels::Kernel& kernel, Index d);

/// What make_operators (system.hpp) makes for the operator of this name: seconds of one product of
/// the iteration with `columns` vectors, seconds to build, and bytes while it multiplies.
double product_seconds(const Speeds& speeds, Index n, std::string_view op, SolvePrecision precision,
                       Index columns);
double operator_build_seconds(const Speeds& speeds, Index n, std::string_view op,
                              SolvePrecision precision);
double operator_bytes(Index n, Index d, Index columns, std::string_view op,
                      SolvePrecision precision);

/// Building a preconditioner; `product` is the time of a product with one vector.
double build_seconds(const Speeds& speeds, const preconditioners::Cost& cost, double product);
/// Applying it to `columns` vectors.
double apply_seconds(const Speeds& speeds, const preconditioners::Cost& cost, double product,
                     Index columns);

}  // namespace mercer::inference
MERCER_API_END
