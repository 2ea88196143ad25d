// A sparse factor of an inverse: (K + D)^-1 ~ G'G, D the noise, or (K - F F' + D)^-1 ~ G'G with a
// low-rank part F taken out. In a random order each point is conditioned on the m earlier points
// that it is most correlated with; its row of G is the last row of the inverse Cholesky factor of
// that small matrix.
//   Source: Vecchia (1988); Kaporin (1994) and Schaefer, Katzfuss & Owhadi (2021): this G is the
//           best of its sparsity. With F: Gyger, Furrer & Sigrist (2024).
//   Cost:   N m^2 / 2 kernel values and N m^3 / 3 flops to build, N m^2 rank more with F (in
//           float32 when the noise allows), and the neighbours; 24 N m bytes (G and its
//           transpose); 4 N m flops to apply G'G.
//   When not: without F, lengthscales as long as the data: m points do not
//           determine the value at another one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mercer/approximations/neighbours.hpp"
#include "mercer/core/options.hpp"
#include "mercer/operators/kernel_operator.hpp"

MERCER_API_BEGIN
namespace mercer::approximations {

struct VecchiaOptions {
  Index neighbours = 30;         // at most; N - 1 when larger
  NeighbourOptions search = {};  // how they are found; its count is `neighbours`
  std::uint64_t seed = 0;
  /// The noise variance inside G is at least this times the largest variance of K.
  double least_noise = 1e-12;
  /// From this noise variance on, relative to the largest variance of K, F F' is taken in float32.
  double float32_from = 1e-4;
};

template <class Visitor>
void visit_fields(VecchiaOptions& o, Visitor&& field) {
  field("neighbours", o.neighbours, NonNegative{});
  visit_fields(o.search, field);
  field("least_noise", o.least_noise, Positive{});
  field("float32_from", o.float32_from, NonNegative{});
}

/// Rows and columns of G are numbered like the points; in the order of the factorisation it is
/// lower triangular.
class Vecchia {
 public:
  /// Of K + D. Throws unless the noise is positive.
  Vecchia(const operators::KernelOperator& k, const linalg::Diagonal& noise,
          const VecchiaOptions& options = {});
  /// Of K - F F' + D; `product`, when not null, becomes G F (N x rank).
  Vecchia(const operators::KernelOperator& k, const linalg::Diagonal& noise, ConstMatrixView f,
          const VecchiaOptions& options = {}, Matrix* product = nullptr);

  Index size() const { return static_cast<Index>(order_.size()); }
  Index neighbours() const { return neighbours_; }
  /// y = G x.
  void multiply(ConstMatrixView x, MatrixView y) const { multiply(rows_, x, y); }
  /// y = G'x.
  void multiply_transposed(ConstMatrixView x, MatrixView y) const { multiply(columns_, x, y); }
  /// x = G^-1 x and x = G'^-1 x, in place (one column after the other is a task).
  void solve(MatrixView x) const;
  void solve_transposed(MatrixView x) const;
  /// log det of (G'G)^-1.
  double log_det() const { return log_det_; }
  /// The entries of one row of G; that of the point itself comes last.
  struct Row {
    std::span<const std::int32_t> index;
    std::span<const double> value;
  };
  Row row(Index point) const;

  /// Points in the order of the factorisation.
  const std::vector<std::int32_t>& order() const { return order_; }
  /// Rows whose small matrix was not positive definite to rounding and had its diagonal raised.
  Index raised() const { return raised_; }
  /// The least noise variance inside G: what was asked for, or the least that is allowed.
  double least_noise() const { return least_noise_; }
  double kernel_values() const { return kernel_values_; }
  bool all_pairs() const { return all_pairs_; }

  static double bytes(Index n, Index neighbours);
  /// Besides what is kept.
  static double building_bytes(Index n, Index d, Index neighbours, Index rank);
  static double kernel_values(Index n, Index neighbours, bool residual);
  static double build_flops(Index n, Index d, Index neighbours, Index rank);
  static double apply_flops(Index n, Index neighbours);

 private:
  /// Compressed rows; in G the last entry of a row, in G' the first, is on the diagonal.
  struct Sparse {
    std::vector<Index> start;
    std::vector<std::int32_t> index;
    std::vector<double> value;
  };
  static void multiply(const Sparse& a, ConstMatrixView x, MatrixView y);
  template <class T>
  void build(const Residual& r, const Neighbours& neighbours,
             const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>& factor, Matrix* product);
  void transpose();

  std::vector<std::int32_t> order_;
  Sparse rows_;     // G
  Sparse columns_;  // G', entries of a row in the order of the factorisation
  Index neighbours_ = 0;
  Index raised_ = 0;
  double least_noise_ = 0;
  double log_det_ = 0;
  double kernel_values_ = 0;
  bool all_pairs_ = true;
};

}  // namespace mercer::approximations
MERCER_API_END
