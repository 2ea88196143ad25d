// Laws of every likelihood that couples the functions of a row, and facts of softmax.
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <random>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/likelihoods/coupled_likelihood.hpp"
#include "tests/likelihoods/brute_force.hpp"

namespace mercer::likelihoods {
namespace coupled_test {

Matrix curvature(const Vector& w) { return Matrix(w.asDiagonal()) - w * w.transpose() / w.sum(); }

Matrix random_covariance(Index c, double scale, Rng& rng) {
  Matrix a(c, c + 1);
  rng.fill_normal(a);
  return scale / static_cast<double>(c) * a * a.transpose();
}

struct Row {
  Vector g, w;
  double value = 0;
};

class CoupledLikelihoods : public ::testing::TestWithParam<LikelihoodInfo> {
 protected:
  CoupledLikelihoods() : owner_(GetParam().make({})), likelihood_(*owner_->coupled()) {}

  Row row(const Vector& y, const Vector& f) const {
    Row out{Vector(f.size()), Vector(f.size())};
    out.value = likelihood_.row_derivatives(y, f, out.g, out.w);
    return out;
  }
  /// Rows of f of two to twelve functions, from mild to far beyond the range of exp.
  template <class Visit>
  void rows(const Visit& visit) const {
    Rng rng(5, "rows");
    for (const Index c : {2, 3, 12})
      for (const double scale : {0.3, 3.0, 30.0, 2000.0})
        for (Index y = 0; y < c; ++y) {
          Vector f(c);
          rng.fill_normal(f);
          SCOPED_TRACE(::testing::Message() << c << " functions, scale " << scale << " y " << y);
          visit(Vector(Vector::Unit(c, y)), Vector(scale * f));
        }
  }
  /// d g / d f_k by four values; its error is (h^4/30) |fifth derivative| and rounding over h.
  template <class G>
  static auto difference(const G& g, const Vector& f, Index k) -> decltype(g(f)) {
    const double h = 1e-3;
    const auto at = [&](double step) {
      const Vector moved = f + step * Vector::Unit(f.size(), k);
      return g(moved);
    };
    return ((8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h));
  }

  std::unique_ptr<Likelihood> owner_;
  const CoupledLikelihood& likelihood_;
};

// 1e-11: the fifth derivatives of log softmax are below 30; |f| = 2000 is rounded by 2e-13 and
// divided by 1e-3.
TEST_P(CoupledLikelihoods, DerivativesMatchDifferences) {
  rows([&](const Vector& y, const Vector& f) {
    const auto here = row(y, f);
    const double tolerance = 1e-11 + 4e-13 * f.cwiseAbs().maxCoeff();
    EXPECT_EQ(here.value, likelihood_.row_log_density(y, f));
    const Matrix w = curvature(here.w);
    for (Index k = 0; k < f.size(); ++k) {
      const double slope =
          difference([&](const Vector& x) { return likelihood_.row_log_density(y, x); }, f, k);
      EXPECT_NEAR(here.g(k), slope, tolerance);
      const Vector bend = difference([&](const Vector& x) -> Vector { return row(y, x).g; }, f, k);
      EXPECT_LT((w.col(k) + bend).cwiseAbs().maxCoeff(), tolerance);
    }
  });
}

TEST_P(CoupledLikelihoods, TheSlopeOfTheCurvatureMatchesDifferences) {
  Rng rng(6, "sigma");
  rows([&](const Vector& y, const Vector& f) {
    const Matrix sigma = random_covariance(f.size(), 1.0, rng);
    const Matrix e = sigma * curvature(row(y, f).w);
    Vector slope(f.size());
    likelihood_.curvature_slope(f, e, slope);
    const double tolerance =
        (1e-10 + 4e-12 * f.cwiseAbs().maxCoeff()) * (1 + sigma.cwiseAbs().sum());
    for (Index k = 0; k < f.size(); ++k) {
      const double expected = difference(
          [&](const Vector& x) { return (sigma * curvature(row(y, x).w)).trace(); }, f, k);
      EXPECT_NEAR(slope(k), expected, tolerance);
    }
    // What a constant adds to all functions is nothing, and it is not seen through W.
    const Matrix ones = Matrix::Ones(f.size(), f.size());
    Vector shifted(f.size());
    likelihood_.curvature_slope(f, (sigma + 3 * ones) * curvature(row(y, f).w), shifted);
    EXPECT_LT((shifted - slope).cwiseAbs().maxCoeff(), 1e-13 * (3 + sigma.cwiseAbs().sum()));
  });
}

TEST_P(CoupledLikelihoods, AConstantOnAllFunctionsChangesNothing) {
  rows([&](const Vector& y, const Vector& f) {
    const auto here = row(y, f), there = row(y, f.array() + 1);
    const double rounding = 1e-15 * (1 + f.cwiseAbs().maxCoeff());
    EXPECT_NEAR(here.value, there.value, 4 * rounding);
    EXPECT_LT((here.g - there.g).cwiseAbs().maxCoeff(), 4 * rounding);
    EXPECT_NEAR(here.g.sum(), 0, 1e-14);
    EXPECT_GE(here.w.minCoeff(), 0);
    EXPECT_GT(here.w.sum(), 0);
  });
}

TEST_P(CoupledLikelihoods, TheClassesOfARowSumToOne) {
  rows([&](const Vector&, const Vector& f) {
    double sum = 0;
    for (Index y = 0; y < f.size(); ++y)
      sum += std::exp(likelihood_.row_log_density(Vector::Unit(f.size(), y), f));
    EXPECT_NEAR(sum, 1, 1e-15 * (10 + f.cwiseAbs().maxCoeff()));
  });
}

TEST_P(CoupledLikelihoods, WithoutVarianceProbabilitiesAreThoseOfTheDensity) {
  Rng rng(7, "means");
  for (const Index c : {2, 3, 20, 21, 60}) {
    Vector f(c);
    rng.fill_normal(f);
    const auto found = likelihood_.class_probabilities(f, Matrix::Zero(c, c));
    for (Index y = 0; y < c; ++y)
      EXPECT_NEAR(found.p(y), std::exp(likelihood_.row_log_density(Vector::Unit(c, y), f)), 1e-14);
    EXPECT_EQ(found.standard_error, 0.0);
    EXPECT_THROW(likelihood_.class_probabilities(f, Matrix::Zero(c + 1, c + 1)), DimensionMismatch);
  }
}

// Against 400,000 draws of another generator. Five standard errors: a false alarm in 1.7 million
// per entry, of which there are 72, where these draws decide; in 6,000 where the sixteen shifts do,
// whose error has fifteen degrees of freedom.
TEST_P(CoupledLikelihoods, ProbabilitiesMatchManyDraws) {
  Rng rng(8, "beliefs");
  std::mt19937_64 other(17);
  std::normal_distribution<double> normal;
  for (const Index c : {2, 3, 5, 14})
    for (const double scale : {0.1, 4.0, 60.0}) {
      SCOPED_TRACE(::testing::Message() << c << " functions, variances of " << scale);
      Vector mean(c);
      rng.fill_normal(mean);
      mean *= std::sqrt(scale);
      Matrix covariance = random_covariance(c, scale, rng);
      if (c == 5) covariance = mean * mean.transpose();  // of rank one
      const auto found = likelihood_.class_probabilities(mean, covariance);
      const Matrix jittered = covariance + 1e-12 * scale * Matrix::Identity(c, c);
      const Matrix root = jittered.llt().matrixL();
      const int count = 400000;
      Vector sum = Vector::Zero(c), squares = sum, z(c), p(c);
      for (int s = 0; s < count; ++s) {
        for (Index k = 0; k < c; ++k) z(k) = normal(other);
        const Vector f = mean + root * z;
        for (Index k = 0; k < c; ++k)
          p(k) = std::exp(likelihood_.row_log_density(Vector::Unit(c, k), f));
        sum += p;
        squares += p.cwiseAbs2();
      }
      ASSERT_TRUE(found.standard_error);
      EXPECT_NEAR(found.p.sum(), 1, 1e-14);
      for (Index k = 0; k < c; ++k) {
        const double average = sum(k) / count;
        const double variance = std::max(0.0, squares(k) / count - average * average) / count;
        const double error = std::sqrt(variance + *found.standard_error * *found.standard_error);
        EXPECT_NEAR(found.p(k), average, 5 * error + 1e-12);
      }
      EXPECT_LT(*found.standard_error, 0.01);
    }
}

TEST_P(CoupledLikelihoods, ProbabilitiesOfManyClassesKeepTheOrderAndFlatten) {
  const Index c = 40;
  const Vector mean = Vector::LinSpaced(c, -2, 2);
  const auto sure = likelihood_.class_probabilities(mean, Matrix::Zero(c, c));
  const auto vague = likelihood_.class_probabilities(mean, 50 * Matrix::Identity(c, c));
  EXPECT_FALSE(vague.standard_error);
  EXPECT_NEAR(vague.p.sum(), 1, 1e-14);
  for (Index k = 1; k < c; ++k) EXPECT_GT(vague.p(k), vague.p(k - 1));
  EXPECT_LT(vague.p(c - 1), sure.p(c - 1));
  // Functions that move together are as good as known.
  const auto together = likelihood_.class_probabilities(mean, Matrix::Constant(c, c, 50.0));
  EXPECT_LT((together.p - sure.p).cwiseAbs().maxCoeff(), 1e-12);
}

TEST_P(CoupledLikelihoods, NothingIsNotANumber) {
  for (const double far : {40.0, 800.0, 1e4, 1e300}) {
    const Vector f = (Vector(3) << far, -far, 0).finished();
    for (Index y = 0; y < 3; ++y) {
      const auto here = row(Vector::Unit(3, y), f);
      EXPECT_TRUE(std::isfinite(here.value));
      EXPECT_TRUE(here.g.allFinite());
      EXPECT_TRUE(here.w.allFinite());
    }
    for (const double variance : {0.0, 1e-300, 1.0, 1e8}) {
      const auto p = likelihood_.class_probabilities(f, variance * Matrix::Identity(3, 3)).p;
      EXPECT_TRUE(p.allFinite());
      EXPECT_NEAR(p.sum(), 1, 1e-14);
    }
  }
}

TEST_P(CoupledLikelihoods, ASingleFunctionIsRefused) {
  EXPECT_THROW(likelihood_.log_density(1, 0), InvalidArgument);
  EXPECT_THROW(likelihood_.curvature(1, 0), InvalidArgument);
  EXPECT_THROW(likelihood_.log_predictive(1, 0, 1), InvalidArgument);
  EXPECT_THROW(likelihood_.predictive(0, 1), InvalidArgument);
  EXPECT_THROW(likelihood_.predictive_cdf(1, 0, 1), InvalidArgument);
  EXPECT_THROW(likelihood_.predictive_quantile(0.5, 0, 1), InvalidArgument);
}

std::string test_name(const ::testing::TestParamInfo<LikelihoodInfo>& test) {
  return std::string(test.param.name);
}

INSTANTIATE_TEST_SUITE_P(Registry, CoupledLikelihoods,
                         ::testing::ValuesIn(testing::with_coupling(true)), test_name);

// The difference of two functions has a logistic likelihood.
TEST(Softmax, TwoClassesAreTheLogitOfTheirDifference) {
  const auto softmax = make("softmax"), logit = make("bernoulli-logit");
  for (const double difference : {-30.0, -2.0, 0.1, 5.0, 60.0}) {
    const Vector f = (Vector(2) << 0.7, 0.7 + difference).finished();
    const double density = softmax->coupled()->row_log_density(Vector::Unit(2, 1), f);
    EXPECT_NEAR(density, logit->log_density(1, difference).value, 1e-14 * (1 + std::abs(density)));
    for (const double variance : {0.0, 0.3, 20.0}) {
      const Matrix covariance = variance * (Matrix(2, 2) << 0.75, 0.25, 0.25, 0.75).finished();
      const auto found = softmax->coupled()->class_probabilities(f, covariance);
      EXPECT_EQ(found.standard_error, 0.0);
      const double p = logit->predictive(difference, variance).mean;
      const double q = logit->predictive(-difference, variance).mean;
      EXPECT_NEAR(found.p(1), p, 1e-12 * p);
      EXPECT_NEAR(found.p(0), q, 1e-12 * q);
    }
  }
}

}  // namespace coupled_test
}  // namespace mercer::likelihoods
