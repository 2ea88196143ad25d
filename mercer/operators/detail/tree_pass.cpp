#include "mercer/operators/detail/tree_pass.hpp"

#include <algorithm>
#include <numbers>

namespace mercer::operators::detail {
namespace {

using kernels::Family;
using kernels::Node;

constexpr Index kStrip = kGradientPanel * kGradientRows;

Index num_features(const ProgramLeaf& leaf) { return static_cast<Index>(leaf.scale.size()); }

bool on_circle(const ProgramLeaf& leaf) { return leaf.info->inputs == kernels::InputMap::circle; }

}  // namespace

template <class T>
TreePass<T>::TreePass(const Program& program, const PointSet& rows, const PointSet& columns,
                      Index max_rows)
    : program_(program),
      row_points_(rows),
      column_points_(columns),
      tile_(simd::tile_kernels(T())),
      kernels_(simd::gradient_kernels(T())),
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

template <class T>
void TreePass<T>::set_rows(const RowGroup& group, Index begin, Index end) {
  row_begin_ = begin;
  evaluator_.set_rows(row_points_, group, begin, end);
}

template <class T>
void TreePass<T>::begin_panel(Index begin, Index end) {
  panel_begin_ = begin;
  evaluator_.set_columns(column_points_, begin, end);
  for (auto& sums : column_sums_) std::fill(sums.data(), sums.data() + kGradientPanel, T(0));
}

template <class T>
const T* TreePass<T>::forward(Index row, Index rows) {
  row_ = row;
  rows_ = rows;
  count_ = rows * evaluator_.num_columns();
  for (std::size_t k = 0; k < program_.nodes.size(); ++k) forward_node(k);
  return values_.back().data();
}

template <class T>
void TreePass<T>::backward(double* gradient) {
  for (std::size_t k = program_.nodes.size(); k-- > 0;) {
    const auto& node = program_.nodes[k];
    const T* adjoint = adjoints_[k].data();
    if (node.kind == Node::Kind::leaf) {
      backward_leaf(static_cast<std::size_t>(node.leaf), adjoint, gradient);
      continue;
    }
    if (node.kind == Node::Kind::scale)
      gradient[node.parameter] += kernels_.dot(adjoint, values_[k].data(), count_);
    spread_adjoint(k);
  }
}

template <class T>
void TreePass<T>::end_panel(double* gradient) {
  for (std::size_t l = 0; l < program_.leaves.size(); ++l) {
    const auto& leaf = program_.leaves[l];
    if (!uses_moments(l) || leaf.family != Family::distance) continue;
    const auto& panel = evaluator_.panel(l);
    for (Index f = 0; f < panel.features; ++f) {
      const T* b = panel.columns + f * panel.column_stride;
      double sum = 0;
      for (Index j = 0; j < evaluator_.num_columns(); ++j)
        sum += static_cast<double>(column_sums_[l][j]) * static_cast<double>(b[j]) *
               static_cast<double>(b[j]);
      gradient[leaf.first_parameter + leaf.lengthscale_of[static_cast<std::size_t>(f)]] -= 2 * sum;
    }
  }
}

template <class T>
void TreePass<T>::backward_inputs(double* out) {
  for (std::size_t k = program_.nodes.size(); k-- > 0;) {
    const auto& node = program_.nodes[k];
    if (node.kind == Node::Kind::leaf) {
      leaf_inputs(static_cast<std::size_t>(node.leaf), adjoints_[k].data(), out);
    } else {
      spread_adjoint(k);
    }
  }
}

template <class T>
bool TreePass<T>::uses_moments(std::size_t l) const {
  return program_.leaves[l].num_lengthscales > 1 && evaluator_.panel(l).form == simd::Form::dot;
}

template <class T>
void TreePass<T>::forward_node(std::size_t k) {
  const auto& node = program_.nodes[k];
  T* out = values_[k].data();
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

// d objective / d child from that of an inner node.
template <class T>
void TreePass<T>::spread_adjoint(std::size_t k) {
  const auto& node = program_.nodes[k];
  for (const int child : node.children) {
    T* out = adjoints_[static_cast<std::size_t>(child)].data();
    tile_.combine(node.kind == Node::Kind::scale ? node.variance : 1.0, simd::Write::store,
                  adjoints_[k].data(), out, count_);
    if (node.kind != Node::Kind::product) continue;
    for (const int other : node.children)
      if (other != child)
        tile_.combine(1.0, simd::Write::multiply, values_[static_cast<std::size_t>(other)].data(),
                      out, count_);
  }
}

template <class T>
void TreePass<T>::backward_leaf(std::size_t l, const T* adjoint, double* gradient) {
  const auto& leaf = program_.leaves[l];
  if (leaf.family == Family::constant) return;
  const bool circle = on_circle(leaf);
  double* shape = gradient + leaf.first_parameter + leaf.num_lengthscales;
  if (leaf.has_shape && !circle) *shape += kernels_.dot(adjoint, shape_slopes_[l].data(), count_);
  T* slope = slopes_[l].data();
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
template <class T>
void TreePass<T>::add_lengthscales(std::size_t l, const T* slope, double* out) {
  const auto& leaf = program_.leaves[l];
  const simd::SlopeStrip<T> strip{evaluator_.panel(l), row_, rows_, evaluator_.num_columns(),
                                  slope};
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
    const T* packed = strip.panel.rows + (row / simd::kPackedRows) * features * simd::kPackedRows +
                      row % simd::kPackedRows;
    for (Index f = 0; f < features; ++f) {
      const auto a = static_cast<double>(packed[f * simd::kPackedRows]);
      const double cross = a * moments_[static_cast<std::size_t>(r * features + f)];
      out[leaf.lengthscale_of[static_cast<std::size_t>(f)]] +=
          distance ? 4 * cross - 2 * a * a * row_sums[r] : -2 * cross;
    }
  }
}

// d r2/dlog p = -2 sum_c (2 pi dx_c / p) sin(2 pi dx_c / p) / l_c^2.
template <class T>
double TreePass<T>::period_term(const ProgramLeaf& leaf, const T* slope) const {
  simd::CircleStrip<T> s;
  const Index row = row_begin_ + row_;
  s.row_inputs = row_points_.source(leaf.input_source) + row;
  s.row_circle = row_points_.source(leaf.source) + row;
  s.row_stride = row_points_.padded();
  s.column_inputs = column_points_.source(leaf.input_source) + panel_begin_;
  s.column_circle = column_points_.source(leaf.source) + panel_begin_;
  s.column_stride = column_points_.padded();
  s.num_inputs = leaf.num_inputs();
  s.scale = leaf.scale.data();
  s.rows = rows_;
  s.columns = evaluator_.num_columns();
  s.slope = slope;
  return -2 * (2 * std::numbers::pi / leaf.profile.own.shape) * kernels_.period(s);
}

// With features phi_f(x_c) of slope phi_f' in their input,
//   d r^2 / d a_c = sum_f 2 (a_f - b_f) phi_f',   d s / d a_c = b_c phi_c'.
template <class T>
void TreePass<T>::leaf_inputs(std::size_t l, const T* adjoint, double* out) {
  const auto& leaf = program_.leaves[l];
  if (leaf.family == Family::constant) return;
  T* slope = slopes_[l].data();
  tile_.combine(1.0, simd::Write::multiply, adjoint, slope, count_);
  const simd::SlopeStrip<T> strip{evaluator_.panel(l), row_, rows_, evaluator_.num_columns(),
                                  slope};
  double factor = 1;
  if (leaf.family == Family::dot) {
    double row_sums[kGradientRows];
    kernels_.moments(strip, moments_.data(), row_sums, column_sums_[l].data());
  } else {
    kernels_.differences(strip, moments_.data());
    // Features of the forms by differences carry a factor sqrt(1/2).
    factor = strip.panel.form == simd::Form::dot ? 2 : 2 * std::numbers::sqrt2;
  }
  if (on_circle(leaf)) return circle_inputs(leaf, factor, out);
  const Index features = num_features(leaf);
  for (Index r = 0; r < rows_; ++r)
    for (Index f = 0; f < features; ++f) {
      const auto k = static_cast<std::size_t>(f);
      out[r * program_.num_inputs + leaf.inputs[k]] +=
          factor * leaf.scale[k] * moments_[static_cast<std::size_t>(r * features + f)];
    }
}

// The features of input c are cos(phase)/l and sin(phase)/l, phase = 2 pi x_c / p.
template <class T>
void TreePass<T>::circle_inputs(const ProgramLeaf& leaf, double factor, double* out) const {
  const Index inputs = leaf.num_inputs(), stride = row_points_.padded();
  const double* circle = row_points_.source(leaf.source) + row_begin_ + row_;
  const double speed = factor * 2 * std::numbers::pi / leaf.profile.own.shape;
  for (Index r = 0; r < rows_; ++r) {
    const double* sums = moments_.data() + r * 2 * inputs;
    for (Index c = 0; c < inputs; ++c) {
      const double cosine = circle[c * stride + r], sine = circle[(inputs + c) * stride + r];
      const auto k = static_cast<std::size_t>(c);
      out[r * program_.num_inputs + leaf.inputs[k]] +=
          speed * leaf.scale[k] * (cosine * sums[inputs + c] - sine * sums[c]);
    }
  }
}

template class TreePass<float>;
template class TreePass<double>;

}  // namespace mercer::operators::detail
