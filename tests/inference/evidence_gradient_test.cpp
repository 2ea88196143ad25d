#include "mercer/inference/exact/evidence_gradient.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"

namespace mercer::inference {
namespace evidence_gradient_test {

Observations make_data(Index n, Index d) {
  Observations out{Matrix(n, d), Vector(n)};
  Rng rng(9, "gradient data");
  rng.fill_normal(out.x);
  for (Index i = 0; i < n; ++i) out.y(i) = std::sin(2 * out.x(i, 0)) + 0.3 * rng.normal() + 0.5;
  return out;
}

Problem make_problem(const std::string& kernel, MeanKind mean = MeanKind::zero) {
  return {kernels::Kernel::parse(kernel, 2), 0.1, mean, {}};
}

EstimatorOptions options_for(Probes kind, Index probes) {
  EstimatorOptions o;
  o.kind = kind;
  o.probes = probes;
  o.system.solver = "cg";
  o.system.preconditioner = kind == Probes::preconditioned ? "hybrid" : "auto";
  return o;
}

// Contrasts that the standard error is measured from.
constexpr int kPasses = 31;

class UnbiasedGradient
    : public ::testing::TestWithParam<std::tuple<std::string_view, const char*, MeanKind>> {};

TEST_P(UnbiasedGradient, MeanOfTwoThousandProbesIsTheExactGradient) {
  const auto kind = probe_kind(std::get<0>(GetParam()));
  const auto problem = make_problem(std::get<1>(GetParam()), std::get<2>(GetParam()));
  const auto data = make_data(70, 2);
  EvidenceGradient estimator(data, options_for(kind, 2000));
  const auto estimate = estimator.estimate(problem, 1e-9, kPasses);
  ASSERT_EQ(estimate.stop, StopReason::converged);
  const auto exact = exact_evidence(problem, data, true);
  ASSERT_EQ(estimate.gradient.size(), exact.gradient.size());
  for (Index p = 0; p < exact.gradient.size(); ++p) {
    // |t| < 4.5 with 31 degrees of freedom: a false alarm in 10,000 per entry, 5 entries a case.
    // Pathwise draws have the covariance of 2,000 features: 5 % of the gradient is allowed for.
    const double bias = kind == Probes::pathwise ? 0.05 * (35 + std::abs(exact.gradient(p))) : 1e-6;
    EXPECT_NEAR(estimate.gradient(p), exact.gradient(p), 4.5 * estimate.standard_error(p) + bias)
        << problem.parameter_names()[static_cast<std::size_t>(p)];
    EXPECT_GT(estimate.standard_error(p), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(KindsAndKernels, UnbiasedGradient,
                         ::testing::Combine(::testing::ValuesIn(probe_kinds()),
                                            ::testing::Values("matern32", "rbf:iso + matern12"),
                                            ::testing::Values(MeanKind::zero, MeanKind::linear)));

// Sets of four probes are independent draws of one unbiased estimate: their mean over 200 sets is
// the exact gradient. |z| < 4.5 of 3 entries: a false alarm in 50,000.
TEST(EvidenceGradient, ProbesAreDrawnAnewByNumber) {
  const auto data = make_data(50, 2);
  const auto problem = make_problem("rbf:iso");
  EvidenceGradient estimator(data, options_for(Probes::rademacher, 4));
  constexpr int sets = 200;
  Matrix gradients(3, sets);
  for (int s = 0; s < sets; ++s) {
    estimator.use_probes(static_cast<std::uint64_t>(s));
    gradients.col(s) = estimator.estimate(problem, 1e-9).gradient;
  }
  const Vector mean = gradients.rowwise().mean();
  const Vector error = (gradients.colwise() - mean).rowwise().norm() / sets;
  const auto exact = exact_evidence(problem, data, true);
  for (Index p = 0; p < 3; ++p) {
    EXPECT_GT(error(p), 0);
    EXPECT_NEAR(mean(p), exact.gradient(p), 4.5 * error(p)) << p;
  }
  // The number alone says which, whatever was drawn before.
  EvidenceGradient other(data, options_for(Probes::rademacher, 4));
  other.use_probes(7);
  EXPECT_EQ(Vector(gradients.col(7)).isApprox(other.estimate(problem, 1e-9).gradient, 1e-7), true);
}

TEST(EvidenceGradient, TheControlVariateHasLessSpreadThanHutchinson) {
  const auto data = make_data(300, 2);
  const auto problem = make_problem("matern32");
  EvidenceGradient control(data, options_for(Probes::control, 64));
  EvidenceGradient plain(data, options_for(Probes::rademacher, 64));
  const auto a = control.estimate(problem, 1e-8, kPasses);
  const auto b = plain.estimate(problem, 1e-8, kPasses);
  for (Index p = 0; p < a.gradient.size(); ++p)
    EXPECT_LT(2 * a.standard_error(p), b.standard_error(p)) << p;
}

TEST(EvidenceGradient, StandardErrorIsTheSpreadOfTheMean) {
  // 200 fresh estimates of 8 Rademacher probes: the spread of the estimates against the mean of
  // their own squared errors (7 degrees of freedom each). The ratio of the two variances is F
  // with 199 and 1400 degrees of freedom: outside 0.65 .. 1.5 once in 10,000.
  const auto data = make_data(60, 2);
  const auto problem = make_problem("rbf:iso");
  auto options = options_for(Probes::rademacher, 8);
  options.fresh = true;
  options.warm_starts = false;
  EvidenceGradient estimator(data, options);
  Vector sum = Vector::Zero(3), squares = sum, errors = sum;
  constexpr int draws = 200;
  for (int i = 0; i < draws; ++i) {
    const auto e = estimator.estimate(problem, 1e-8, 7);
    sum += e.gradient;
    squares += e.gradient.cwiseAbs2();
    errors += e.standard_error.cwiseAbs2() / draws;
  }
  const Vector variance = (squares - sum.cwiseAbs2() / draws) / (draws - 1);
  for (Index p = 0; p < 3; ++p) {
    EXPECT_GT(variance(p) / errors(p), 0.65) << p;
    EXPECT_LT(variance(p) / errors(p), 1.5) << p;
  }
}

TEST(EvidenceGradient, FixedProbesRepeatAndFreshOnesDoNot) {
  const auto data = make_data(80, 2);
  const auto problem = make_problem("matern52");
  auto options = options_for(Probes::control, 4);
  options.warm_starts = false;
  EvidenceGradient fixed(data, options);
  const Vector first = fixed.estimate(problem, 1e-6).gradient;
  EXPECT_EQ(first, fixed.estimate(problem, 1e-6).gradient);
  options.fresh = true;
  EvidenceGradient fresh(data, options);
  fresh.estimate(problem, 1e-6);
  EXPECT_NE(first, fresh.estimate(problem, 1e-6).gradient);
}

TEST(EvidenceGradient, WarmStartsSaveIterations) {
  const auto data = make_data(400, 2);
  auto problem = make_problem("rbf:iso");
  auto options = options_for(Probes::rademacher, 4);
  options.system.preconditioner = "none";
  EvidenceGradient estimator(data, options);
  const int cold = estimator.estimate(problem, 1e-4).iterations;
  problem.set_log_parameters(problem.log_parameters().array() + 1e-4);
  EXPECT_LT(estimator.estimate(problem, 1e-4).iterations, cold / 2);
}

TEST(EvidenceGradient, ResumesToTheSameBits) {
  const auto data = make_data(150, 2);
  auto problem = make_problem("matern32");
  const auto options = options_for(Probes::control, 4);
  EvidenceGradient whole(data, options), half(data, options);
  whole.estimate(problem, 1e-3);
  half.estimate(problem, 1e-3);
  EvidenceGradient resumed(data, options);
  resumed.resume(half.state(), problem);
  // Near enough for the preconditioner to be kept.
  problem.set_log_parameters(problem.log_parameters().array() + 0.02);
  EXPECT_EQ(whole.estimate(problem, 1e-3).gradient, resumed.estimate(problem, 1e-3).gradient);
}

TEST(EvidenceGradient, SameBitsOnAnyNumberOfThreads) {
  const auto data = make_data(300, 2);
  const auto problem = make_problem("matern32");
  const int before = num_threads();
  set_num_threads(1);
  const auto one = EvidenceGradient(data, options_for(Probes::control, 4)).estimate(problem, 1e-3);
  set_num_threads(2);
  const auto two = EvidenceGradient(data, options_for(Probes::control, 4)).estimate(problem, 1e-3);
  set_num_threads(before);
  EXPECT_EQ(one.gradient, two.gradient);
}

TEST(EvidenceGradient, RefusesWhatItCannotDo) {
  const auto data = make_data(20, 2);
  auto options = options_for(Probes::preconditioned, 2);
  options.system.preconditioner = "none";
  EvidenceGradient none(data, options);
  EXPECT_THROW(none.estimate(make_problem("rbf"), 1e-3), InvalidArgument);
  options.system.solver = "cholesky";
  EXPECT_THROW(EvidenceGradient(data, options), InvalidArgument);
  EXPECT_THROW(probe_kind("hutchinson"), InvalidArgument);
}

}  // namespace evidence_gradient_test
}  // namespace mercer::inference
