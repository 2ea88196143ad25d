// K ~ W K_grid W': the kernel on a regular grid around the data, interpolated to the points
// (structured kernel interpolation, SKI).
//   Source: Wilson & Nickisch (2015); cubic convolution weights of Keys (1981). Cutajar et al.
//           (2016) took the nearest node of N^(3/(2d)) per axis, as here above four inputs.
//   Cost:   a product is one with K_grid (grid_kernel.hpp) and 4 N 4^d flops (4 N above d = 4);
//           W is kept by axis, (32 + 8) N d bytes.
//   When not: many inputs, or lengthscales below the step of the grid: the error of the diagonal is
//           then as large as the kernel itself.
//
// The grid has N^(3/(2d)) nodes per axis: N^(3/2) in all, at most a million (three hundred thousand
// in four inputs). Up to four inputs an axis has at least 4 nodes per lengthscale where that at
// most quadruples the grid, and no more than 32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mercer/approximations/grid_kernel.hpp"
#include "mercer/linalg/linear_operator.hpp"

namespace mercer::approximations {

/// Cubic interpolation up to this number of inputs, the nearest node above.
constexpr Index most_cubic_inputs = 4;
/// Nodes of a grid at most; of the embedding, where the kernel needs one.
constexpr double most_grid_nodes = 1e7;

/// Nodes per axis before lengthscales are looked at, and the most that the grid may have in all.
Index default_axis_nodes(Index n, Index d);
double most_nodes_wanted(Index n, Index d);

/// Why there is no grid for this kernel and so many points and inputs; empty when there is.
std::string grid_refusal(const kernels::Kernel& kernel, Index n, Index d);

class GridInterpolation final : public linalg::LinearOperator {
 public:
  /// Throws InvalidArgument with the reason of grid_refusal.
  GridInterpolation(const kernels::Kernel& kernel, ConstMatrixView points);

  Index size() const override { return size_; }
  /// y = W K_grid W' x.
  void apply(ConstMatrixView x, MatrixView y) const override;

  const GridKernel& grid() const { return grid_; }
  double bytes() const;
  double apply_flops() const;

 private:
  /// The weights of all nodes that point i is interpolated from, into `weights`; their first node.
  Index expand(Index i, double* weights) const;

  Index size_;
  Index width_;  // nodes per axis that a point sees: 4, or 1
  GridKernel grid_;
  std::vector<Index> neighbours_;     // of the nodes a point sees, relative to the first
  std::vector<std::int64_t> first_;   // of each point, the first node it sees
  std::vector<double> axis_weights_;  // width x d for each point; empty for the nearest node
};

}  // namespace mercer::approximations
