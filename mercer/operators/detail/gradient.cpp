#include "mercer/operators/detail/gradient.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "mercer/core/error.hpp"
#include "mercer/core/subnormals.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/operators/detail/packed_vectors.hpp"
#include "mercer/operators/detail/schedule.hpp"
#include "mercer/operators/detail/tree_pass.hpp"

namespace mercer::operators::detail {
namespace {

// Runs `strip(values, row, c, c_end, adjoint)` over the strips of a unit; it fills the root's
// adjoint. Adds to the gradient `out`. `panel_end` ends every panel.
template <class T, class Strip, class PanelEnd>
void sweep_unit(const Unit& unit, TreePass<T>& pass, double* out, const Strip& strip,
                const PanelEnd& panel_end) {
  pass.set_rows(*unit.group, unit.row_begin, unit.row_end);
  for (Index c = unit.column_begin; c < unit.column_end; c += kGradientPanel) {
    const Index c_end = std::min(c + kGradientPanel, unit.column_end);
    pass.begin_panel(c, c_end);
    for (Index row = unit.row_begin; row < unit.row_end; row += kGradientRows) {
      const T* values = pass.forward(row - unit.row_begin, kGradientRows);
      strip(values, row, c, c_end, pass.root_adjoint());
      pass.backward(out);
    }
    pass.end_panel(out);
    panel_end();
  }
}

// Runs `run(unit, worker, out)` over the units of the matrix, which adds to the gradient `out`.
// Gradients are gathered per block pair and added in the order of the schedule.
template <class Run>
void sweep(const Program& program, const PointSet& points, VectorView gradient, const Run& run) {
  const auto blocks = static_cast<Index>(points.blocks().size());
  Matrix partial = Matrix::Zero(program.num_parameters, blocks);
  gradient.setZero();
  const auto pair = [&](Index i, Index j, Index slot, int worker) {
    double* out = partial.data() + slot * program.num_parameters;
    for_each_unit(points, i, j, [&](const Unit& unit) { run(unit, worker, out); });
  };
  tournament(blocks, pair, [&](Index pairs) {
    for (Index slot = 0; slot < pairs; ++slot) gradient += partial.col(slot);
    partial.setZero();
  });
}

// Whole vectors in sorted order, one after the other.
template <class T>
Buffer<T> sorted_vectors(const PointSet& points, ConstMatrixView v) {
  Buffer<T> out(std::max<Index>(1, v.cols() * points.padded()));
  std::fill(out.data(), out.data() + v.cols() * points.padded(), T(0));
  for (Index c = 0; c < v.cols(); ++c)
    for (Index k = 0; k < points.size(); ++k)
      out[c * points.padded() + k] =
          static_cast<T>(v(points.order()[static_cast<std::size_t>(k)], c));
  return out;
}

void check_gradient(const Program& program, const VectorView& gradient) {
  if (gradient.size() != program.num_parameters)
    throw DimensionMismatch("kernel gradient: length of gradient", gradient.size(),
                            "number of parameters", program.num_parameters);
}

// A product with gradient in arithmetic T: vectors in that type and the workers' scratch.
template <class T>
class GradientPass {
 public:
  GradientPass(const Program& program, const PointSet& points,
               const std::vector<VectorChunk>& chunks, ConstMatrixView u, ConstMatrixView v,
               double* y)
      : program_(program),
        points_(points),
        chunks_(chunks),
        packed_(pack_vectors<T>(points, chunks, v,
                                std::vector<double>(static_cast<std::size_t>(v.cols()), 1.0))),
        u_(sorted_vectors<T>(points, u)),
        v_(sorted_vectors<T>(points, v)),
        columns_(v.cols()),
        y_(y),
        workers_(static_cast<std::size_t>(num_threads())) {}

  void run(const Unit& unit, int worker, double* out) {
    const NoSubnormals flushed;
    auto& slot = workers_[static_cast<std::size_t>(worker)];
    if (!slot) slot = make_worker();
    auto& multiplier = slot->multiplier;
    const auto& kernels = simd::gradient_kernels(T());
    const T *u = u_.data(), *v = v_.data();
    sweep_unit(
        unit, slot->tree, out,
        [&](const T* root, Index row, Index c, Index c_end, T* adjoint) {
          multiplier.set_columns(c, c_end - c);
          multiplier.multiply(root, row, kGradientRows, unit.symmetric);
          kernels.weights(u + row, v + row, u + c, v + c, points_.padded(), columns_,
                          unit.symmetric, kGradientRows, c_end - c, adjoint);
        },
        [&] {
          if (unit.symmetric) multiplier.flush();
        });
  }

 private:
  struct Worker {
    TreePass<T> tree;
    StripMultiplier<T> multiplier;
  };
  std::unique_ptr<Worker> make_worker() const {
    auto worker = std::unique_ptr<Worker>(new Worker{
        {program_, points_, points_, points_.largest_block()}, {chunks_, kGradientPanel}});
    auto& m = worker->multiplier;
    m.v_rows = m.v_columns = packed_.data();
    m.rows_padded = m.columns_padded = points_.padded();
    m.y_rows = m.y_columns = y_;
    return worker;
  }

  const Program& program_;
  const PointSet& points_;
  const std::vector<VectorChunk>& chunks_;
  Buffer<T> packed_, u_, v_;
  Index columns_;
  double* y_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace

void product_with_gradient(const Program& program, const PointSet& points, Precision precision,
                           ConstMatrixView u, ConstMatrixView v, MatrixView kv,
                           VectorView gradient) {
  check_gradient(program, gradient);
  gradient.setZero();
  if (points.size() == 0 || v.cols() == 0) return;
  const auto chunks = plan_chunks(v.cols());
  Buffer<double> y(stored_columns(chunks) * points.padded());
  std::fill(y.data(), y.data() + stored_columns(chunks) * points.padded(), 0.0);
  std::optional<GradientPass<float>> narrow;
  std::optional<GradientPass<double>> wide;
  if (precision == Precision::float32) narrow.emplace(program, points, chunks, u, v, y.data());
  if (!narrow || points.any_wide()) wide.emplace(program, points, chunks, u, v, y.data());
  sweep(program, points, gradient, [&](const Unit& unit, int worker, double* out) {
    if (narrow && !unit.group->wide) return narrow->run(unit, worker, out);
    wide->run(unit, worker, out);
  });
  unpack_vectors(points, chunks, y.data(), 1.0,
                 std::vector<double>(static_cast<std::size_t>(v.cols()), 1.0), kv);
}

namespace {

// weight(i, j) for i >= j; columns of weights lie in rows of the strip.
template <class Weight>
void sweep_weights(const Program& program, ConstMatrixView x, VectorView gradient,
                   const Weight& weight) {
  check_gradient(program, gradient);
  gradient.setZero();
  const PointSet points(program, x, {.sort = false});
  const Index n = points.size();
  if (n == 0) return;
  std::vector<std::unique_ptr<TreePass<double>>> passes(static_cast<std::size_t>(num_threads()));
  const auto fill = [&](const Unit& unit, Index row, Index c, Index c_end, double* adjoint) {
    const Index last = std::min(c_end, n);
    for (Index r = row; r < row + kGradientRows; ++r, adjoint += c_end - c) {
      const Index used = r < n ? std::max<Index>(0, last - c) : 0;
      for (Index j = 0; j < used; ++j)
        adjoint[j] = unit.symmetric ? 2.0 * weight(c + j, r)
                                    : weight(std::max(c + j, r), std::min(c + j, r));
      std::fill(adjoint + used, adjoint + (c_end - c), 0.0);
    }
  };
  sweep(program, points, gradient, [&](const Unit& unit, int worker, double* out) {
    auto& pass = passes[static_cast<std::size_t>(worker)];
    if (!pass)
      pass = std::make_unique<TreePass<double>>(program, points, points, points.largest_block());
    sweep_unit(
        unit, *pass, out,
        [&](const double*, Index row, Index c, Index c_end, double* adjoint) {
          fill(unit, row, c, c_end, adjoint);
        },
        [] {});
  });
}

}  // namespace

void weighted_gradient(const Program& program, ConstMatrixView x, ConstMatrixView s,
                       VectorView gradient) {
  const double* data = s.data();
  const Index stride = s.outerStride();
  sweep_weights(program, x, gradient, [=](Index i, Index j) { return data[i + j * stride]; });
}

void weighted_gradient(const Program& program, ConstMatrixView x, ConstVectorView w,
                       ConstMatrixView s, VectorView gradient) {
  const double *data = s.data(), *v = w.data();
  const Index stride = s.outerStride();
  sweep_weights(program, x, gradient,
                [=](Index i, Index j) { return v[i] * v[j] - data[i + j * stride]; });
}

void outer_gradient(const PointSet& points, TreePass<double>& pass, const double* u,
                    const double* v, VectorView gradient) {
  gradient.setZero();
  const auto blocks = static_cast<Index>(points.blocks().size());
  const auto& kernels = simd::gradient_kernels(double());
  for (Index i = 0; i < blocks; ++i)
    for (Index j = i; j < blocks; ++j)
      for_each_unit(points, i, j, [&](const Unit& unit) {
        sweep_unit(
            unit, pass, gradient.data(),
            [&](const double*, Index row, Index c, Index c_end, double* adjoint) {
              kernels.weights(u + row, v + row, u + c, v + c, points.padded(), 1, unit.symmetric,
                              kGradientRows, c_end - c, adjoint);
            },
            [] {});
      });
}

}  // namespace mercer::operators::detail
