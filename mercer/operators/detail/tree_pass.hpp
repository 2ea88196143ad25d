// The reverse mode over the kernel tree, one strip after another: values of all nodes forward, then
// d objective / d node backward, down to the hyperparameters or to the inputs of the rows.
//
//   pass.set_rows(group, begin, end);
//   pass.begin_panel(c, c_end);
//   const T* values = pass.forward(row, 8);        // rows row .. row + 8 of begin .. end
//   fill(pass.root_adjoint());                     // d objective / d value of each pair
//   pass.backward(gradient);                       // or backward_inputs(out)
//   pass.end_panel(gradient);
#pragma once

#include <vector>

#include "mercer/operators/detail/strip_evaluator.hpp"

namespace mercer::operators::detail {

inline constexpr Index kGradientPanel = 256;
inline constexpr Index kGradientRows = 8;

/// Strips in arithmetic T; sums over strips in double.
template <class T>
class TreePass {
 public:
  /// `rows` and `columns` may be the same set. Groups have at most `max_rows` rows.
  TreePass(const Program& program, const PointSet& rows, const PointSet& columns, Index max_rows);

  void set_rows(const RowGroup& group, Index begin, Index end);
  void begin_panel(Index begin, Index end);
  /// Values of every node for at most kGradientRows rows; returns those of the root.
  const T* forward(Index row, Index rows);
  /// Where d objective / d root goes before a backward pass.
  T* root_adjoint() { return adjoints_.back().data(); }
  /// gradient[p] += the derivative in parameter p.
  void backward(double* gradient);
  /// gradient[p] += what the columns of the panel have gathered.
  void end_panel(double* gradient);
  /// out[r * inputs + c] += the derivative in input c of row r of the strip.
  void backward_inputs(double* out);

 private:
  bool uses_moments(std::size_t l) const;
  void forward_node(std::size_t k);
  void spread_adjoint(std::size_t k);
  void backward_leaf(std::size_t l, const T* adjoint, double* gradient);
  void add_lengthscales(std::size_t l, const T* slope, double* out);
  double period_term(const ProgramLeaf& leaf, const T* slope) const;
  void leaf_inputs(std::size_t l, const T* adjoint, double* out);
  void circle_inputs(const ProgramLeaf& leaf, double factor, double* out) const;

  const Program& program_;
  const PointSet& row_points_;
  const PointSet& column_points_;
  const simd::TileKernels<T>& tile_;
  const simd::GradientKernels<T>& kernels_;
  StripEvaluator<T> evaluator_;
  Index row_begin_ = 0;
  Index panel_begin_ = 0;
  Index row_ = 0;
  Index rows_ = 0;
  Index count_ = 0;
  std::vector<Buffer<T>> values_;
  std::vector<Buffer<T>> adjoints_;
  std::vector<Buffer<T>> accs_;
  std::vector<Buffer<T>> slopes_;
  std::vector<Buffer<T>> shape_slopes_;
  std::vector<Buffer<T>> column_sums_;
  std::vector<double> moments_;
  std::vector<double> by_feature_;
};

extern template class TreePass<float>;
extern template class TreePass<double>;

}  // namespace mercer::operators::detail
