// Random Fourier features: phi(x)' phi(y) has mean k(x, y), for every kernel expression.
//   Source: Rahimi & Recht (2007). A stationary k is the mean of cos(w'(x - y)) over frequencies w,
//           which each leaf draws by itself (kernels/leaves/): normal for rbf, Student-t for
//           matern, harmonics for periodic. A product of kernels adds their frequencies. constant,
//           linear and poly are exact: their features are the monomials. The expression is
//           multiplied out into a sum of products; terms with frequencies share the features by
//           variance.
//   Cost:   2 N d m flops and N m sine-cosine pairs for m frequencies; error of each entry of K
//           about v / sqrt(2 m).
//   When not: accuracy is wanted: the error falls like 1/sqrt(m), with landmarks it falls like the
//           spectrum of K.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mercer/kernels/kernel.hpp"

MERCER_API_BEGIN
namespace mercer::approximations {

class RandomFeatures {
 public:
  /// At most `count` features: pairs [cos, sin] for every frequency. Throws InvalidArgument when
  /// count is below smallest_count(kernel) or when refusal(kernel) gives a reason.
  RandomFeatures(const kernels::Kernel& kernel, Index count, std::uint64_t seed);

  Index num_inputs() const { return num_inputs_; }
  /// Features in all, at most the number asked.
  Index count() const { return count_; }

  /// out(i, :) = phi(x_i)'; x is N x num_inputs, out is N x count.
  void evaluate(ConstMatrixView x, MatrixView out) const;
  /// Phi(x) c for a block of coefficients (count x t), the features of a panel of rows at a time.
  /// With normal c its columns are draws of a process with covariance phi'phi.
  Matrix combine(ConstMatrixView x, ConstMatrixView c) const;
  /// What that holds beside its result.
  static double combine_bytes(Index features);

  /// One frequency for every term that has any, and all the monomials.
  static Index smallest_count(const kernels::Kernel& kernel);
  /// Why there are no features for this kernel, as a sentence; empty when there are.
  static std::string refusal(const kernels::Kernel& kernel);

  /// coefficient * prod_c x_c^exponents[c].
  struct Monomial {
    double coefficient = 1;
    std::vector<int> exponents;  // one per input
  };
  /// variance * (sum of the products of monomials with themselves) * (mean over frequencies).
  struct Term {
    double variance = 1;
    std::vector<kernels::Leaf> distance_leaves;
    std::vector<Monomial> monomials;
    Matrix frequencies;  // num_inputs x m; no columns: exact
    Index features() const;
  };

 private:
  Index num_inputs_;
  Index count_ = 0;
  std::vector<Term> terms_;
};

}  // namespace mercer::approximations
MERCER_API_END
