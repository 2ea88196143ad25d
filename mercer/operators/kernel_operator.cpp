#include "mercer/operators/kernel_operator.hpp"

#include "mercer/operators/tiled_operator.hpp"

namespace mercer::operators {

void KernelOperator::cross(ConstMatrixView at, ConstMatrixView v, MatrixView out) const {
  cross_apply(kernel(), at, points(), v, precision(), out);
}

}  // namespace mercer::operators
