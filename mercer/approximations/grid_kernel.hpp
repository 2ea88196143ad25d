// Products with the kernel matrix of a regular grid. For a stationary kernel it is Toeplitz in
// every axis, and one column of it says everything:
//   - a kernel that is a product over the inputs (rbf, periodic, their products) is a Kronecker
//     product of one small matrix per axis;
//   - any other is embedded into a circulant matrix, at least twice as long in every axis, which
//     the Fourier transform diagonalises.
//   Source: Wilson & Nickisch (2015); Dietrich & Newsam (1997) for the embedding.
//   Cost:   M = the product of m_c nodes. Kronecker 2 M sum(m_c) flops and 32 M bytes;
//           Fourier about 10 L log2(L) flops and 24 L bytes for L about 2^d M.
//   When not: many axes: M grows with the power d, L with 2^d besides.
#pragma once

#include <complex>
#include <vector>

#include "mercer/kernels/kernel.hpp"

namespace mercer::approximations {

/// Nodes at origin + i step, i = 0 .. nodes - 1.
struct GridAxis {
  double origin = 0;
  double step = 1;
  Index nodes = 1;
};

/// True when k(x, x') = k0 prod_c f_c(x_c - x'_c).
bool separable(const kernels::Kernel& kernel);

class GridKernel {
 public:
  /// Throws InvalidArgument when the kernel is not stationary.
  GridKernel(const kernels::Kernel& kernel, std::vector<GridAxis> axes);

  const std::vector<GridAxis>& axes() const { return axes_; }
  Index nodes() const { return nodes_; }
  bool kronecker() const { return !factors_.empty(); }
  /// y = K_grid x; both have nodes() rows, the first axis runs fastest; they may be the same.
  void apply(ConstMatrixView x, MatrixView y) const;

  double bytes() const;  // scratch included
  double apply_flops() const;
  double kernel_values() const { return kernel_values_; }

  /// L for a grid of these nodes per axis.
  static double embedded_nodes(const std::vector<Index>& nodes);

 private:
  void build_factors(const kernels::Kernel& kernel);
  void build_spectrum(const kernels::Kernel& kernel);
  void apply_factors(ConstVectorView x, VectorView y) const;
  void apply_spectrum(ConstMatrixView x, MatrixView y) const;
  void transform_axis(std::size_t axis, bool forward, bool pruned,
                      std::vector<std::complex<double>>& data) const;

  std::vector<GridAxis> axes_;
  Index nodes_ = 1;
  double kernel_values_ = 0;
  double variance_ = 1;           // k(x, x), Kronecker
  std::vector<Matrix> factors_;   // correlation along each axis, Kronecker
  std::vector<Index> lengths_;    // of the embedding, Fourier
  std::vector<double> spectrum_;  // of the embedding, divided by L
};

}  // namespace mercer::approximations
