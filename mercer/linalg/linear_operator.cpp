#include "mercer/linalg/linear_operator.hpp"

#include "mercer/core/error.hpp"
#include "mercer/linalg/blas.hpp"

namespace mercer::linalg {

DenseOperator::DenseOperator(Matrix a) : a_(std::move(a)) {
  if (a_.rows() != a_.cols())
    throw DimensionMismatch("DenseOperator: rows of a", a_.rows(), "columns of a", a_.cols());
}

void DenseOperator::apply(ConstMatrixView x, MatrixView y) const {
  gemm(1.0, a_, Transpose::no, x, Transpose::no, 0.0, y);
}

void ShiftedOperator::apply(ConstMatrixView x, MatrixView y) const {
  a_.apply(x, y);
  shift_.add_product(1.0, x, y);
}

}  // namespace mercer::linalg
