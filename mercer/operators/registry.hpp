// The ways to compute K v by the name that users type. A new one is a file, a line in registry.cpp
// and a test; the laws in tests/operators/registry_test.cpp then hold it to the rest.
#pragma once

#include "mercer/core/registry.hpp"
#include "mercer/operators/operator_info.hpp"

MERCER_API_BEGIN
namespace mercer::operators {

Registry<OperatorInfo>& operators();
/// The first of the list: exact up to the rounding of its precision, for every kernel. It serves
/// where nobody chose, and computes the products in double precision that residuals are measured
/// with when another operator computes those of the iteration.
const OperatorInfo& default_operator();

/// Why the operator cannot be used, as a sentence; empty when it can.
std::string refusal(const OperatorInfo& info, const kernels::Kernel& kernel, Index n, Index d);

/// Builds by name. Throws InvalidArgument, with the reason, when it cannot be used on this kernel
/// and these points.
std::unique_ptr<KernelOperator> make(std::string_view name, const kernels::Kernel& kernel,
                                     const Matrix& x, Precision precision = Precision::float64);

}  // namespace mercer::operators
MERCER_API_END
