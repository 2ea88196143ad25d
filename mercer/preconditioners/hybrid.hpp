// P = F F' + (G'G)^-1: a low-rank part F by randomly pivoted Cholesky for what is smooth, and the
// sparse inverse factor G of what it leaves, K - F F' + noise, for what is local.
//   Source: Zhao, Xu, Huang, Chow & Xi (2024), adaptive factorised Nystroem; Gyger, Furrer &
//           Sigrist (2024), Vecchia-inducing-points full-scale. With B = G F,
//             P^-1 = G' (I + B B')^-1 G,   log|P| = log|(G'G)^-1| + log|I + B B'|,
//           symmetric and positive whatever rounding does to F, B and G.
//   Cost:   see approximations/rpcholesky.hpp and vecchia.hpp, and woodbury.hpp for I + B B'.
//   When not: a low rank alone leaves less than the noise (`rpcholesky` is then as good at half
//           the price), or the lengthscales are so short that there is no smooth part (`vecchia`).
#pragma once

#include "mercer/approximations/rpcholesky.hpp"
#include "mercer/approximations/vecchia.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"
#include "mercer/preconditioners/woodbury.hpp"

MERCER_API_BEGIN
namespace mercer::preconditioners {

class Hybrid final : public linalg::Preconditioner {
 public:
  /// F is N x rank with K - F F' positive semidefinite.
  Hybrid(const operators::KernelOperator& k, const linalg::Diagonal& noise, ConstMatrixView f,
         const approximations::VecchiaOptions& options);

  Index size() const override { return factor_.size(); }
  void solve(ConstMatrixView r, MatrixView z) const override;
  double log_det() const override { return factor_.log_det() + core_.log_det(); }
  void sample(Rng& rng, MatrixView z) const override;

  Index rank() const { return core_.rank(); }
  Index dropped() const { return core_.dropped(); }
  const approximations::Vecchia& factor() const { return factor_; }

 private:
  Hybrid(const operators::KernelOperator& k, const linalg::Diagonal& noise, ConstMatrixView f,
         const approximations::VecchiaOptions& options, Matrix&& product);

  approximations::Vecchia factor_;  // G
  Woodbury core_;                   // I + B B'
};

/// The hybrid on a low-rank part F that is there already.
Built hybrid_on(const Target& target, ConstMatrixView f, const PreconditionerOptions& options);

PreconditionerInfo hybrid_info();

}  // namespace mercer::preconditioners
MERCER_API_END
