// P^-1 = G'G with the sparse inverse factor G of K plus noise.
//   Source: Vecchia (1988); as a preconditioner Schaefer, Katzfuss & Owhadi (2021).
//   Cost:   see approximations/vecchia.hpp.
//   When not: long lengthscales and little noise, where `hybrid` takes out a low-rank part first.
#pragma once

#include "mercer/approximations/vecchia.hpp"
#include "mercer/preconditioners/preconditioner_info.hpp"

MERCER_API_BEGIN
namespace mercer::preconditioners {

class Vecchia final : public linalg::Preconditioner {
 public:
  Vecchia(const operators::KernelOperator& k, const linalg::Diagonal& noise,
          const approximations::VecchiaOptions& options)
      : factor_(k, noise, options) {}

  Index size() const override { return factor_.size(); }
  void solve(ConstMatrixView r, MatrixView z) const override;
  double log_det() const override { return factor_.log_det(); }
  void sample(Rng& rng, MatrixView z) const override;

  const approximations::Vecchia& factor() const { return factor_; }

 private:
  approximations::Vecchia factor_;
};

/// 30 below 5000 points, 60 up to 30000, 100 above; at most N - 1.
Index default_neighbours(Index n);
/// The number that will be asked for: the option, or the default; never above N - 1.
Index effective_neighbours(Index n, const PreconditionerOptions& options);
/// What was cut, raised or left out, as sentences.
std::string vecchia_notes(const approximations::Vecchia& factor, const linalg::Diagonal& noise,
                          const PreconditionerOptions& options);

PreconditionerInfo vecchia_info();

}  // namespace mercer::preconditioners
MERCER_API_END
