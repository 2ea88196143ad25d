#include "mercer/operators/detail/point_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "mercer/core/error.hpp"

namespace mercer::operators::detail {
namespace {

using kernels::Family;

void check_finite(ConstMatrixView x) {
  if (x.allFinite()) return;
  for (Index c = 0; c < x.cols(); ++c)
    for (Index i = 0; i < x.rows(); ++i)
      if (!std::isfinite(x(i, c)))
        throw InvalidArgument(fmt::format(
            "kernel operator: input {} of point {} is {}; remove or replace it", c, i, x(i, c)));
}

// Input weights in which "near" is meant: the shortest lengthscale of each input.
std::vector<double> weights_of(const Program& program) {
  std::vector<double> weights(static_cast<std::size_t>(program.num_inputs), 0.0);
  bool any = false;
  for (const auto& leaf : program.leaves) {
    if (leaf.family != Family::distance) continue;
    any = true;
    for (std::size_t k = 0; k < leaf.inputs.size(); ++k) {
      double& weight = weights[static_cast<std::size_t>(leaf.inputs[k])];
      weight = std::max(weight, leaf.scale[k]);
    }
  }
  return any ? weights : std::vector<double>();
}

// Largest |a|^2 of a group for which the dot form keeps its digits.
double dot_limit(Precision precision, Index features) {
  if (precision == Precision::float32) return 4;
  return features <= 64 ? 16 : 4;
}
// Largest coordinate of a group whose rounding does not show in differences.
double direct_limit(Precision precision) { return precision == Precision::float32 ? 8 : 16; }
// Dot-family features up to here have products far inside the range of float32.
constexpr double kLargestFloatFactor = 1e12;

// Where the slope at 0 is infinite, only differences give small distances their digits.
bool may_use_dot(const ProgramLeaf& leaf) {
  return leaf.info->smooth_at_zero && leaf.scale.size() > 1;
}

// Lowest and highest of some values. Four running pairs: one pair would wait for itself.
struct Range {
  double low, high;
};
Range range_of(const double* begin, const double* end) {
  double low[4], high[4];
  std::fill_n(low, 4, *begin);
  std::fill_n(high, 4, *begin);
  for (; begin + 4 <= end; begin += 4)
    for (int c = 0; c < 4; ++c) {
      low[c] = std::min(low[c], begin[c]);
      high[c] = std::max(high[c], begin[c]);
    }
  for (; begin < end; ++begin) {
    low[0] = std::min(low[0], *begin);
    high[0] = std::max(high[0], *begin);
  }
  return {*std::min_element(low, low + 4), *std::max_element(high, high + 4)};
}

}  // namespace

PointSet::PointSet(const Program& program, const PointSetOptions& options)
    : program_(program), options_(options) {
  if (options.sort) sort_weights_ = weights_of(program);
}

PointSet::PointSet(const Program& program, ConstMatrixView x, const PointSetOptions& options)
    : PointSet(program, options) {
  load(x);
}

void PointSet::load(ConstMatrixView x) {
  if (x.cols() != program_.num_inputs)
    throw DimensionMismatch("kernel operator: columns of the points", x.cols(),
                            "inputs of the kernel", program_.num_inputs);
  check_finite(x);
  size_ = x.rows();
  padded_ = (size_ + options_.align - 1) / options_.align * options_.align;
  min_depth_ = 0;
  any_wide_ = huge_factors_ = false;
  blocks_.clear();
  tile_boxes_.clear();
  order_.resize(static_cast<std::size_t>(size_));
  std::iota(order_.begin(), order_.end(), Index{0});
  if (size_ == 0) return;
  // A few blocks even when all would fit into one, so that there is something to share out.
  const Index tiles = (padded_ + options_.tile - 1) / options_.tile;
  while (min_depth_ < 3 && (tiles >> (min_depth_ + 2)) > 0) ++min_depth_;
  split(0, padded_, 0, x);
  fill_sources(x);
  for (const auto& leaf : program_.leaves) {
    if (leaf.family != Family::dot) continue;
    for (std::size_t k = 0; k < leaf.inputs.size(); ++k)
      if (x.col(leaf.inputs[k]).cwiseAbs().maxCoeff() * leaf.scale[k] > kLargestFloatFactor)
        huge_factors_ = true;
  }
  if (!options_.grouped) return;
  for (auto& block : blocks_) {
    block.groups = group(block.begin, block.end);
    for (const auto& g : block.groups) any_wide_ = any_wide_ || g.wide;
  }
}

// Halves at the median of the widest input; all but the last tile are full.
void PointSet::split(Index begin, Index end, int depth, ConstMatrixView x) {
  const bool is_block = end - begin <= options_.block && depth >= min_depth_;
  const bool inside = !blocks_.empty() && blocks_.back().end > begin;
  if (is_block && !inside) blocks_.push_back({begin, end, {}});
  if (end - begin <= options_.tile) return;
  const Index tiles = (end - begin + options_.tile - 1) / options_.tile;
  const Index middle = begin + (tiles + 1) / 2 * options_.tile;
  const Index last = std::min(end, size_);
  if (!sort_weights_.empty() && middle < last) {
    Index widest = 0;
    double spread = -1;
    for (Index c = 0; c < x.cols(); ++c) {
      double low = x(order_[static_cast<std::size_t>(begin)], c);
      double high = low;
      for (Index k = begin; k < last; ++k) {
        const double value = x(order_[static_cast<std::size_t>(k)], c);
        low = std::min(low, value);
        high = std::max(high, value);
      }
      const double s = (high - low) * sort_weights_[static_cast<std::size_t>(c)];
      if (s > spread) {
        spread = s;
        widest = c;
      }
    }
    const double* column = x.data() + widest * x.outerStride();
    std::nth_element(order_.begin() + begin, order_.begin() + middle, order_.begin() + last,
                     [column](Index a, Index b) { return column[a] < column[b]; });
  }
  split(begin, middle, depth + 1, x);
  split(middle, end, depth + 1, x);
}

void PointSet::fill_sources(ConstMatrixView x) {
  const double* origin = options_.origin != nullptr ? options_.origin : x.data();
  const Index origin_stride = options_.origin != nullptr ? options_.origin_stride : x.outerStride();
  if (padded_ > room_) {
    sources_.clear();
    for (std::size_t s = 0; s < program_.sources.size(); ++s)
      sources_.emplace_back(program_.source_features(static_cast<int>(s)) * padded_);
    room_ = padded_;
  }
  for (std::size_t s = 0; s < program_.sources.size(); ++s) {
    const auto& spec = program_.sources[s];
    const auto inputs = static_cast<Index>(spec.inputs.size());
    double* out = sources_[s].data();
    for (Index f = 0; f < inputs; ++f) {
      const Index c = spec.inputs[static_cast<std::size_t>(f)];
      for (Index k = 0; k < padded_; ++k) {
        const double value = x(order_[static_cast<std::size_t>(std::min(k, size_ - 1))], c);
        if (!spec.circle) {
          out[f * padded_ + k] = value;
          continue;
        }
        // Exact reduction first: the phase of a point far from the origin keeps its digits.
        const double phase =
            2 * std::numbers::pi *
            (std::remainder(value - origin[c * origin_stride], spec.period) / spec.period);
        out[f * padded_ + k] = std::cos(phase);
        out[(inputs + f) * padded_ + k] = std::sin(phase);
      }
    }
  }
  if (!options_.boxes) return;
  for (Index begin = 0; begin < padded_; begin += kTile) {
    auto& box = tile_boxes_.emplace_back();
    for (Index c = 0; c < program_.num_inputs; ++c) {
      const double* values = source(0) + c * padded_;
      const auto range = range_of(values + begin, values + std::min(begin + kTile, padded_));
      box.low.push_back(range.low);
      box.high.push_back(range.high);
    }
  }
}

RowGroup PointSet::describe(Index begin, Index end) {
  RowGroup group{begin, end, {}, {}, false};
  const bool narrow = options_.precision == Precision::float32;
  group.wide = narrow && (options_.wide || huge_factors_);
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    const Index features = program_.source_features(static_cast<int>(s));
    auto& centre = group.centres.emplace_back(static_cast<std::size_t>(features));
    for (Index f = 0; f < features; ++f) {
      const double* values = sources_[s].data() + f * padded_;
      const auto range = range_of(values + begin, values + end);
      centre[static_cast<std::size_t>(f)] = range.low / 2 + range.high / 2;
    }
  }
  for (const auto& leaf : program_.leaves) {
    const double* source = this->source(leaf.source);
    const auto& centre = group.centres[static_cast<std::size_t>(leaf.source)];
    if (leaf.family != Family::distance) {
      group.forms.push_back(simd::Form::dot);
      continue;
    }
    double largest = 0;
    norms_.assign(static_cast<std::size_t>(end - begin), 0.0);
    double* norms = norms_.data();
    for (std::size_t f = 0; f < leaf.scale.size(); ++f) {
      const double* values = source + static_cast<Index>(f) * padded_ + begin;
      const double middle = centre[f], scale = leaf.scale[f];
      for (Index k = 0; k < end - begin; ++k) {
        const double a = (values[k] - middle) * scale;
        norms[k] += a * a;
      }
      const auto range = range_of(values, values + (end - begin));
      largest = std::max(largest, std::max(range.high - middle, middle - range.low) * scale);
    }
    const double largest_norm = *std::max_element(norms_.begin(), norms_.end());
    const auto features = static_cast<Index>(leaf.scale.size());
    const bool dot = may_use_dot(leaf) && largest_norm <= dot_limit(options_.precision, features);
    const bool exact = largest > direct_limit(options_.precision);
    group.forms.push_back(exact ? simd::Form::exact : dot ? simd::Form::dot : simd::Form::direct);
    group.wide = group.wide || (narrow && exact);
  }
  return group;
}

bool PointSet::wants_split(const RowGroup& group) const {
  for (std::size_t l = 0; l < program_.leaves.size(); ++l) {
    if (group.forms[l] == simd::Form::exact) return true;
    if (group.forms[l] == simd::Form::direct && may_use_dot(program_.leaves[l])) return true;
  }
  return false;
}

// The largest groups that need no splitting; where splitting gains nothing, the whole.
std::vector<RowGroup> PointSet::group(Index begin, Index end) {
  RowGroup whole = describe(begin, end);
  if (end - begin <= options_.tile || !wants_split(whole)) return {std::move(whole)};
  const Index tiles = (end - begin + options_.tile - 1) / options_.tile;
  const Index middle = begin + (tiles + 1) / 2 * options_.tile;
  auto groups = group(begin, middle);
  for (auto& g : group(middle, end)) groups.push_back(std::move(g));
  const bool gained = std::any_of(groups.begin(), groups.end(),
                                  [&](const RowGroup& g) { return g.forms != whole.forms; });
  if (gained) return groups;
  return {std::move(whole)};
}

Box PointSet::box(Index begin, Index end) const {
  Box box = tile_boxes_[static_cast<std::size_t>(begin / kTile)];
  for (Index tile = begin / kTile + 1; tile * kTile < end; ++tile) {
    const Box& other = tile_boxes_[static_cast<std::size_t>(tile)];
    for (std::size_t c = 0; c < box.low.size(); ++c) {
      box.low[c] = std::min(box.low[c], other.low[c]);
      box.high[c] = std::max(box.high[c], other.high[c]);
    }
  }
  return box;
}

bool PointSet::negligible(const Program& program, const Box& a, const Box& b, Precision precision) {
  std::vector<char> zero;
  // exp(-e) is 0 from here on, polynomial factors of the Matern profiles included.
  const double exponent = precision == Precision::float32 ? 100 : 760;
  for (const auto& node : program.nodes) {
    bool value = false;
    if (node.kind == kernels::Node::Kind::leaf) {
      const auto& leaf = program.leaves[static_cast<std::size_t>(node.leaf)];
      if (leaf.info->measures_distance()) {
        double r2 = 0;
        for (std::size_t k = 0; k < leaf.inputs.size(); ++k) {
          const auto c = static_cast<std::size_t>(leaf.inputs[k]);
          const double gap = std::max(a.low[c] - b.high[c], b.low[c] - a.high[c]);
          if (gap > 0) r2 += gap * leaf.scale[k] * gap * leaf.scale[k];
        }
        value = leaf.info->exponent(r2, leaf.profile.own) > exponent;
      }
    } else if (node.kind == kernels::Node::Kind::product) {
      for (const int child : node.children)
        value = value || zero[static_cast<std::size_t>(child)] != 0;
    } else {
      value = true;
      for (const int child : node.children)
        value = value && zero[static_cast<std::size_t>(child)] != 0;
    }
    zero.push_back(value);
  }
  return zero.back() != 0;
}

Index PointSet::largest_block() const {
  Index largest = 0;
  for (const auto& block : blocks_) largest = std::max(largest, block.end - block.begin);
  return largest;
}

}  // namespace mercer::operators::detail
