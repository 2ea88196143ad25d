// Observations that every likelihood allows, and what the tests over all of them share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "mercer/core/rng.hpp"
#include "mercer/inference/laplace/laplace_gradient.hpp"

namespace mercer::testing {

/// 0/1 for classes, small counts, numbers with outliers.
inline double observe(const likelihoods::Likelihood& likelihood, double f, Rng& rng) {
  if (likelihood.is_binary()) return rng.uniform() < 1 / (1 + std::exp(-2 * f)) ? 1 : 0;
  if (likelihood.scalable()) return f + 0.3 * rng.normal() / std::sqrt(rng.uniform());
  return std::floor(std::exp(0.5 + f) * (0.5 + rng.uniform()));
}

/// Observations of rows of latent functions, N x C. Where functions are coupled a row is a one
/// among zeros.
inline Matrix observe_all(const likelihoods::Likelihood& likelihood, const Matrix& f, Rng& rng) {
  Matrix y = Matrix::Zero(f.rows(), f.cols());
  if (likelihood.coupled() == nullptr) {
    for (Index j = 0; j < f.cols(); ++j)
      for (Index i = 0; i < f.rows(); ++i) y(i, j) = observe(likelihood, f(i, j), rng);
    return y;
  }
  for (Index i = 0; i < f.rows(); ++i) {
    Vector value = 2 * f.row(i);  // the largest with Gumbel noise has the probabilities of softmax
    for (Index j = 0; j < f.cols(); ++j) value(j) -= std::log(-std::log(rng.uniform()));
    Index best = 0;
    value.maxCoeff(&best);
    y(i, best) = 1;
  }
  return y;
}

inline std::vector<std::string> likelihood_names() {
  std::vector<std::string> names;
  for (const auto& info : likelihoods::likelihoods()) names.emplace_back(info.name);
  return names;
}

inline bool is_coupled(const std::string& likelihood) {
  return likelihoods::make(likelihood)->coupled() != nullptr;
}

/// A coupled likelihood says nothing about a function alone.
inline Index functions_of(const std::string& likelihood, Index wanted) {
  return is_coupled(likelihood) ? std::max<Index>(wanted, 2) : wanted;
}

/// The means that Laplace's approximation takes with this likelihood.
inline std::vector<inference::MeanKind> means_of(const std::string& likelihood) {
  using inference::MeanKind;
  if (is_coupled(likelihood)) return {MeanKind::zero};
  return {MeanKind::zero, MeanKind::constant, MeanKind::linear};
}

/// A name that GoogleTest takes.
inline std::string test_name(const ::testing::TestParamInfo<std::string>& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

/// The mean of many estimates of a gradient is the exact one, and their standard errors are those
/// of their spread.
inline void expect_unbiased(const inference::Problem& problem, const inference::Observations& data,
                            const Vector& exact) {
  inference::LaplaceEstimatorOptions options;
  options.probes = 40;
  options.fresh = true;
  options.system.solver = "cg";
  options.system.preconditioner = "auto";
  inference::LaplaceGradient estimator(data, options);
  const int count = 60;
  Matrix gradients(exact.size(), count), errors(exact.size(), count);
  for (int i = 0; i < count; ++i) {
    const auto estimate = estimator.estimate(problem, 1e-9, true);
    ASSERT_EQ(estimate.stop, StopReason::converged);
    gradients.col(i) = estimate.gradient;
    errors.col(i) = estimate.standard_error;
  }
  for (Index p = 0; p < exact.size(); ++p) {
    SCOPED_TRACE(problem.parameter_names()[static_cast<std::size_t>(p)]);
    const double mean = gradients.row(p).mean();
    const double variance = (gradients.row(p).array() - mean).square().sum() / (count - 1);
    // |t| < 4.3 with 59 degrees of freedom: a false alarm in 15,000 per entry.
    EXPECT_NEAR(mean, exact(p), 4.3 * std::sqrt(variance / count) + 1e-6);
    // One contrast each: F with 60 and 59 degrees of freedom is outside 0.37 .. 2.7 once in 10,000.
    if (variance > 1e-12) {
      const double ratio = errors.row(p).array().square().mean() / variance;
      EXPECT_GT(ratio, 0.37);
      EXPECT_LT(ratio, 2.7);
    }
  }
}

}  // namespace mercer::testing
