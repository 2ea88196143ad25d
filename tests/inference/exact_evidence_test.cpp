#include "mercer/inference/exact/exact_evidence.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <numbers>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"

namespace mercer::inference {
namespace exact_evidence_test {

Observations small_data(Index n, Index d) {
  Observations out{Matrix(n, d), Vector(n)};
  Rng rng(5, "evidence");
  rng.fill_normal(out.x);
  for (Index i = 0; i < n; ++i) out.y(i) = std::sin(2 * out.x(i, 0)) + 0.3 * rng.normal() + 1.0;
  return out;
}

// The textbook formula in dense Eigen algebra, with the trend by generalised least squares.
double dense_evidence(const Problem& problem, const Observations& data) {
  const Index n = data.x.rows();
  Matrix h = problem.kernel.reference_matrix(data.x, data.x);
  h.diagonal() += data.noise.at(problem.noise()).vector(n);
  const Eigen::LLT<Matrix> llt(h);
  Vector r = data.y;
  const Matrix a = mean_basis(problem.mean, data.x);
  if (a.cols() > 0) {
    const Matrix ha = llt.solve(a);
    r -= a * (a.transpose() * ha).ldlt().solve(ha.transpose() * data.y);
  }
  const double log_det = 2 * Matrix(llt.matrixL()).diagonal().array().log().sum();
  return -0.5 * r.dot(llt.solve(r)) - 0.5 * log_det -
         0.5 * static_cast<double>(n) * std::log(2 * std::numbers::pi);
}

enum class Noise { equal, shares, known, both };

class EvidenceLaw : public ::testing::TestWithParam<std::tuple<const char*, MeanKind, Noise>> {
 protected:
  Observations data(Index n) const {
    auto out = small_data(n, 2);
    const Noise noise = std::get<2>(GetParam());
    Matrix u(n, 2);
    Rng(6, "evidence noise").fill_uniform(u);
    if (noise == Noise::shares || noise == Noise::both)
      out.noise.weight = (u.col(0).array() + 0.1).inverse();
    if (noise == Noise::known || noise == Noise::both) out.noise.known = u.col(1);
    return out;
  }
  Problem problem() const {
    return {kernels::Kernel::parse(std::get<0>(GetParam()), 2), 0.2, std::get<1>(GetParam())};
  }
};

TEST_P(EvidenceLaw, ValueIsTheTextbookFormula) {
  const auto rows = data(70);
  const double value = exact_evidence(problem(), rows, false).value;
  // Both are Cholesky in double on a matrix of condition below 1e4.
  EXPECT_NEAR(value, dense_evidence(problem(), rows), 1e-10 * std::abs(value));
}

TEST_P(EvidenceLaw, GradientMatchesCentralDifferences) {
  const auto rows = data(60);
  auto p = problem();
  const Vector theta = p.log_parameters();
  const Vector gradient = exact_evidence(p, rows, true).gradient;
  ASSERT_EQ(gradient.size(), theta.size());
  for (Index i = 0; i < theta.size(); ++i) {
    const auto at = [&](double step) {
      Vector t = theta;
      t(i) += step;
      auto moved = p;
      moved.set_log_parameters(t);
      return dense_evidence(moved, rows);
    };
    const double h = 1e-3;
    const double slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    // Fourth-order differences at 1e-3: truncation 1e-12, rounding 1e-15 / 1e-3 of values ~ 100.
    EXPECT_NEAR(gradient(i), slope, 1e-8 * (1 + std::abs(slope)))
        << p.parameter_names()[static_cast<std::size_t>(i)];
  }
}

INSTANTIATE_TEST_SUITE_P(
    KernelsAndMeans, EvidenceLaw,
    ::testing::Combine(::testing::Values("rbf", "matern32:iso", "matern12", "rq:iso",
                                         "rbf + linear:iso", "matern52 * periodic:iso", "poly:2",
                                         "matern32(1) * matern12(0) + linear(1)"),
                       ::testing::Values(MeanKind::zero, MeanKind::constant, MeanKind::linear),
                       ::testing::Values(Noise::equal)));

INSTANTIATE_TEST_SUITE_P(UnequalNoise, EvidenceLaw,
                         ::testing::Combine(::testing::Values("rbf", "matern32:iso"),
                                            ::testing::Values(MeanKind::zero, MeanKind::linear),
                                            ::testing::Values(Noise::shares, Noise::known,
                                                              Noise::both)));

TEST(ExactEvidence, SameBitsForAnyNumberOfThreads) {
  const auto data = small_data(600, 3);
  const Problem problem{kernels::Kernel::parse("matern52", 3), 0.1, MeanKind::constant};
  const int before = num_threads();
  set_num_threads(1);
  const auto one = exact_evidence(problem, data, true);
  set_num_threads(3);
  const auto three = exact_evidence(problem, data, true);
  set_num_threads(before);
  EXPECT_EQ(one.value, three.value);
  EXPECT_EQ(one.gradient, three.gradient);
}

TEST(ExactEvidence, ShapesMustAgree) {
  const Problem problem{kernels::Kernel::parse("rbf", 2), 0.1, MeanKind::zero};
  EXPECT_THROW(exact_evidence(problem, {Matrix::Zero(3, 2), Vector::Zero(4)}, false),
               DimensionMismatch);
  const Observations few_shares{
      Matrix::Zero(3, 2), Vector::Zero(3), {}, {.weight = Vector::Ones(2)}};
  EXPECT_THROW(exact_evidence(problem, few_shares, false), DimensionMismatch);
}

TEST(MeanFunction, CollinearTrendIsRefusedWithAReason) {
  Matrix x(20, 2);
  Rng(1, "x").fill_normal(x);
  x.col(1) = x.col(0);  // the two slopes cannot be told apart
  const Problem problem{kernels::Kernel::parse("rbf", 2), 0.1, MeanKind::linear};
  EXPECT_THROW(exact_evidence(problem, {x, x.col(0)}, false), NotPositiveDefinite);
}

TEST(MeanFunction, NamesGoInAndOut) {
  for (const char* name : {"zero", "constant", "linear"})
    EXPECT_EQ(to_string(mean_kind(name)), name);
  EXPECT_THROW(mean_kind("quadratic"), InvalidArgument);
}

}  // namespace exact_evidence_test
}  // namespace mercer::inference
