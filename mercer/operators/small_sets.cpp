#include "mercer/operators/small_sets.hpp"

#include "mercer/core/error.hpp"
#include "mercer/operators/detail/gradient.hpp"
#include "mercer/operators/detail/matrix.hpp"

namespace mercer::operators {

struct SmallSets::Impl {
  explicit Impl(const kernels::Kernel& kernel) : program(kernel) {}
  detail::Program program;
  Matrix weights;
};

SmallSets::SmallSets(const kernels::Kernel& kernel) : impl_(std::make_unique<Impl>(kernel)) {}
SmallSets::~SmallSets() = default;

void SmallSets::matrix(ConstMatrixView x, MatrixView out) const {
  detail::dense_symmetric(impl_->program, x, out);
}

void SmallSets::gradient(ConstMatrixView x, ConstVectorView u, ConstVectorView v,
                         VectorView gradient) {
  if (u.size() != x.rows() || v.size() != x.rows())
    throw DimensionMismatch("small sets: length of u or v", u.size(), "points", x.rows());
  impl_->weights.noalias() = 0.5 * u * v.transpose();
  impl_->weights += impl_->weights.transpose().eval();
  detail::weighted_gradient(impl_->program, x, impl_->weights, gradient);
}

}  // namespace mercer::operators
