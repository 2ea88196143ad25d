#include "mercer/operators/detail/gradient.hpp"

#include <algorithm>
#include <memory>
#include <numbers>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/operators/detail/packed_vectors.hpp"
#include "mercer/operators/detail/schedule.hpp"
#include "mercer/operators/detail/strip_evaluator.hpp"

namespace mercer::operators::detail {
namespace {

using kernels::Family;
using kernels::Node;

constexpr Index kGradientPanel = 256;
constexpr Index kGradientRows = 8;
constexpr Index kStrip = kGradientPanel * kGradientRows;

Index num_features(const ProgramLeaf& leaf) { return static_cast<Index>(leaf.scale.size()); }

// The reverse pass over one strip after another, gathering a gradient.
class TreePass {
 public:
  TreePass(const Program& program, const PointSet& points, Index max_rows)
      : program_(program),
        points_(points),
        tile_(simd::tile_kernels(double())),
        kernels_(simd::gradient_kernels()),
        evaluator_(program, {max_rows, kGradientPanel, kGradientRows}, true) {
    for (std::size_t k = 0; k < program.nodes.size(); ++k) {
      values_.emplace_back(kStrip);
      adjoints_.emplace_back(kStrip);
    }
    Index most = 1;
    for (const auto& leaf : program.leaves) {
      accs_.emplace_back(kStrip);
      slopes_.emplace_back(kStrip);
      shape_slopes_.emplace_back(kStrip);
      column_sums_.emplace_back(kGradientPanel);
      most = std::max(most, num_features(leaf));
    }
    moments_.resize(static_cast<std::size_t>(kGradientRows * most));
    by_feature_.resize(static_cast<std::size_t>(most));
  }

  void set_unit(const Unit& unit) {
    unit_ = unit;
    evaluator_.set_rows(points_, *unit.group, unit.row_begin, unit.row_end);
  }

  void begin_panel(Index begin, Index end) {
    panel_begin_ = begin;
    evaluator_.set_columns(points_, begin, end);
    for (auto& sums : column_sums_) std::fill(sums.data(), sums.data() + kGradientPanel, 0.0);
  }

  /// Values of every node; returns those of the root.
  const double* forward(Index row, Index rows) {
    row_ = row;
    rows_ = rows;
    count_ = rows * evaluator_.num_columns();
    for (std::size_t k = 0; k < program_.nodes.size(); ++k) forward_node(k);
    return values_.back().data();
  }

  /// Where d objective / d root goes before backward().
  double* root_adjoint() { return adjoints_.back().data(); }

  void backward(double* gradient) {
    for (std::size_t k = program_.nodes.size(); k-- > 0;) backward_node(k, gradient);
  }

  /// What the columns of the panel have gathered.
  void end_panel(double* gradient) {
    for (std::size_t l = 0; l < program_.leaves.size(); ++l) {
      const auto& leaf = program_.leaves[l];
      if (!uses_moments(l) || leaf.family != Family::distance) continue;
      const auto& panel = evaluator_.panel(l);
      for (Index f = 0; f < panel.features; ++f) {
        const double* b = panel.columns + f * panel.column_stride;
        double sum = 0;
        for (Index j = 0; j < evaluator_.num_columns(); ++j)
          sum += column_sums_[l][j] * b[j] * b[j];
        gradient[leaf.first_parameter + leaf.lengthscale_of[static_cast<std::size_t>(f)]] -=
            2 * sum;
      }
    }
  }

 private:
  bool uses_moments(std::size_t l) const {
    return program_.leaves[l].num_lengthscales > 1 && evaluator_.panel(l).form == simd::Form::dot;
  }

  void forward_node(std::size_t k) {
    const auto& node = program_.nodes[k];
    double* out = values_[k].data();
    if (node.kind == Node::Kind::leaf) {
      const auto l = static_cast<std::size_t>(node.leaf);
      evaluator_.accumulate(l, row_, rows_, accs_[l].data());
      kernels_.evaluate(program_.leaves[l].profile, accs_[l].data(), out, slopes_[l].data(),
                        shape_slopes_[l].data(), count_);
      return;
    }
    const auto rest = node.kind == Node::Kind::product ? simd::Write::multiply : simd::Write::add;
    for (std::size_t i = 0; i < node.children.size(); ++i)
      tile_.combine(node.kind == Node::Kind::scale ? node.variance : 1.0,
                    i == 0 ? simd::Write::store : rest,
                    values_[static_cast<std::size_t>(node.children[i])].data(), out, count_);
  }

  void backward_node(std::size_t k, double* gradient) {
    const auto& node = program_.nodes[k];
    const double* adjoint = adjoints_[k].data();
    if (node.kind == Node::Kind::leaf)
      return backward_leaf(static_cast<std::size_t>(node.leaf), adjoint, gradient);
    if (node.kind == Node::Kind::scale)
      gradient[node.parameter] += kernels_.dot(adjoint, values_[k].data(), count_);
    for (const int child : node.children) {
      double* out = adjoints_[static_cast<std::size_t>(child)].data();
      tile_.combine(node.kind == Node::Kind::scale ? node.variance : 1.0, simd::Write::store,
                    adjoint, out, count_);
      if (node.kind != Node::Kind::product) continue;
      for (const int other : node.children)
        if (other != child)
          tile_.combine(1.0, simd::Write::multiply, values_[static_cast<std::size_t>(other)].data(),
                        out, count_);
    }
  }

  void backward_leaf(std::size_t l, const double* adjoint, double* gradient) {
    const auto& leaf = program_.leaves[l];
    if (leaf.family == Family::constant) return;
    const bool circle = leaf.info->inputs == kernels::InputMap::circle;
    double* shape = gradient + leaf.first_parameter + leaf.num_lengthscales;
    if (leaf.has_shape && !circle) *shape += kernels_.dot(adjoint, shape_slopes_[l].data(), count_);
    double* slope = slopes_[l].data();
    tile_.combine(1.0, simd::Write::multiply, adjoint, slope, count_);
    if (circle) *shape += period_term(leaf, slope);
    if (leaf.num_lengthscales == 1) {
      // One lengthscale: -2 S r^2 with r^2 = -2 acc, or -2 S s with s = acc.
      const double factor = leaf.family == Family::distance ? 4.0 : -2.0;
      gradient[leaf.first_parameter] += factor * kernels_.dot(slope, accs_[l].data(), count_);
    } else if (leaf.num_lengthscales > 1) {
      add_lengthscales(l, slope, gradient + leaf.first_parameter);
    }
  }

  // d r^2 / d log l_c = -2 (a_c - b_c)^2, and for the dot family d s / d log l_c = -2 a_c b_c.
  void add_lengthscales(std::size_t l, const double* slope, double* out) {
    const auto& leaf = program_.leaves[l];
    const simd::SlopeStrip strip{evaluator_.panel(l), row_, rows_, evaluator_.num_columns(), slope};
    const Index features = num_features(leaf);
    if (strip.panel.form != simd::Form::dot) {
      std::fill(by_feature_.begin(), by_feature_.end(), 0.0);
      kernels_.squared_differences(strip, by_feature_.data());
      // Features of these forms carry a factor sqrt(1/2).
      for (Index f = 0; f < features; ++f)
        out[leaf.lengthscale_of[static_cast<std::size_t>(f)]] -=
            4 * by_feature_[static_cast<std::size_t>(f)];
      return;
    }
    // sum_ij S (a - b)^2 = sum_i a^2 S_i. + sum_j b^2 S_.j - 2 sum_i a (S b)_i.
    double row_sums[kGradientRows];
    kernels_.moments(strip, moments_.data(), row_sums, column_sums_[l].data());
    const bool distance = leaf.family == Family::distance;
    for (Index r = 0; r < rows_; ++r) {
      const Index row = row_ + r;
      const double* packed = strip.panel.rows +
                             (row / simd::kPackedRows) * features * simd::kPackedRows +
                             row % simd::kPackedRows;
      for (Index f = 0; f < features; ++f) {
        const double a = packed[f * simd::kPackedRows];
        const double cross = a * moments_[static_cast<std::size_t>(r * features + f)];
        out[leaf.lengthscale_of[static_cast<std::size_t>(f)]] +=
            distance ? 4 * cross - 2 * a * a * row_sums[r] : -2 * cross;
      }
    }
  }

  // d r2/dlog p = -2 sum_c (2 pi dx_c / p) sin(2 pi dx_c / p) / l_c^2.
  double period_term(const ProgramLeaf& leaf, const double* slope) const {
    simd::CircleStrip s;
    const Index row = unit_.row_begin + row_;
    s.row_inputs = points_.source(leaf.input_source) + row;
    s.row_circle = points_.source(leaf.source) + row;
    s.column_inputs = points_.source(leaf.input_source) + panel_begin_;
    s.column_circle = points_.source(leaf.source) + panel_begin_;
    s.row_stride = s.column_stride = points_.padded();
    s.num_inputs = leaf.num_inputs();
    s.scale = leaf.scale.data();
    s.rows = rows_;
    s.columns = evaluator_.num_columns();
    s.slope = slope;
    return -2 * (2 * std::numbers::pi / leaf.profile.own.shape) * kernels_.period(s);
  }

  const Program& program_;
  const PointSet& points_;
  const simd::TileKernels<double>& tile_;
  const simd::GradientKernels& kernels_;
  StripEvaluator<double> evaluator_;
  Unit unit_;
  Index panel_begin_ = 0;
  Index row_ = 0;
  Index rows_ = 0;
  Index count_ = 0;
  std::vector<Buffer<double>> values_;
  std::vector<Buffer<double>> adjoints_;
  std::vector<Buffer<double>> accs_;
  std::vector<Buffer<double>> slopes_;
  std::vector<Buffer<double>> shape_slopes_;
  std::vector<Buffer<double>> column_sums_;
  std::vector<double> moments_;
  std::vector<double> by_feature_;
};

// Runs `strip(pass, unit, row, rows, c, c_end, worker)` over the whole matrix; it fills the root's
// adjoint. Gradients are gathered per block pair and added in the order of the schedule.
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
    if (!pass) pass = std::make_unique<TreePass>(program, points, largest);
    double* out = partial.data() + slot * program.num_parameters;
    for_each_unit(points, i, j, [&](const Unit& unit) {
      pass->set_unit(unit);
      for (Index c = unit.column_begin; c < unit.column_end; c += kGradientPanel) {
        const Index c_end = std::min(c + kGradientPanel, unit.column_end);
        pass->begin_panel(c, c_end);
        for (Index row = unit.row_begin; row < unit.row_end; row += kGradientRows) {
          const double* root = pass->forward(row - unit.row_begin, kGradientRows);
          strip(unit, root, row, c, c_end, worker, pass->root_adjoint());
          pass->backward(out);
        }
        pass->end_panel(out);
        panel_end(unit, worker);
      }
    });
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
      [&](const Unit& unit, const double* root, Index row, Index c, Index c_end, int worker,
          double* adjoint) {
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
      [&](const Unit& unit, const double*, Index row, Index c, Index c_end, int, double* adjoint) {
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

}  // namespace mercer::operators::detail
