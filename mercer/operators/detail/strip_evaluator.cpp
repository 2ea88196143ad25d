#include "mercer/operators/detail/strip_evaluator.hpp"

#include <algorithm>
#include <cmath>

namespace mercer::operators::detail {
namespace {

using kernels::Family;

Index features_of(const ProgramLeaf& leaf) { return static_cast<Index>(leaf.scale.size()); }

Index round_up(Index value, Index multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

template <class T>
StripEvaluator<T>::StripEvaluator(const Program& program, StripShape shape, bool gradient)
    : program_(program),
      kernels_(simd::tile_kernels(T())),
      shape_(shape),
      // Not a power of two: equal columns of successive features would share a cache set.
      column_stride_(shape.max_columns + 16),
      gradient_(gradient) {
  const Index rows = round_up(shape.max_rows, kTile);
  Index most_features = 1;
  for (const auto& leaf : program.leaves) {
    const Index features = std::max<Index>(1, features_of(leaf));
    most_features = std::max(most_features, features);
    scales_.emplace_back(leaf.scale.size());
    centres_.emplace_back(leaf.scale.size());
    late_scales_.emplace_back(leaf.scale.size());
    row_features_.emplace_back(rows * features);
    row_norms_.emplace_back(rows);
    column_features_.emplace_back(column_stride_ * features);
    column_norms_.emplace_back(column_stride_);
    panels_.emplace_back();
  }
  unpacked_ = Buffer<T>(rows * most_features);
  acc_ = Buffer<T>(shape.strip_rows * shape.max_columns);
  for (int s = 0; s < program.num_strips; ++s)
    strips_.emplace_back(shape.strip_rows * shape.max_columns);
  norm_workspace_ = Buffer<double>(std::max(rows, shape.max_columns));
}

template <class T>
void StripEvaluator<T>::set_rows(const PointSet& rows, const RowGroup& group, Index begin,
                                 Index end) {
  const Index count = end - begin;
  const Index packs = round_up(count, simd::kPackedRows) / simd::kPackedRows;
  for (std::size_t l = 0; l < program_.leaves.size(); ++l) {
    const auto& leaf = program_.leaves[l];
    if (leaf.family == Family::constant) continue;
    const Index features = features_of(leaf);
    const bool distance = leaf.family == Family::distance;
    const auto form = group.forms[l];
    double gain = gradient_ ? 1.0 : kernels_.gain(leaf.profile.kind);
    // acc of the direct form is a sum of squares without the half.
    if (form != simd::Form::dot) gain *= std::sqrt(0.5);
    const bool exact = form == simd::Form::exact;
    for (std::size_t f = 0; f < leaf.scale.size(); ++f) {
      const double scale = leaf.scale[f] * (distance ? gain : 1.0);
      scales_[l][f] = exact ? 1.0 : scale;
      late_scales_[l][f] = static_cast<T>(scale);
      centres_[l][f] =
          distance && !exact ? group.centres[static_cast<std::size_t>(leaf.source)][f] : 0.0;
    }
    const Index stride = round_up(count, simd::kPackedRows);
    kernels_.centre(rows.source(leaf.source) + begin, rows.padded(), features, centres_[l].data(),
                    scales_[l].data(), count, unpacked_.data(), stride, row_norms_[l].data(),
                    norm_workspace_.data());
    T* packed = row_features_[l].data();
    for (Index p = 0; p < packs; ++p)
      for (Index f = 0; f < features; ++f)
        for (Index r = 0; r < simd::kPackedRows; ++r) {
          const Index i = p * simd::kPackedRows + r;
          *packed++ = i < count ? unpacked_[f * stride + i] : T(0);
        }
    panels_[l].rows = row_features_[l].data();
    panels_[l].row_half_norms = distance ? row_norms_[l].data() : nullptr;
    panels_[l].features = features;
    panels_[l].form = form;
    panels_[l].feature_scales = late_scales_[l].data();
  }
}

template <class T>
void StripEvaluator<T>::set_columns(const PointSet& columns, Index begin, Index end) {
  num_columns_ = end - begin;
  for (std::size_t l = 0; l < program_.leaves.size(); ++l) {
    const auto& leaf = program_.leaves[l];
    if (leaf.family == Family::constant) continue;
    kernels_.centre(columns.source(leaf.source) + begin, columns.padded(), features_of(leaf),
                    centres_[l].data(), scales_[l].data(), num_columns_, column_features_[l].data(),
                    column_stride_, column_norms_[l].data(), norm_workspace_.data());
    panels_[l].columns = column_features_[l].data();
    panels_[l].column_half_norms = column_norms_[l].data();
    panels_[l].column_stride = column_stride_;
  }
}

template <class T>
void StripEvaluator<T>::accumulate(std::size_t l, Index row, Index rows, T* acc) const {
  if (program_.leaves[l].family == Family::constant) return;
  kernels_.accumulate(panels_[l], row, rows, num_columns_, acc);
}

template <class T>
const T* StripEvaluator<T>::evaluate(Index row, Index rows) {
  const Index count = rows * num_columns_;
  for (const auto& step : program_.instructions) {
    T* out = strips_[static_cast<std::size_t>(step.to)].data();
    if (step.leaf < 0) {
      kernels_.combine(step.factor, step.write, strips_[static_cast<std::size_t>(step.from)].data(),
                       out, count);
      continue;
    }
    const auto l = static_cast<std::size_t>(step.leaf);
    // A stored leaf needs no strip of its own for acc.
    T* acc = step.write == simd::Write::store ? out : acc_.data();
    accumulate(l, row, rows, acc);
    kernels_.profile(program_.leaves[l].profile, step.factor, step.write, acc, out, count);
  }
  return strips_[0].data();
}

template class StripEvaluator<float>;
template class StripEvaluator<double>;

Index panel_columns(const Program& program, Index bytes, bool many_vectors) {
  // About 16 KB of column features; many vectors need room of their own.
  Index features = 1;
  for (const auto& leaf : program.leaves) features = std::max(features, features_of(leaf));
  const Index limit = many_vectors ? 128 : 256;
  Index columns = limit;
  while (columns > 64 && columns * features * bytes > 24 * 1024) columns /= 2;
  return columns;
}

}  // namespace mercer::operators::detail
