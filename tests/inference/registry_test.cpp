// Laws of every inference method of the registry, with every likelihood that it takes.
#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/inference/laplace/exact_laplace.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "tests/testing/laplace_problems.hpp"

namespace mercer::inference {
namespace registry_test {

struct Case {
  std::string method, likelihood;
};

Problem problem_with(const std::string& likelihood, double lengthscale = 0.8) {
  auto kernel = kernels::Kernel::parse("matern52:iso", 2);
  kernel.set_lengthscales(std::vector{lengthscale});
  return {kernel, likelihoods::make(likelihood)};
}

Observations rows_with(const std::string& likelihood, Index n) {
  const auto made = likelihoods::make(likelihood);
  // Coupled functions: one of three classes in each row.
  const Index functions = made->coupled() != nullptr ? 3 : 1;
  Observations out{Matrix(n, 2), Matrix::Zero(n, functions), Vector::Zero(functions)};
  Rng rng(13, "inference methods");
  rng.fill_normal(out.x);
  for (Index i = 0; i < n; ++i) {
    const double f = std::sin(2 * out.x(i, 0));
    if (functions > 1) {
      out.y(i, rng.uniform() < 0.2 ? rng.index(3) : (f > 0.4 ? 2 : f > -0.4 ? 1 : 0)) = 1;
      continue;
    }
    out.y(i, 0) = made->gaussian_noise() ? f + 0.3 * rng.normal() : testing::observe(*made, f, rng);
  }
  return out;
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const auto& method : methods())
    for (const auto& name : testing::likelihood_names()) {
      const auto rows = rows_with(name, 5);
      if (method.refusal(problem_with(name), rows).empty())
        out.push_back({std::string(method.name), name});
    }
  return out;
}

SystemChoice system_of(const InferenceInfo& method) {
  SystemChoice choice;
  if (method.takes_solver("cholesky")) return choice;
  choice.solver = method.takes_solver("kcg") ? "kcg" : "cg";
  if (choice.solver == "cg") choice.preconditioner = "auto";
  return choice;
}

class InferenceLaw : public ::testing::TestWithParam<Case> {
 protected:
  const InferenceInfo& info() const { return methods().find(GetParam().method); }
  std::unique_ptr<Inference> make_method(const Observations& rows, Index probes = 8,
                                         std::uint64_t seed = 3) const {
    return make(GetParam().method, problem_with(GetParam().likelihood),
                {.rows = rows, .system = system_of(info()), .probes = probes, .seed = seed});
  }
  // The direct method of the same likelihood.
  std::unique_ptr<Inference> reference(const Observations& rows) const {
    const auto problem = problem_with(GetParam().likelihood);
    return make(problem.gaussian() ? "exact" : "laplace", problem, {.rows = rows});
  }
};

// The evidence at its exact mode. A method stops within 1e-4 of that in every f, and value and
// gradient depend on f to first order by tr(S W') / 2 and its derivatives: S W' <= 1 for a row, so
// 40 rows leave 20 times 1e-4.
constexpr double kModeError = 2e-3;

double value_at_the_mode(Inference& method, const Problem& problem, const Observations& rows,
                         bool approximate) {
  if (problem.gaussian() || approximate) return method.evaluate(problem, {.gradient = false}).value;
  return exact_laplace(problem, rows, false, {.tolerance = 1e-10, .solve_tolerance = 1e-10}).value;
}

TEST_P(InferenceLaw, GradientIsThatOfTheValue) {
  const auto kind = info().abilities.evidence;
  if (kind == EvidenceBy::solves || kind == EvidenceBy::none)
    return;  // the next law is about solves
  const auto rows = rows_with(GetParam().likelihood, 40);
  const auto problem = problem_with(GetParam().likelihood);
  const auto method = make_method(rows);
  method->renew(problem);
  const Vector theta = problem.log_parameters();
  const auto evidence = method->evaluate(problem, {});
  ASSERT_EQ(evidence.gradient.size(), theta.size());
  EXPECT_NEAR(evidence.value,
              value_at_the_mode(*method, problem, rows, info().abilities.approximate), kModeError);
  // Fourth-order differences: h^4 / 30 = 3e-10 of the fifth derivative, and 1.5 / h of rounding and
  // of what a mode to 1e-10 leaves in a value.
  const double step = 1e-2;
  const double allowed = problem.gaussian() ? 1e-6 : kModeError;
  for (Index p = 0; p < theta.size(); ++p) {
    const auto value = [&](double by) {
      auto moved = problem;
      Vector there = theta;
      there(p) += by;
      moved.set_log_parameters(there);
      return value_at_the_mode(*method, moved, rows, info().abilities.approximate);
    };
    const double slope =
        (8 * (value(step) - value(-step)) - (value(2 * step) - value(-2 * step))) / (12 * step);
    EXPECT_NEAR(evidence.gradient(p), slope, allowed * (1 + std::abs(slope))) << p;
  }
}

// Over 24 sets of probes; a likelihood that is not log-concave is looked at around one mode.
TEST_P(InferenceLaw, TheMeanOfEstimatedGradientsIsTheExactOne) {
  if (info().abilities.evidence != EvidenceBy::solves) return;
  const auto rows = rows_with(GetParam().likelihood, 60);
  const auto problem = problem_with(GetParam().likelihood);
  const auto dense = reference(rows);
  const Vector exact = dense->evaluate(problem, {}).gradient;
  const int count = 24;
  Matrix gradients(exact.size(), count);
  for (int i = 0; i < count; ++i) {
    const auto method = make_method(rows, 20, 100 + static_cast<std::uint64_t>(i));
    method->start_from(dense->warm_start());
    const auto estimate = method->evaluate(problem, {.tolerance = 1e-8, .error_passes = 2});
    ASSERT_EQ(estimate.gradient.size(), exact.size());
    ASSERT_EQ(estimate.standard_error.size(), exact.size());
    gradients.col(i) = estimate.gradient;
  }
  for (Index p = 0; p < exact.size(); ++p) {
    const double mean = gradients.row(p).mean();
    const double spread = (gradients.row(p).array() - mean).square().sum() / (count - 1);
    // |t| < 5.2 with 23 degrees of freedom: a false alarm in 35,000 per entry. The tolerance of the
    // mode enters as well.
    EXPECT_NEAR(mean, exact(p), 5.2 * std::sqrt(spread / count) + 1e-4 * (1 + std::abs(exact(p))));
  }
}

TEST_P(InferenceLaw, PosteriorIsThatOfTheDirectMethodWithinTheCertificate) {
  const auto rows = rows_with(GetParam().likelihood, 50);
  const auto problem = problem_with(GetParam().likelihood);
  const auto method = make_method(rows);
  if (!info().abilities.posterior) {
    EXPECT_THROW(method->posterior(problem, {}), InvalidArgument);
    return;
  }
  if (info().abilities.approximate) return;  // the next law
  const auto got = method->posterior(problem, {.tolerance = 1e-8});
  const auto want = reference(rows)->posterior(problem, {.tolerance = 1e-12});
  ASSERT_EQ(static_cast<Index>(got.functions.size()), rows.functions());
  Matrix k(rows.size(), rows.size());
  operators::dense_matrix(problem.kernel, rows.x, k);
  double largest = 0;
  for (std::size_t c = 0; c < got.functions.size(); ++c) {
    const Vector difference = got.functions[c].weights.w - want.functions[c].weights.w;
    largest = std::max(largest, (k * difference).cwiseAbs().maxCoeff());
  }
  if (got.certificate.rigorous)
    EXPECT_LE(largest, got.certificate.mean_error_bound + want.certificate.mean_error_bound);
  else
    EXPECT_LE(largest, 1e-5);
  EXPECT_GT(got.certificate.mean_error_bound, 0);
}

// With all rows for base points, and one block. Whatever the likelihood, both modes are known to
// 1e-6 at least; rbcm mixes the prior in, even with one block.
TEST_P(InferenceLaw, AnApproximationWithAllRowsIsTheDirectMethod) {
  if (!info().abilities.approximate || GetParam().method == "rbcm") return;
  const auto rows = rows_with(GetParam().likelihood, 50);
  const auto problem = problem_with(GetParam().likelihood);
  const auto got = make_method(rows)->posterior(problem, {});
  const auto want = reference(rows)->posterior(problem, {.tolerance = 1e-10});
  ASSERT_TRUE(got.sparse);
  EXPECT_FALSE(want.sparse);
  EXPECT_FALSE(got.certificate.rigorous);
  ASSERT_EQ(static_cast<Index>(got.sparse->functions.size()), rows.functions());
  Matrix k(rows.size(), rows.size());
  operators::dense_matrix(problem.kernel, rows.x, k);
  const auto query = sparse_query(problem, *got.sparse);
  const auto moments = query->moments({rows.x, Matrix(rows.size(), 0), k.diagonal()}, {});
  const Vector mean = (k * want.functions[0].weights.w).array() + want.functions[0].offset;
  EXPECT_LE((moments.mean.col(0) - mean).cwiseAbs().maxCoeff(), 1e-6);
}

TEST_P(InferenceLaw, GoesOnFromItsStateToTheSameBits) {
  if (info().abilities.evidence == EvidenceBy::none) return;
  const auto rows = rows_with(GetParam().likelihood, 60);
  const auto first = problem_with(GetParam().likelihood, 0.8);
  const auto second = problem_with(GetParam().likelihood, 0.9);
  const auto whole = make_method(rows);
  whole->evaluate(first, {});
  const State state = whole->save();
  const auto want = whole->evaluate(second, {});
  const auto resumed = make_method(rows);
  if (!state.empty())
    resumed->load(state, first);
  else
    resumed->renew(first);
  const auto got = resumed->evaluate(second, {});
  EXPECT_EQ(got.gradient, want.gradient);
  EXPECT_EQ(got.value, want.value);
  if (!state.empty()) {
    EXPECT_THROW(make_method(rows)->load({}, first), ModelFileError);
  }
}

TEST_P(InferenceLaw, CostsGrowWithTheRows) {
  const CostSetting small{.n = 1000, .d = 3, .parameters = 4, .system = {.solver = "cg"}};
  auto setting = small;
  setting.speed = nominal_speeds(problem_with("gaussian").kernel, 3);
  const auto one = info().cost(setting);
  setting.n = 2000;
  const auto two = info().cost(setting);
  EXPECT_GT(one.bytes, 0);
  EXPECT_GT(two.bytes, one.bytes);
  EXPECT_GE(two.seconds, one.seconds);
}

std::string case_name(const ::testing::TestParamInfo<Case>& test) {
  std::string name = test.param.method + "_" + test.param.likelihood;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Registry, InferenceLaw, ::testing::ValuesIn(cases()), case_name);

TEST(InferenceMethods, ARegisteredOneIsFoundBySolver) {
  const auto rows = rows_with("gaussian", 20);
  const auto problem = problem_with("gaussian");
  EXPECT_THROW(posterior_method(problem, rows, "dummy-solver"), InvalidArgument);
  auto entry = methods().find("exact");
  entry.name = "dummy";
  entry.takes_solver = [](std::string_view solver) { return solver == "dummy-solver"; };
  const auto registration = methods().add(entry);
  EXPECT_EQ(posterior_method(problem, rows, "dummy-solver"), "dummy");
  const auto posterior = make("dummy", problem, {.rows = rows})->posterior(problem, {});
  EXPECT_EQ(posterior.functions.size(), 1u);
}

TEST(InferenceMethods, RefuseWithAReason) {
  const auto rows = rows_with("poisson", 20);
  const auto problem = problem_with("poisson");
  EXPECT_THROW(make("exact", problem, {.rows = rows}), InvalidArgument);
  EXPECT_THROW(posterior_method(problem, rows, "kcg"), InvalidArgument);
  EXPECT_EQ(posterior_method(problem, rows, "cg"), "laplace-solves");
}

}  // namespace registry_test
}  // namespace mercer::inference
