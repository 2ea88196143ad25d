#include "mercer/operators/detail/gradient.hpp"

#include <algorithm>
#include <memory>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/operators/detail/packed_vectors.hpp"
#include "mercer/operators/detail/schedule.hpp"
#include "mercer/operators/detail/tree_pass.hpp"

namespace mercer::operators::detail {
namespace {

// Runs `strip(unit, values, row, c, c_end, adjoint)` over what blocks i and j have to do with each
// other; it fills the root's adjoint. Adds to the gradient `out`.
template <class Strip, class PanelEnd>
void sweep_pair(const PointSet& points, Index i, Index j, TreePass& pass, double* out,
                const Strip& strip, const PanelEnd& panel_end) {
  for_each_unit(points, i, j, [&](const Unit& unit) {
    pass.set_rows(*unit.group, unit.row_begin, unit.row_end);
    for (Index c = unit.column_begin; c < unit.column_end; c += kGradientPanel) {
      const Index c_end = std::min(c + kGradientPanel, unit.column_end);
      pass.begin_panel(c, c_end);
      for (Index row = unit.row_begin; row < unit.row_end; row += kGradientRows) {
        const double* values = pass.forward(row - unit.row_begin, kGradientRows);
        strip(unit, values, row, c, c_end, pass.root_adjoint());
        pass.backward(out);
      }
      pass.end_panel(out);
      panel_end(unit);
    }
  });
}

// The same over the whole matrix, with the number of the worker as a last argument. Gradients are
// gathered per block pair and added in the order of the schedule.
template <class Strip, class PanelEnd>
void sweep(const Program& program, const PointSet& points, VectorView gradient, Strip&& strip,
           PanelEnd&& panel_end) {
  const auto blocks = static_cast<Index>(points.blocks().size());
  Index largest = 0;
  for (const auto& block : points.blocks()) largest = std::max(largest, block.end - block.begin);
  std::vector<std::unique_ptr<TreePass>> passes(static_cast<std::size_t>(num_threads()));
  Matrix partial = Matrix::Zero(program.num_parameters, blocks);
  gradient.setZero();
  const auto pair = [&](Index i, Index j, Index slot, int worker) {
    auto& pass = passes[static_cast<std::size_t>(worker)];
    if (!pass) pass = std::make_unique<TreePass>(program, points, points, largest);
    sweep_pair(
        points, i, j, *pass, partial.data() + slot * program.num_parameters,
        [&](const Unit& unit, const double* values, Index row, Index c, Index c_end,
            double* adjoint) { strip(unit, values, row, c, c_end, adjoint, worker); },
        [&](const Unit& unit) { panel_end(unit, worker); });
  };
  tournament(blocks, pair, [&](Index pairs) {
    for (Index slot = 0; slot < pairs; ++slot) gradient += partial.col(slot);
    partial.setZero();
  });
}

// Whole vectors in sorted order, one after the other.
Buffer<double> sorted_vectors(const PointSet& points, ConstMatrixView v) {
  Buffer<double> out(std::max<Index>(1, v.cols() * points.padded()));
  std::fill(out.data(), out.data() + v.cols() * points.padded(), 0.0);
  for (Index c = 0; c < v.cols(); ++c)
    for (Index k = 0; k < points.size(); ++k)
      out[c * points.padded() + k] = v(points.order()[static_cast<std::size_t>(k)], c);
  return out;
}

void check_gradient(const Program& program, const VectorView& gradient) {
  if (gradient.size() != program.num_parameters)
    throw DimensionMismatch("kernel gradient: length of gradient", gradient.size(),
                            "number of parameters", program.num_parameters);
}

}  // namespace

void product_with_gradient(const Program& program, const PointSet& points, ConstMatrixView u,
                           ConstMatrixView v, MatrixView kv, VectorView gradient) {
  check_gradient(program, gradient);
  gradient.setZero();
  if (points.size() == 0 || v.cols() == 0) return;
  const Index padded = points.padded();
  const auto chunks = plan_chunks(v.cols());
  const std::vector<double> ones(static_cast<std::size_t>(v.cols()), 1.0);
  const auto packed = pack_vectors<double>(points, chunks, v, ones);
  Buffer<double> y(stored_columns(chunks) * padded);
  std::fill(y.data(), y.data() + stored_columns(chunks) * padded, 0.0);
  const auto us = sorted_vectors(points, u);
  const auto vs = sorted_vectors(points, v);
  std::vector<std::unique_ptr<StripMultiplier<double>>> multipliers(
      static_cast<std::size_t>(num_threads()));
  const auto make_multiplier = [&] {
    auto m = std::make_unique<StripMultiplier<double>>(chunks, kGradientPanel);
    m->v_rows = m->v_columns = packed.data();
    m->rows_padded = m->columns_padded = padded;
    m->y_rows = m->y_columns = y.data();
    return m;
  };
  sweep(
      program, points, gradient,
      [&](const Unit& unit, const double* root, Index row, Index c, Index c_end, double* adjoint,
          int worker) {
        auto& m = multipliers[static_cast<std::size_t>(worker)];
        if (!m) m = make_multiplier();
        m->set_columns(c, c_end - c);
        m->multiply(root, row, kGradientRows, unit.symmetric);
        simd::gradient_kernels().weights(us.data() + row, vs.data() + row, us.data() + c,
                                         vs.data() + c, padded, v.cols(), unit.symmetric,
                                         kGradientRows, c_end - c, adjoint);
      },
      [&](const Unit& unit, int worker) {
        if (unit.symmetric) multipliers[static_cast<std::size_t>(worker)]->flush();
      });
  unpack_vectors(points, chunks, y.data(), 1.0, ones, kv);
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
  sweep(
      program, points, gradient,
      [&](const Unit& unit, const double*, Index row, Index c, Index c_end, double* adjoint, int) {
        const Index last = std::min(c_end, n);
        for (Index r = row; r < row + kGradientRows; ++r, adjoint += c_end - c) {
          const Index used = r < n ? std::max<Index>(0, last - c) : 0;
          for (Index j = 0; j < used; ++j)
            adjoint[j] = unit.symmetric ? 2.0 * weight(c + j, r)
                                        : weight(std::max(c + j, r), std::min(c + j, r));
          std::fill(adjoint + used, adjoint + (c_end - c), 0.0);
        }
      },
      [](const Unit&, int) {});
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

void outer_gradient(const PointSet& points, TreePass& pass, const double* u, const double* v,
                    VectorView gradient) {
  gradient.setZero();
  const auto blocks = static_cast<Index>(points.blocks().size());
  const auto strip = [&](const Unit& unit, const double*, Index row, Index c, Index c_end,
                         double* adjoint) {
    simd::gradient_kernels().weights(u + row, v + row, u + c, v + c, points.padded(), 1,
                                     unit.symmetric, kGradientRows, c_end - c, adjoint);
  };
  for (Index i = 0; i < blocks; ++i)
    for (Index j = i; j < blocks; ++j)
      sweep_pair(points, i, j, pass, gradient.data(), strip, [](const Unit&) {});
}

}  // namespace mercer::operators::detail
