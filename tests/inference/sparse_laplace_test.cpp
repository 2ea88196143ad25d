// Laplace's approximation with the prior of fitc, against dense algebra and differences.
#include <gtest/gtest.h>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/inference/laplace/exact_laplace.hpp"
#include "mercer/inference/sparse/fitc_laplace.hpp"
#include "tests/inference/sparse_problems.hpp"
#include "tests/testing/laplace_problems.hpp"

namespace mercer::inference {
namespace sparse_laplace_test {

Observations rows_of(const std::string& likelihood, Index n, Index functions = 1) {
  const auto made = likelihoods::make(likelihood);
  Observations out{testing::sparse_points(n, 2, 3), Matrix(n, functions), Vector::Zero(functions)};
  Rng rng(4, "sparse laplace");
  for (Index c = 0; c < functions; ++c) {
    out.offset(c) = 0.1 * static_cast<double>(c);
    for (Index i = 0; i < n; ++i)
      out.y(i, c) = testing::observe(
          *made, std::sin(2 * out.x(i, 0) + static_cast<double>(c)) + 0.5 * out.x(i, 1), rng);
  }
  return out;
}

Problem problem_of(const std::string& likelihood, MeanKind mean = MeanKind::zero,
                   const char* kernel = "matern52:ard") {
  auto k = kernels::Kernel::parse(kernel, 2);
  k.set_all_lengthscales(0.9);
  k.set_all_variances(1.2);
  return {k, likelihoods::make(likelihood), mean};
}

std::vector<std::string> likelihoods_of_fitc() {
  std::vector<std::string> out;
  for (const auto& name : testing::likelihood_names()) {
    const auto made = likelihoods::make(name);
    if (!made->gaussian_noise() && made->coupled() == nullptr) out.push_back(name);
  }
  return out;
}

class FitcLaplaceLaw : public ::testing::TestWithParam<std::string> {};

// Newton's method on the dense N x N prior, textbook form, with weights that may be zero.
TEST_P(FitcLaplaceLaw, ModeAndEvidenceAreThoseOfTheDensePrior) {
  const auto rows = rows_of(GetParam(), 40);
  const auto problem = problem_of(GetParam());
  const Matrix base = testing::sparse_points(10, 2, 8);
  const auto method = make("fitc", problem, {.rows = rows, .sparse = {.points = base}});
  const auto posterior = method->posterior(problem, {});
  const Index n = rows.size();
  const Matrix s_bn = problem.kernel.reference_matrix(base, rows.x);
  const Eigen::LDLT<Matrix> s_bb(problem.kernel.reference_matrix(base, base));
  Matrix k = s_bn.transpose() * s_bb.solve(s_bn);
  k.diagonal() = problem.kernel.diagonal(rows.x);

  // At the latent means of the rows that the posterior states, the gradient of the log posterior
  // vanishes: a = g(K a), with f = K a found from a itself.
  Vector f = Vector::Zero(n), a = f;
  for (int step = 0; step < 200; ++step) {
    Vector g(n), w(n);
    for (Index i = 0; i < n; ++i) {
      const auto p = problem.likelihood->log_density(rows.y(i, 0), f(i));
      g(i) = p.first;
      w(i) = std::max(-p.second, 0.0);
    }
    // (I + K W) f = K (W f + g), damped: student-t is not log-concave.
    const Vector rhs = k * (w.cwiseProduct(f) + g);
    const Matrix system = Matrix::Identity(n, n) + k * w.asDiagonal();
    const Vector next = system.partialPivLu().solve(rhs);
    f = GetParam().starts_with("student") ? Vector(0.5 * (f + next)) : next;
  }
  Vector w(n);
  double log_density = 0;
  for (Index i = 0; i < n; ++i) {
    a(i) = problem.likelihood->log_density(rows.y(i, 0), f(i)).first;
    w(i) = problem.likelihood->curvature(rows.y(i, 0), f(i)).value;
    log_density += problem.likelihood->log_density(rows.y(i, 0), f(i)).value;
  }
  const Matrix b =
      Matrix::Identity(n, n) + w.cwiseSqrt().asDiagonal() * k * w.cwiseSqrt().asDiagonal();
  const double evidence =
      log_density - 0.5 * a.dot(f) - 0.5 * b.ldlt().vectorD().array().log().sum();
  // The mode is known to 1e-8, and 40 rows depend on it to first order by log|B|.
  EXPECT_NEAR(posterior.evidence.value, evidence, 1e-6);

  const Matrix at = testing::sparse_points(15, 2, 9);
  const Matrix q = problem.kernel.reference_matrix(at, base) * s_bb.solve(s_bn);
  const Vector mean = q * a;
  const Matrix scaled = q * w.cwiseSqrt().asDiagonal();
  const Vector variance =
      problem.kernel.diagonal(at) -
      scaled.cwiseProduct(b.ldlt().solve(scaled.transpose()).transpose()).rowwise().sum();
  const auto got = testing::moments_at(problem, *posterior.sparse, at);
  EXPECT_LE((got.mean - mean).cwiseAbs().maxCoeff(), 1e-6);
  EXPECT_LE((got.variance - variance).cwiseAbs().maxCoeff(), 1e-6);
}

void expect_slopes(const Problem& problem, const Observations& rows, const Matrix& base) {
  const auto method = make("fitc", problem, {.rows = rows, .sparse = {.points = base}});
  const Vector theta = problem.log_parameters();
  Matrix by_base;
  const auto evidence = method->evaluate_with_base(problem, {}, by_base);
  ASSERT_EQ(evidence.gradient.size(), theta.size());
  // Differences err by 1.5/h of what a mode to 1e-8 leaves in a value of 40 rows.
  const double step = 1e-2, allowed = 2e-5;
  for (Index p = 0; p < theta.size(); ++p) {
    const double slope = testing::slope_of(
        [&](double by) {
          auto moved = problem;
          Vector there = theta;
          there(p) += by;
          moved.set_log_parameters(there);
          return method->evaluate(moved, {.gradient = false}).value;
        },
        step);
    EXPECT_NEAR(evidence.gradient(p), slope, allowed * (1 + std::abs(slope)))
        << problem.parameter_names()[static_cast<std::size_t>(p)];
  }
  for (Index j = 0; j < base.rows(); ++j) {
    const double slope = testing::slope_of(
        [&](double by) {
          Matrix moved = base;
          moved(j, 1) += by;
          method->use_base(moved);
          return method->evaluate(problem, {.gradient = false}).value;
        },
        step);
    EXPECT_NEAR(by_base(j, 1), slope, allowed * (1 + std::abs(slope))) << "base point " << j;
  }
}

TEST_P(FitcLaplaceLaw, GradientIsThatOfTheValue) {
  const Matrix base = testing::base_on_a_grid();
  for (const auto mean : {MeanKind::zero, MeanKind::constant})
    expect_slopes(problem_of(GetParam(), mean), rows_of(GetParam(), 40), base);
}
INSTANTIATE_TEST_SUITE_P(Likelihoods, FitcLaplaceLaw, ::testing::ValuesIn(likelihoods_of_fitc()),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (auto& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

// All rows for base points: Laplace's approximation itself.
TEST(FitcLaplace, WithAllRowsIsLaplace) {
  const auto rows = rows_of("bernoulli-logit", 50);
  for (const auto mean : {MeanKind::zero, MeanKind::constant}) {
    const auto problem = problem_of("bernoulli-logit", mean);
    const auto fitc = make("fitc", problem, {.rows = rows, .sparse = {.points = rows.x}});
    const auto got = fitc->evaluate(problem, {});
    const auto want =
        exact_laplace(problem, rows, true, {.tolerance = 1e-10, .solve_tolerance = 1e-10});
    EXPECT_NEAR(got.value, want.value, 1e-6);
    EXPECT_LE((got.gradient - want.gradient).cwiseAbs().maxCoeff(), 1e-5);
  }
}

// Classes one against the rest: each function is what it would be alone.
TEST(FitcLaplace, SeveralFunctionsAreIndependent) {
  const auto rows = rows_of("bernoulli-logit", 45, 3);
  const auto problem = problem_of("bernoulli-logit");
  const Matrix base = testing::sparse_points(9, 2, 8), at = testing::sparse_points(10, 2, 9);
  const auto all = make("fitc", problem, {.rows = rows, .sparse = {.points = base}});
  const auto posterior = all->posterior(problem, {});
  ASSERT_EQ(posterior.sparse->functions.size(), 3u);
  const auto moments = testing::moments_at(problem, *posterior.sparse, at);
  double value = 0;
  Vector gradient = Vector::Zero(problem.log_parameters().size());
  for (Index c = 0; c < 3; ++c) {
    const Observations one{rows.x, rows.y.col(c), Vector::Constant(1, rows.offset(c))};
    const auto alone = make("fitc", problem, {.rows = one, .sparse = {.points = base}});
    const auto evidence = alone->evaluate(problem, {});
    value += evidence.value;
    gradient += evidence.gradient;
    const auto own = testing::moments_at(problem, *alone->posterior(problem, {}).sparse, at);
    EXPECT_LE((moments.mean.col(c) - own.mean).cwiseAbs().maxCoeff(), 1e-7);
    EXPECT_LE((moments.variance.col(c) - own.variance).cwiseAbs().maxCoeff(), 1e-7);
  }
  const auto together = all->evaluate(problem, {});
  EXPECT_NEAR(together.value, value, 1e-6);
  EXPECT_LE((together.gradient - gradient).cwiseAbs().maxCoeff(), 1e-5);
}

// A row of weight 2 is that row twice.
TEST(FitcLaplace, WeightsOfRowsCountThemThatOften) {
  auto once = rows_of("poisson", 30);
  const auto problem = problem_of("poisson");
  const Matrix base = testing::sparse_points(8, 2, 8);
  Observations twice = once;
  once.noise.weight = Vector::Constant(30, 2);
  twice.x.conservativeResize(60, 2);
  twice.y.conservativeResize(60, 1);
  twice.x.bottomRows(30) = once.x;
  twice.y.bottomRows(30) = once.y;
  // fitc gives each of two equal rows a variance of its own: K - Q must vanish for them to agree.
  const auto value = [&](const Observations& rows) {
    return make("fitc", problem, {.rows = rows, .sparse = {.points = once.x}})
        ->evaluate(problem, {})
        .value;
  };
  EXPECT_NEAR(value(once), value(twice), 1e-5);
}

TEST(FitcLaplace, OneThreadGivesTheBitsOfMany) {
  const auto rows = rows_of("bernoulli-logit", 4300);
  const auto problem = problem_of("bernoulli-logit");
  const auto run = [&](int threads) {
    const int before = num_threads();
    set_num_threads(threads);
    const auto method = make("fitc", problem, {.rows = rows, .sparse = {.rank = 60}});
    auto out = method->evaluate(problem, {});
    set_num_threads(before);
    return out;
  };
  const auto one = run(1), many = run(4);
  EXPECT_EQ(one.value, many.value);
  EXPECT_EQ(one.gradient, many.gradient);
}

TEST(FitcLaplace, RefusesFunctionsThatAreCoupled) {
  const auto rows = rows_of("bernoulli-logit", 20, 3);
  try {
    make("fitc", problem_of("softmax"), {.rows = rows});
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("couples"), std::string::npos) << error.what();
  }
}

}  // namespace sparse_laplace_test
}  // namespace mercer::inference
