// Variances by every method against dense algebra, through fit and Predictor.
#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/data/simulate.hpp"
#include "mercer/models/fit.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::models {
namespace variance_methods_test {

using testing::random_matrix;
using testing::same_bits;
using testing::WithThreads;

KernelMachine field_model(const char* kernel, const char* mean, Index n = 200,
                          double noise = 0.05) {
  const auto sample = data::scattered_field(n, 0.05, 3);
  FitOptions options;
  options.method.kernel = kernel;
  options.method.signal_variance = 1.2;
  options.method.noise = noise;
  options.method.mean = mean;
  options.train.train = "none";
  return fit(data::make_dataset(sample.inputs, sample.target), options).model;
}

Matrix places(Index m) {
  Rng rng(4, "places");
  return 1.4 * data::uniform_points(m, 2, rng).array() - 0.2;  // some outside the data
}

PredictOptions by(const char* method, Index check_rows = 0) {
  PredictOptions options;
  options.variance.method = method;
  if (options.variance.method == "vecchia" || options.variance.method == "samples")
    options.variance.check_rows = check_rows;
  return options;
}

// Posterior covariance of f in target units, universal kriging.
Matrix dense_covariance(const KernelMachine& model, Matrix at) {
  model.scaling.scale_inputs(at);
  const auto& kernel = model.problem.kernel;
  Matrix h = kernel.reference_matrix(model.x, model.x);
  h.diagonal().array() += model.noise().vector(h.rows()).array();
  const Eigen::LLT<Matrix> llt(h);
  const Matrix k = kernel.reference_matrix(model.x, at);
  Matrix out = kernel.reference_matrix(at, at) - k.transpose() * llt.solve(k);
  const Matrix a = model.problem.basis(model.x);
  if (a.cols() > 0) {
    const Matrix ha = llt.solve(a);
    const Matrix q = model.problem.basis(at).transpose() - ha.transpose() * k;
    out += q.transpose() * (a.transpose() * ha).inverse() * q;
  }
  return std::pow(model.scaling.target_sd, 2) * out;
}

struct Case {
  const char *kernel, *mean;
};
class EveryModel : public ::testing::TestWithParam<Case> {
 protected:
  KernelMachine model = field_model(GetParam().kernel, GetParam().mean);
  Matrix at = places(60);
  Vector exact = dense_covariance(model, at).diagonal();
};

TEST_P(EveryModel, VecchiaWithEveryNeighbourIsExact) {
  auto options = by("vecchia");
  options.variance.neighbours = 200;
  const auto p = Predictor(model, options).predict(at);
  EXPECT_LE((p.latent_sd.cwiseAbs2() - exact).cwiseAbs().maxCoeff(), 1e-10 * exact.maxCoeff());
  EXPECT_FALSE(p.sd_error_bound);
}

TEST_P(EveryModel, VecchiaIsNeverBelowTheExactVariance) {
  for (const Index m : {1, 10, 50}) {
    auto options = by("vecchia");
    options.variance.neighbours = m;
    const auto p = Predictor(model, options).predict(at);
    EXPECT_GE((p.latent_sd.cwiseAbs2() - exact).minCoeff(), -1e-10 * exact.maxCoeff()) << m;
  }
}

// 256 draws: a variance has a relative standard deviation of 0.09, so that 0.5 is more than five of
// them. And 4,096 features stand in for the prior variance to sqrt(2/4096) of it. 60 rows, false
// alarm below 1e-5.
TEST_P(EveryModel, SamplesHaveTheExactVariance) {
  auto options = by("samples");
  options.variance.draws = 256;
  const auto p = Predictor(model, options).predict(at);
  const double prior = 1.2 * std::pow(model.scaling.target_sd, 2);
  for (Index i = 0; i < at.rows(); ++i)
    EXPECT_NEAR(std::pow(p.latent_sd(i, 0), 2), exact(i),
                0.5 * exact(i) + 5 * std::sqrt(2.0 / 4096) * prior);
}

TEST_P(EveryModel, TheMeasuredErrorIsTheTrueOne) {
  for (const char* method : {"vecchia", "samples"}) {
    auto options = by(method, 1000);  // more than there are: all rows are checked
    if (method == std::string("vecchia")) options.variance.neighbours = 5;
    for (const char* solver : {"cholesky", "cg"}) {
      options.solver = solver;
      const auto p = Predictor(model, options).predict(at);
      const Vector error = (p.latent_sd - exact.cwiseSqrt()).cwiseAbs();
      ASSERT_TRUE(p.sd_error);
      EXPECT_EQ(p.sd_error->rows, 60);
      // By solves the check is only as accurate as it says (variance_check_test.cpp).
      const double slack = 1e-9 + p.sd_error->check_bound;
      EXPECT_NEAR(p.sd_error->largest, error.maxCoeff(), slack);
      EXPECT_NEAR(p.sd_error->rms, std::sqrt(error.squaredNorm() / 60), slack);
      EXPECT_NEAR(p.sd_error->largest_relative, error.cwiseQuotient(exact.cwiseSqrt()).maxCoeff(),
                  solver == std::string("cholesky") ? 1e-8 : 0.25 * p.sd_error->largest_relative);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryModel,
                         ::testing::Values(Case{"matern32:iso", "zero"}, Case{"rbf", "constant"},
                                           Case{"matern52", "linear"},
                                           Case{"matern32 + linear", "zero"}, Case{"rq", "zero"}));

TEST(VarianceMethods, SmallProblemsAreExactByDefault) {
  const Predictor predictor(field_model("rbf", "zero"), {});
  EXPECT_EQ(predictor.plan().variance, "exact");
  const auto p = predictor.predict(places(5));
  EXPECT_TRUE(p.sd_error_bound);
  EXPECT_FALSE(p.sd_error);
}

TEST(VarianceMethods, AutoIsExactWhileThatIsAffordable) {
  const Matrix x = random_matrix(40000, 3, 1);
  const auto kernel = kernels::Kernel::parse("matern32", 3);
  const auto plan = [&](Index rows) {
    VarianceOptions variance;
    variance.rows = rows;
    return planning::make_plan(kernel, 0.1, x, {}, PlanFor::predict, variance);
  };
  EXPECT_EQ(plan(4000).variance, "vecchia");
  EXPECT_EQ(plan(64).variance, "exact");
  // As many as would be checked in any case, however long that takes.
  EXPECT_EQ(plan(8).variance, "exact");
  const auto rows = plan(4000).rows;
  for (const char* method : {"vecchia, 100 neighbours", "samples, 64 draws"})
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const PlanRow& row) {
      return row.method == method && row.seconds > 0 && row.bytes > 0;
    })) << method;
}

TEST(VarianceMethods, PiecesOfAStreamGiveTheSameNumbersAndTheSameCheck) {
  const auto model = field_model("matern32", "constant");
  const Matrix at = places(2500);  // more than a block
  for (const char* method : {"vecchia", "samples"}) {
    auto options = by(method, 20);
    options.variance.joint_samples = 3;
    const Predictor predictor(model, options);
    const auto whole = predictor.predict(at);
    auto sample = predictor.row_sample();
    for (const auto& [first, rows] : {std::pair<Index, Index>{0, 700}, {700, 1}, {701, 1799}}) {
      const auto piece = predictor.predict(at.middleRows(first, rows), sample);
      EXPECT_LE((whole.latent_sd.middleRows(first, rows) - piece.latent_sd).cwiseAbs().maxCoeff(),
                1e-11);
      EXPECT_LE((whole.samples.middleRows(first, rows) - piece.samples).cwiseAbs().maxCoeff(),
                1e-11);
      EXPECT_FALSE(piece.sd_error);
    }
    const auto error = predictor.sd_error(sample);
    ASSERT_TRUE(error && whole.sd_error);
    EXPECT_EQ(error->rows, 20);
    EXPECT_NEAR(error->largest, whole.sd_error->largest, 1e-11);
    EXPECT_NEAR(error->rms, whole.sd_error->rms, 1e-11);
  }
}

TEST(VarianceMethods, JointSamplesAreTheSameFunctionsWithEveryMethod) {
  const auto model = field_model("matern52", "zero");
  const auto samples = [&](const char* method, Index count) {
    auto options = by(method);
    options.variance.joint_samples = count;
    return Predictor(model, options).predict(places(40));
  };
  const auto none = samples("none", 2);
  EXPECT_EQ(none.latent_sd.size(), 0);
  // Other draws in the same block change rounding only.
  for (const char* method : {"exact", "vecchia", "samples"})
    EXPECT_LE((none.samples - samples(method, 4).samples.leftCols(2)).cwiseAbs().maxCoeff(), 1e-9)
        << method;
}

// Covariance between rows, over 2,000 draws of one predictor: each entry has a standard deviation
// of sqrt((C_ii C_jj + C_ij^2) / 2000); features add about 2 % of the prior variance. False alarm
// of 5 deviations: 6e-7 an entry, 36 entries.
TEST(VarianceMethods, JointSamplesHaveTheCovarianceOfThePosterior) {
  const auto model = field_model("matern32", "constant");
  auto options = by("none");
  options.variance.joint_samples = 2000;
  const Matrix at = places(8);
  const auto p = Predictor(model, options).predict(at);
  const Matrix deviation = p.samples.colwise() - p.mean;
  const Matrix found = deviation * deviation.transpose() / 2000;
  const Matrix exact = dense_covariance(model, at);
  const double prior = 1.2 * std::pow(model.scaling.target_sd, 2);
  for (Index i = 0; i < 8; ++i)
    for (Index j = 0; j <= i; ++j)
      EXPECT_NEAR(found(i, j), exact(i, j),
                  5 * std::sqrt((exact(i, i) * exact(j, j) + exact(i, j) * exact(i, j)) / 2000) +
                      0.02 * prior)
          << i << " " << j;
}

TEST(VarianceMethods, SameBitsOnAnyNumberOfThreads) {
  const auto model = field_model("matern32", "constant");
  for (const char* method : {"vecchia", "samples"}) {
    auto options = by(method, 10);
    options.variance.joint_samples = 2;
    options.solver = "cg";
    const auto on = [&](int threads) {
      const WithThreads scope(threads);
      return Predictor(model, options).predict(places(300));
    };
    const auto one = on(1), three = on(3);
    EXPECT_TRUE(same_bits(one.latent_sd, three.latent_sd)) << method;
    EXPECT_TRUE(same_bits(one.samples, three.samples)) << method;
    EXPECT_EQ(one.sd_error->largest, three.sd_error->largest) << method;
  }
}

TEST(VarianceMethods, VariancesAreNeverNegative) {
  // Smooth, hardly any noise, and asked for on the data: rounding is all that is left.
  const auto sample = data::scattered_field(200, 0.05, 3);
  FitOptions fit_options;
  fit_options.method.kernel = "rbf:iso";
  fit_options.method.lengthscale = {5};
  fit_options.method.noise = 1e-13;
  fit_options.train.train = "none";
  const auto model = fit(data::make_dataset(sample.inputs, sample.target), fit_options).model;
  const auto p = Predictor(model, by("vecchia")).predict(sample.inputs);
  EXPECT_GT(p.latent_sd.minCoeff(), 0);
  EXPECT_GT(p.clamped_variances, 0);
}

TEST(VarianceMethods, RefusesWhatMakesNoSense) {
  const auto model = field_model("rbf", "zero");
  const auto refused = [&](const char* method, auto change) {
    PredictOptions options;
    options.variance.method = method;
    change(options.variance);
    EXPECT_THROW(Predictor(model, options), InvalidArgument);
  };
  refused("magic", [](auto&) {});
  refused("vecchia", [](auto& v) { v.neighbours = 0; });
  refused("exact", [](auto& v) { v.neighbours = 10; });
  refused("exact", [](auto& v) { v.check_rows = 10; });
  refused("samples", [](auto& v) { v.draws = 0; });
  refused("auto", [](auto& v) { v.check_rows = -1; });
  refused("none", [](auto& v) { v.joint_samples = -1; });
}

TEST(VarianceMethods, KernelsWithoutDrawsAreRefusedWithTheReason) {
  const Matrix x = random_matrix(60, 12, 1);
  FitOptions options;
  options.method.kernel = "poly:6";
  options.train.train = "none";
  const auto model = fit(data::make_dataset(x, x.rowwise().sum()), options).model;
  try {
    const Predictor predictor(model, by("samples"));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("monomials"), std::string::npos) << error.what();
  }
}

TEST(RowSample, EveryRowIsAsLikely) {
  // Row i of 50 is in a sample of 10 with probability 0.2: over 2,000 seeds a standard deviation of
  // 18 about 400; five of them, false alarm 6e-7 a row.
  std::vector<int> counts(50, 0);
  const Vector rows = Vector::LinSpaced(50, 0, 49);
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    RowSample sample(10, seed);
    sample.add(rows, rows);
    ASSERT_EQ(sample.size(), 10);
    const Vector kept = sample.sd().col(0);
    for (const double row : kept) ++counts[static_cast<std::size_t>(row)];
    EXPECT_EQ(sample.inputs().col(0), kept);
  }
  for (const int count : counts) EXPECT_NEAR(count, 400, 90);
}

}  // namespace variance_methods_test
}  // namespace mercer::models
