// What is inferred: a prior of the latent function (kernel and mean) and a likelihood, with the
// values of their parameters. Every method of inference takes the same problem; those that are
// exact need Gaussian noise.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mercer/inference/mean_function.hpp"
#include "mercer/kernels/kernel.hpp"
#include "mercer/likelihoods/likelihood.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

/// A value: copies have their own likelihood.
struct Problem {
  Problem(kernels::Kernel k, std::unique_ptr<likelihoods::Likelihood> l,
          MeanKind m = MeanKind::zero, std::vector<Index> left_out = {})
      : kernel(std::move(k)),
        likelihood(std::move(l)),
        mean(m),
        trend_left_out(std::move(left_out)) {}
  /// With Gaussian noise of this variance.
  Problem(kernels::Kernel k, double noise, MeanKind m = MeanKind::zero,
          std::vector<Index> left_out = {});
  Problem(const Problem& other);
  Problem& operator=(const Problem& other);
  Problem(Problem&&) noexcept = default;
  Problem& operator=(Problem&&) noexcept = default;
  ~Problem() = default;

  kernels::Kernel kernel;
  std::unique_ptr<likelihoods::Likelihood> likelihood;
  MeanKind mean = MeanKind::zero;
  std::vector<Index> trend_left_out;  // inputs that are not part of a linear mean, ascending

  /// True: the noise is Gaussian, and inference is exact.
  bool gaussian() const { return likelihood->gaussian_noise().has_value(); }
  /// s2, the noise variance of one observation. Throws InvalidArgument unless it is Gaussian.
  double noise() const;
  void set_noise(double variance);

  /// Those of the kernel, then those of the likelihood, as logarithms.
  Vector log_parameters() const;
  void set_log_parameters(ConstVectorView theta);
  std::vector<std::string> parameter_names() const;
  /// The basis of the mean at the rows of x.
  Matrix basis(ConstMatrixView x) const { return mean_basis(mean, x, trend_left_out); }
};

}  // namespace mercer::inference
MERCER_API_END
