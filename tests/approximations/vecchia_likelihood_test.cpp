#include "mercer/approximations/vecchia_likelihood.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numbers>

#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "tests/testing/reference_kernel_operator.hpp"

namespace mercer::approximations {
namespace vecchia_likelihood_test {

struct Case {
  kernels::Kernel kernel;
  Matrix x;
  Vector y, noise, slope;
  Matrix basis;
};

// Noise that differs from point to point: share(i) s2.
Case make_case(const std::string& kernel, Index n, Index q) {
  Case c{kernels::Kernel::parse(kernel, 2), Matrix(n, 2), Vector(n), Vector(n), {}, Matrix(n, q)};
  Rng rng(3, "vecchia likelihood");
  rng.fill_normal(c.x);
  for (Index i = 0; i < n; ++i) {
    c.y(i) = std::sin(2 * c.x(i, 0)) + 0.3 * rng.normal() + 1;
    c.noise(i) = 0.1 * (0.5 + rng.uniform());
    for (Index j = 0; j < q; ++j) c.basis(i, j) = j == 0 ? 1.0 : c.x(i, j - 1);
  }
  c.slope = c.noise;
  return c;
}

double dense_likelihood(const Case& c) {
  Matrix h = c.kernel.reference_matrix(c.x, c.x);
  h.diagonal() += c.noise;
  const Eigen::LLT<Matrix> llt(h);
  Vector r = c.y;
  if (c.basis.cols() > 0) {
    const Matrix s = llt.solve(c.basis);
    r -= c.basis * (c.basis.transpose() * s).ldlt().solve(s.transpose() * c.y);
  }
  return -0.5 * r.dot(llt.solve(r)) - Matrix(llt.matrixL()).diagonal().array().log().sum() -
         0.5 * static_cast<double>(c.x.rows()) * std::log(2 * std::numbers::pi);
}

VecchiaEvidence evaluate(const VecchiaLikelihood& v, const Case& c) {
  return v.evaluate({c.kernel, c.noise, c.slope, c.y, c.basis});
}

class VecchiaLikelihoodLaw : public ::testing::TestWithParam<std::tuple<const char*, Index>> {
 protected:
  Case problem(Index n) const {
    return make_case(std::get<0>(GetParam()), n, std::get<1>(GetParam()));
  }
};

TEST_P(VecchiaLikelihoodLaw, GivenAllEarlierPointsItIsTheExactLikelihood) {
  const auto c = problem(60);
  const VecchiaLikelihood v(c.kernel, 0.1, c.x, {.neighbours = 59});
  EXPECT_NEAR(evaluate(v, c).value, dense_likelihood(c), 1e-9);
}

TEST_P(VecchiaLikelihoodLaw, GradientMatchesCentralDifferences) {
  const auto c = problem(80);
  const VecchiaLikelihood v(c.kernel, 0.1, c.x, {.neighbours = 9});
  const auto here = evaluate(v, c);
  const Vector theta = c.kernel.log_parameters();
  constexpr double step = 1e-5;
  for (Index p = 0; p <= theta.size(); ++p) {
    const auto moved = [&](double by) {
      auto m = c;
      if (p < theta.size()) {
        Vector t = theta;
        t(p) += by;
        m.kernel.set_log_parameters(t);
      } else {
        m.noise *= std::exp(by);
        m.slope = m.noise;
      }
      return evaluate(v, m).value;
    };
    const double difference = (moved(step) - moved(-step)) / (2 * step);
    EXPECT_NEAR(here.gradient(p), difference, 1e-6 * (1 + std::abs(difference))) << p;
  }
}

INSTANTIATE_TEST_SUITE_P(KernelsAndMeans, VecchiaLikelihoodLaw,
                         ::testing::Combine(::testing::Values("rbf", "matern32:iso",
                                                              "matern52 + linear", "rq * matern12",
                                                              "matern32(0) * matern12(1)"),
                                            ::testing::Values<Index>(0, 1, 3)));

TEST(VecchiaLikelihood, ScoresAddUpToTheInformation) {
  // Points 100 lengthscales apart are independent, and the information on the log of their variance
  // is N/2.
  // The sum of squared scores has mean N/2 and variance 3.5 N (fourth moment of a chi-square), so
  // over 20 draws of 400 points a relative standard error of 4.2 %; five of them are allowed.
  constexpr Index n = 400;
  constexpr int draws = 20;
  Rng rng(11, "information");
  const Matrix x = Vector::LinSpaced(n, 0, 100.0 * (n - 1));
  const auto kernel = kernels::Kernel::parse("rbf", 1);
  const auto variances = kernel.is_variance();
  const auto at = std::find(variances.begin(), variances.end(), true) - variances.begin();
  const Vector noise = Vector::Constant(n, 1e-9);
  const VecchiaLikelihood v(kernel, 1e-9, x, {.neighbours = 5});
  double mean = 0;
  for (int draw = 0; draw < draws; ++draw) {
    Matrix y(n, 1);
    rng.fill_normal(y);
    mean += v.evaluate({kernel, noise, noise, y.col(0), Matrix(n, 0)}).information(at, at) / draws;
  }
  EXPECT_NEAR(mean / (n / 2.0), 1.0, 0.21);
}

TEST(VecchiaLikelihood, SameBitsOnAnyNumberOfThreads) {
  const auto c = make_case("matern32", 300, 1);
  const int before = num_threads();
  set_num_threads(1);
  const auto one = evaluate(VecchiaLikelihood(c.kernel, 0.1, c.x, {.neighbours = 12}), c);
  set_num_threads(2);
  const auto two = evaluate(VecchiaLikelihood(c.kernel, 0.1, c.x, {.neighbours = 12}), c);
  set_num_threads(before);
  EXPECT_EQ(one.value, two.value);
  EXPECT_EQ(one.gradient, two.gradient);
}

TEST(InverseTrace, IsTheDenseTraceOfTheFactor) {
  auto kernel = kernels::Kernel::parse("matern52", 2);
  Matrix x(70, 2);
  Rng(4, "trace").fill_normal(x);
  const testing::ReferenceKernelOperator k(kernel, x);
  const Vecchia factor(k, 0.2, {.neighbours = 8});
  const Vector slope = Vector::LinSpaced(70, 0.1, 0.3);
  const Vector trace = inverse_trace(factor, kernel, x, slope);
  Matrix g = Matrix::Identity(70, 70), dense(70, 70);
  factor.multiply(Matrix::Identity(70, 70), g);
  const Matrix inverse = g.transpose() * g;
  Vector one(kernel.num_parameters());
  for (Index p = 0; p < kernel.num_parameters(); ++p) {
    for (Index i = 0; i < 70; ++i)
      for (Index j = 0; j < 70; ++j) {
        kernel.evaluate_with_gradient(&x(i, 0), x.rows(), &x(j, 0), x.rows(), one);
        dense(i, j) = one(p);
      }
    EXPECT_NEAR(trace(p), (inverse * dense).trace(), 1e-9 * (1 + std::abs(trace(p)))) << p;
  }
  EXPECT_NEAR(trace(kernel.num_parameters()), inverse.diagonal().dot(slope), 1e-9);
}

}  // namespace vecchia_likelihood_test
}  // namespace mercer::approximations
