// The log evidence of a Laplace approximation and its exact gradient by Cholesky, for small N:
//   log q(y) = psi - 1/2 log|B|;  with Q = R B^-1 R' and Sigma = (K^-1 + W)^-1,
//   d log q  = 1/2 a'dK a - 1/2 tr(Q dK) + s'dK g,  s = u - Q K u,  u_j = -1/2 tr(Sigma dW/df_j).
//   Source: Rasmussen & Williams (2006), algorithm 5.1.
//   Cost:   N^3 flops a function (one factorisation, one inverse) and, from the mode and the factor
//           of a problem close by, tens of products with K; a few factorisations more without.
//           Functions coupled in a row: about 7 N^3 a function, and 8 N^2 (6 + 2 C) bytes.
#pragma once

#include "mercer/inference/laplace/laplace.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

struct LaplaceEvidence {
  double value = 0;  // log q(y)
  Vector gradient;   // in problem.log_parameters(); empty when not asked for
  LaplaceMode mode;
};

/// Evidences of problems close to each other, one after the other: each begins at the last mode,
/// with the last factor as a preconditioner. The data must outlive it.
class ExactLaplace {
 public:
  explicit ExactLaplace(const Observations& data, const NewtonOptions& options = {});
  ~ExactLaplace();

  /// Throws NotPositiveDefinite where the mode is not found; what was before stays as it is.
  LaplaceEvidence evaluate(const Problem& problem, bool with_gradient);
  /// Goes on, to the same bits, as if `problem` had been evaluated last and `a` and `beta` were its
  /// mode.
  void resume(const Problem& problem, Matrix a, Matrix beta);
  /// Begins the next one at `a`, without a factor.
  void start_at(Matrix a);
  /// Number of matrices factored so far.
  int factorisations() const;

 private:
  struct Last;

  void use(const kernels::Kernel& kernel);
  void recall();
  LaplaceMode mode_of(const Problem& problem);
  Vector gradient_of(const Problem& problem, const LaplaceMode& mode);
  Matrix coupled_terms(const Problem& problem, const LaplaceMode& mode);
  Vector coupled_gradient(const Problem& problem, const LaplaceMode& mode);

  const Observations& data_;
  NewtonOptions options_;
  std::unique_ptr<DenseLaplaceSystem> system_;
  std::unique_ptr<Last> last_;
  bool spoiled_ = false;  // the factor is not that of the last problem
  Matrix weights_;        // of dK, N x N
};

/// One alone, from `start` (its a; zero when empty).
LaplaceEvidence exact_laplace(const Problem& problem, const Observations& data, bool with_gradient,
                              const NewtonOptions& options = {}, LaplaceMode start = {});

double exact_laplace_bytes(Index n, FunctionCount functions);
/// Cost of one evidence with its gradient, when many are evaluated one after the other.
double exact_laplace_flops(Index n, FunctionCount functions);

}  // namespace mercer::inference
MERCER_API_END
