#include "mercer/operators/small_sets.hpp"

#include <algorithm>

#include "mercer/core/error.hpp"
#include "mercer/operators/detail/gradient.hpp"
#include "mercer/operators/detail/matrix.hpp"

namespace mercer::operators {

struct SmallSets::Impl {
  explicit Impl(const kernels::Kernel& kernel)
      : program(kernel),
        points(program, {.sort = false, .align = simd::kColumnAlignDouble, .boxes = false}) {}

  // Workspaces for sets of up to `room` points.
  void make_room() {
    if (points.padded() <= room) return;
    room = points.padded();
    evaluator = std::make_unique<detail::StripEvaluator<double>>(
        program, detail::StripShape{room, detail::kMatrixPanel, detail::kMatrixRows});
    pass.reset();
    u = detail::Buffer<double>(room);
    v = detail::Buffer<double>(room);
  }

  // The entries of a vector, and zeros for the points that pad the set.
  void fill(ConstVectorView from, double* to) const {
    std::copy(from.data(), from.data() + from.size(), to);
    std::fill(to + from.size(), to + points.padded(), 0.0);
  }

  detail::Program program;
  detail::PointSet points;
  Index room = 0;
  std::unique_ptr<detail::StripEvaluator<double>> evaluator;
  std::unique_ptr<detail::TreePass<double>> pass;  // made when first used
  detail::Buffer<double> u, v;
};

SmallSets::SmallSets(const kernels::Kernel& kernel) : impl_(std::make_unique<Impl>(kernel)) {}
SmallSets::~SmallSets() = default;

void SmallSets::load(ConstMatrixView x) {
  impl_->points.load(x);
  impl_->make_room();
}

void SmallSets::matrix(MatrixView out) {
  detail::dense_symmetric(impl_->program, impl_->points, *impl_->evaluator, out);
}

void SmallSets::gradient(ConstVectorView u, ConstVectorView v, VectorView gradient) {
  auto& impl = *impl_;
  const Index n = impl.points.size();
  if (u.size() != n || v.size() != n)
    throw DimensionMismatch("small sets: length of u or v", u.size(), "points", n);
  if (gradient.size() != impl.program.num_parameters)
    throw DimensionMismatch("small sets: length of gradient", gradient.size(),
                            "number of parameters", impl.program.num_parameters);
  if (!impl.pass)
    impl.pass = std::make_unique<detail::TreePass<double>>(impl.program, impl.points, impl.points,
                                                           impl.room);
  impl.fill(u, impl.u.data());
  impl.fill(v, impl.v.data());
  detail::outer_gradient(impl.points, *impl.pass, impl.u.data(), impl.v.data(), gradient);
}

}  // namespace mercer::operators
