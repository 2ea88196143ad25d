#include "mercer/planning/plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/inference/laplace/coupled_query.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "mercer/operators/registry.hpp"
#include "mercer/preconditioners/registry.hpp"

namespace mercer::planning {
namespace plan_test {

Matrix points(Index n) {
  Matrix x(n, 3);
  Rng(2, "plan").fill_normal(x);
  return x;
}

Plan plan_for(Index n, const MethodOptions& method, PlanFor purpose) {
  return make_plan(kernels::Kernel::parse("rbf", 3), 0.1, points(n), method, purpose);
}

// Of a fit.
Plan plan_for(Index n, const MethodOptions& method, const TrainOptions& train = {}) {
  const inference::Observations rows{points(n), Matrix::Zero(n, 1)};
  return plan_fit({kernels::Kernel::parse("rbf", 3), 0.1}, 0.1, rows, method, train);
}

TEST(Plan, SmallProblemsAreDirectAndExact) {
  const auto plan = plan_for(500, {});
  EXPECT_EQ(plan.system.solver, "cholesky");
  EXPECT_EQ(plan.train_rows, 500);
  EXPECT_EQ(plan.start_rows, 0);
}

TEST(Plan, IsMadeAgainWithWhatWasLearned) {
  const Index n = 9000;
  const inference::Observations rows{points(n), Matrix::Zero(n, 1)};
  auto plan = plan_for(n, {});
  ASSERT_EQ(plan.system.solver, "cg");
  inference::Problem learned(kernels::Kernel::parse("rbf", 3), 0.1);
  EXPECT_FALSE(plan_again(learned, rows, {}, plan));  // nothing is other than expected
  // So little noise costs CG a thousand iterations and more: a factorisation takes less.
  learned.set_noise(1e-8);
  EXPECT_TRUE(plan_again(learned, rows, {}, plan));
  EXPECT_EQ(plan.system.solver, "cholesky");
  EXPECT_EQ(plan.inference, "exact");
  EXPECT_NE(plan.reason.find("learned it solves by cholesky"), std::string::npos) << plan.reason;
  EXPECT_EQ(std::count_if(plan.rows.begin(), plan.rows.end(),
                          [](const PlanRow& row) { return row.chosen; }),
            2);          // one way to learn, one way to solve
  MethodOptions method;  // what the user asks for stays
  method.solver = "cg";
  auto asked = plan_for(n, method);
  EXPECT_FALSE(plan_again(learned, rows, method, asked));
}

TEST(Plan, StaysInsideTheBudget) {
  MethodOptions method;
  method.memory = current_rss_bytes() + (std::uint64_t{200} << 20);
  const auto plan = plan_for(20000, method);
  EXPECT_LE(plan.peak_bytes, static_cast<double>(*method.memory));
  EXPECT_EQ(plan.system.solver, "cg");
  EXPECT_EQ(plan.train_rows, 20000);
  EXPECT_EQ(plan.train_method, "lbfgs");  // a factor of 20,000 rows takes 3.2 GB
  EXPECT_GT(plan.seconds, 0);
  EXPECT_EQ(std::count_if(plan.rows.begin(), plan.rows.end(),
                          [](const PlanRow& row) { return row.chosen; }),
            2);  // one way to learn, one way to solve
}

TEST(Plan, GradientsBySolvesBeginOnFewerRows) {
  EXPECT_EQ(plan_for(7000, {}).solve_levels, (std::vector<Index>{3500}));
  EXPECT_EQ(plan_for(20000, {}).solve_levels, (std::vector<Index>{4000}));
  EXPECT_EQ(plan_for(40000, {}).solve_levels, (std::vector<Index>{2500, 10000}));
  TrainOptions subset;
  subset.subset = 12000;
  EXPECT_EQ(plan_for(40000, {}, subset).solve_levels, (std::vector<Index>{4000}));
  TrainOptions adam;
  adam.train = "adam";
  const auto plan = plan_for(40000, {}, adam);
  EXPECT_TRUE(plan.solve_levels.empty());
  EXPECT_EQ(plan.factorable_rows, 0);
  EXPECT_FALSE(plan.train_budget);
}

// 8 N^2 bytes of memory for a factorisation, beside what the run needs anyway.
TEST(Plan, LevelsThatMemorySufficesForMayBeFactored) {
  MethodOptions method;
  method.memory = std::uint64_t{40} << 30;
  EXPECT_EQ(plan_for(40000, method).factorable_rows, 40000);
  method.memory = std::uint64_t{10} << 30;
  EXPECT_EQ(plan_for(40000, method).factorable_rows, 10000);
  method.memory = std::uint64_t{500} << 20;
  EXPECT_EQ(plan_for(40000, method).factorable_rows, 2500);
}

// Counted in products, the same on every machine; and what they do not last for is said.
TEST(Plan, ABudgetOfProductsLimitsTheRowsOfExactGradients) {
  const auto all = plan_for(40000, {});
  ASSERT_TRUE(all.train_budget);
  EXPECT_EQ(*all.train_budget, *plan_for(40000, {}).train_budget);
  EXPECT_NE(all.reason.find("exact gradients from solves, begun on random 2,500 rows"),
            std::string::npos)
      << all.reason;
  TrainOptions train;
  train.budget = 60;
  const auto few = plan_for(40000, {}, train);
  EXPECT_EQ(few.train_budget, 60);
  EXPECT_EQ(few.train_rows, 40000);
  EXPECT_NE(few.reason.find("random 10,000 rows: a budget of 60 products"), std::string::npos)
      << few.reason;
  EXPECT_LT(few.seconds, all.seconds);
  train.budget = 1;
  const auto none = plan_for(12000, {}, train);
  EXPECT_NE(none.reason.find("does not last for one gradient"), std::string::npos) << none.reason;
  // Twice the rows are four times the work: products are fewer, and the same time.
  const double ratio = static_cast<double>(*all.train_budget) /
                       static_cast<double>(*plan_for(80000, {}).train_budget);
  EXPECT_NEAR(ratio, 4, 0.4);
}

TEST(Plan, RefusesWithWhatWouldFit) {
  MethodOptions method;
  method.memory = 1 << 20;
  try {
    plan_for(20000, method, PlanFor::solve);
    FAIL();
  } catch (const DoesNotFit& error) {
    EXPECT_NE(std::string(error.what()).find("`memory="), std::string::npos) << error.what();
  }
}

TEST(Plan, HonoursWhatTheUserAskedFor) {
  for (const auto& op : operators::operators().names()) {
    MethodOptions method;
    method.solver = "cg";
    method.preconditioner = "jacobi";
    method.op = op;
    method.precision = "double";
    const auto plan = plan_for(500, method, PlanFor::solve);
    EXPECT_EQ(plan.system.solver, "cg");
    EXPECT_EQ(plan.system.preconditioner, "jacobi");
    EXPECT_EQ(plan.system.op, op);
    EXPECT_EQ(plan.system.precision, inference::SolvePrecision::float64);
  }
}

// The way to solve that was chosen, and all that were considered.
struct Considered {
  std::string chosen;
  int with_dummy = 0;
};
Considered considered(const MethodOptions& method) {
  Considered out;
  for (const auto& row : plan_for(20000, method, PlanFor::solve).rows) {
    if (row.chosen) out.chosen = row.method;
    if (row.method.find(" dummy ") != std::string::npos) ++out.with_dummy;
  }
  return out;
}

TEST(Plan, ConsidersAnOperatorAddedAtRunTimeByItsRule) {
  operators::OperatorInfo dummy = operators::default_operator();
  dummy.name = "dummy";
  dummy.product_seconds = [](const operators::Speeds& speeds, Index n, Index columns,
                             operators::Precision precision) {
    return 0.5 * operators::default_operator().product_seconds(speeds, n, columns, precision);
  };
  const auto plan_with = [](const operators::OperatorInfo& info, const std::string& asked) {
    const auto registered = operators::operators().add(info);
    MethodOptions method;
    method.solver = "cg";
    method.preconditioner = "none";  // products are all that it costs
    method.op = asked;
    return considered(method);
  };

  // Twice as quick: `auto` takes it, unless its rule asks for more or the mathematics refuses.
  EXPECT_NE(plan_with(dummy, "auto").chosen.find("cg dummy"), std::string::npos);
  dummy.automatic.least_gain = 3;
  EXPECT_EQ(plan_with(dummy, "auto").chosen.find("dummy"), std::string::npos);
  EXPECT_GT(plan_with(dummy, "auto").with_dummy, 0);
  EXPECT_NE(plan_with(dummy, "dummy").chosen.find("cg dummy"), std::string::npos);
  dummy.automatic = {.most_bytes = 1};
  EXPECT_EQ(plan_with(dummy, "auto").chosen.find("dummy"), std::string::npos);
  dummy.automatic = {.allowed = false};
  EXPECT_EQ(plan_with(dummy, "auto").with_dummy, 0);
  EXPECT_NE(plan_with(dummy, "dummy").chosen.find("cg dummy"), std::string::npos);
  dummy.automatic = {};
  dummy.refusal = [](const kernels::Kernel&, Index, Index) { return std::string("not here"); };
  EXPECT_EQ(plan_with(dummy, "auto").with_dummy, 0);
  EXPECT_THROW(plan_with(dummy, "dummy"), InvalidArgument);
  // Gone with its registration.
  MethodOptions method;
  method.op = "dummy";
  EXPECT_THROW(plan_for(500, method), InvalidArgument);
}

TEST(Plan, AnOperatorAddedAtRunTimeIsInTheWordsForHelp) {
  operators::OperatorInfo dummy = operators::default_operator();
  dummy.name = "dummy";
  dummy.summary = "a wrapper";
  const auto registered = operators::operators().add(dummy);
  EXPECT_NE(describe_operators().find("dummy"), std::string::npos);
  EXPECT_NE(describe_operators().find("a wrapper"), std::string::npos);
}

TEST(Plan, ContradictionsAreUsageErrors) {
  MethodOptions method;
  method.solver = "cholesky";
  method.precision = "mixed";
  method.op = "tiled";
  try {
    plan_for(500, method, PlanFor::solve);
    FAIL();
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    for (const char* word : {"`solver=cholesky`", "`precision=mixed`", "`operator=tiled`"})
      EXPECT_NE(text.find(word), std::string::npos) << text;
  }
  method = {};
  method.solver = "magic";
  EXPECT_THROW(plan_for(500, method), InvalidArgument);
  method = {};
  method.noise = -1;
  EXPECT_THROW(plan_for(500, method), InvalidArgument);
}

TEST(Plan, SubsetIsTheUsersChoice) {
  TrainOptions train;
  train.subset = 300;
  const auto plan = plan_for(1000, {}, train);
  EXPECT_EQ(plan.train_rows, 300);
}

TEST(Plan, TheSameBudgetGivesTheSamePlanWhateverIsResident) {
  MethodOptions method;
  method.memory = std::uint64_t{60} << 20;  // too little even for solves while learning
  const auto before = plan_for(20000, method);
  EXPECT_LT(before.train_rows, 4000);
  EXPECT_EQ(before.train_method, "exact");
  const Matrix ballast = Matrix::Ones(4000, 1000);  // 32 MB more in memory
  const auto after = plan_for(20000, method);
  EXPECT_EQ(before.train_rows, after.train_rows);
  EXPECT_EQ(before.base_bytes, after.base_bytes);
  EXPECT_EQ(ballast.sum(), 4e6);
}

TEST(Plan, NeverLearnsOnAHandfulOfRows) {
  MethodOptions method;
  // Less than 100 rows of a likelihood fit: 80,000 bytes.
  method.memory = (std::uint64_t{40} << 20) + 1000 * 4 * 16 + 50000;
  try {
    plan_for(1000, method);
    FAIL();
  } catch (const DoesNotFit& error) {
    EXPECT_NE(std::string(error.what()).find("random 100 rows"), std::string::npos) << error.what();
  }
}

// Whatever the likelihood: a plan that is made stays inside the memory it was given.
TEST(Plan, StaysInsideAnyBudgetForEveryLikelihood) {
  const Index n = 846;
  for (const auto& info : likelihoods::likelihoods()) {
    const auto likelihood = likelihoods::make(info.name);
    const Index functions = likelihood->coupled() != nullptr ? 4 : 1;
    inference::Observations rows{points(n), Matrix::Zero(n, functions), Vector::Zero(functions)};
    const inference::Problem problem(kernels::Kernel::parse("rbf:iso", 3), likelihood->clone());
    int made = 0;
    for (std::uint64_t megabytes = 41; megabytes < 70; ++megabytes) {
      MethodOptions method;
      method.memory = megabytes << 20;
      try {
        const auto plan = plan_fit(problem, 4.0, rows, method, {});
        EXPECT_LE(plan.peak_bytes, static_cast<double>(*method.memory)) << info.name;
        ++made;
      } catch (const DoesNotFit&) {
      }
    }
    EXPECT_GT(made, 10) << info.name;
  }
}

// Classes with so many latent functions.
Plan plan_of_classes(Index n, const std::string& likelihood, Index functions,
                     const MethodOptions& method, const TrainOptions& train = {}) {
  const inference::Observations rows{points(n), Matrix::Zero(n, functions),
                                     Vector::Zero(functions)};
  const inference::Problem problem(kernels::Kernel::parse("rbf:iso", 3),
                                   likelihoods::make(likelihood));
  return plan_fit(problem, 4.0, rows, method, train);
}

TrainOptions no_training() {
  TrainOptions train;
  train.train = "none";
  return train;
}

const PlanRow& chosen_row(const Plan& plan, const std::string& stage) {
  return *std::find_if(plan.rows.begin(), plan.rows.end(),
                       [&](const PlanRow& row) { return row.chosen && row.stage == stage; });
}

TEST(Plan, OtherLikelihoodsLearnInLevelsToo) {
  const auto plan = plan_of_classes(40000, "bernoulli-logit", 1, {});
  EXPECT_EQ(plan.train_method, "newton");
  // A sixteenth of the rows is fewer than the exact searches before have.
  EXPECT_EQ(plan.solve_levels, (std::vector<Index>{10000}));
  EXPECT_GT(plan.train_levels.back(), 2500);
  EXPECT_EQ(plan_of_classes(160000, "bernoulli-logit", 1, {}).solve_levels,
            (std::vector<Index>{10000, 40000}));
  EXPECT_EQ(plan_of_classes(8000, "bernoulli-logit", 1, {}).solve_levels,
            (std::vector<Index>{4000}));
  EXPECT_EQ(plan.factorable_rows, 0);
  EXPECT_FALSE(plan.train_budget);  // unless the user asks for one
  EXPECT_NE(plan.reason.find("then on random 10,000"), std::string::npos) << plan.reason;
  TrainOptions train;
  train.budget = 1;
  const auto none = plan_of_classes(40000, "poisson", 1, {}, train);
  EXPECT_NE(none.reason.find("does not last for one gradient"), std::string::npos) << none.reason;
  train.budget = 100;  // a gradient of 10,000 rows is 1/16 of 40 products with 8 probes
  const auto some = plan_of_classes(40000, "poisson", 1, {}, train);
  EXPECT_NE(some.reason.find("100 products ends it on 10,000"), std::string::npos) << some.reason;
  train.budget = {};
  train.train = "adam";  // asked for by name it is that of the papers
  const auto adam = plan_of_classes(40000, "bernoulli-logit", 1, {}, train);
  EXPECT_TRUE(adam.solve_levels.empty());
  EXPECT_TRUE(adam.train_levels.empty());
}

// What the bits of a result depend on, or why there is none.
std::string choices(const MethodOptions& method, const std::string& likelihood) {
  try {
    const auto plan = likelihood == "gaussian" ? plan_for(3000, method)
                                               : plan_of_classes(3000, likelihood, 1, method);
    std::string text;
    for (const auto* system : {&plan.system, &plan.train_system})
      text +=
          fmt::format("{} {} {} {} {}; ", system->solver, system->op, to_string(system->precision),
                      system->preconditioner, system->preconditioning.rank.value_or(0));
    return text + fmt::format("{} {} {}", plan.train_method, plan.train_rows, plan.peak_bytes);
  } catch (const DoesNotFit& error) {
    return error.what();
  }
}

// The workspace of every thread is counted for a fixed number of them: else the rank that fits, and
// with it the bits of the result, would depend on the machine.
TEST(Plan, DoesNotDependOnTheNumberOfThreads) {
  const int before = num_threads();
  for (const char* likelihood : {"gaussian", "bernoulli-logit"})
    for (std::uint64_t megabytes = 42; megabytes < 60; megabytes += 2) {
      MethodOptions method;
      method.memory = megabytes << 20;
      method.solver = "cg";
      set_num_threads(1);
      const auto one = choices(method, likelihood);
      set_num_threads(4);
      EXPECT_EQ(choices(method, likelihood), one) << megabytes;
    }
  set_num_threads(before);
}

TEST(Plan, ConsidersAnOperatorAddedAtRunTimeForEverySystem) {
  operators::OperatorInfo dummy = operators::default_operator();
  dummy.name = "dummy";
  dummy.product_seconds = [](const operators::Speeds& speeds, Index n, Index columns,
                             operators::Precision precision) {
    return 0.1 * operators::default_operator().product_seconds(speeds, n, columns, precision);
  };
  const auto registered = operators::operators().add(dummy);
  MethodOptions method;
  method.solver = "cg";
  const auto posterior = plan_of_classes(5000, "bernoulli-logit", 1, method, no_training());
  EXPECT_EQ(posterior.system.op, "dummy");
  const inference::Problem problem(kernels::Kernel::parse("rbf:iso", 3),
                                   likelihoods::make("softmax"));
  const auto query = plan_coupled_query(problem, 4.0, points(5000), 3, method, {});
  EXPECT_EQ(query.system.op, "dummy");
}

// Independent classes have a preconditioner each; a limit that holds one does not hold four.
TEST(Plan, CountsANamedPreconditionerForEveryClass) {
  MethodOptions method;
  method.solver = "cg";
  method.preconditioner = "nystrom";
  method.preconditioning.rank = 200;
  const Index n = 5000;
  const auto cost = preconditioners::preconditioner("nystrom").cost(n, 3, method.preconditioning);
  const auto one = plan_of_classes(n, "bernoulli-logit", 1, method, no_training());
  const auto four = plan_of_classes(n, "bernoulli-logit", 4, method, no_training());
  EXPECT_GE(chosen_row(four, "solve").bytes - chosen_row(one, "solve").bytes, 3 * cost.bytes);
  method.memory = static_cast<std::uint64_t>(one.peak_bytes + 2 * cost.bytes);
  EXPECT_NO_THROW(plan_of_classes(n, "bernoulli-logit", 1, method, no_training()));
  EXPECT_THROW(plan_of_classes(n, "bernoulli-logit", 4, method, no_training()), DoesNotFit);
}

// 64 rows at a time, each with a column of N for every function.
TEST(Plan, CountsTheRowsThatCoupledFunctionsAreAskedForAtOnce) {
  const inference::Problem problem(kernels::Kernel::parse("rbf:iso", 3),
                                   likelihoods::make("softmax"));
  const Index n = 1000, functions = 5;
  MethodOptions method;
  const auto plan = plan_coupled_query(problem, 4.0, points(n), functions, method, {});
  ASSERT_TRUE(plan.system.direct());
  EXPECT_EQ(plan.variance, "exact");
  EXPECT_EQ(plan.variance_block, 64);
  const double factors = inference::CoupledQuery::factor_bytes(n, functions);
  EXPECT_GE(plan.peak_bytes, plan.base_bytes + factors + 64 * 8.0 * n * functions);
  // Not a byte less will do by factors; solves take over.
  method.memory = static_cast<std::uint64_t>(plan.peak_bytes) - 1;
  EXPECT_FALSE(plan_coupled_query(problem, 4.0, points(n), functions, method, {}).system.direct());
  method.solver = "cholesky";
  EXPECT_THROW(plan_coupled_query(problem, 4.0, points(n), functions, method, {}), DoesNotFit);
}

TEST(Plan, ASolverWithoutAPreconditionerHasNone) {
  MethodOptions method;
  method.solver = "kcg";
  const auto plan = plan_of_classes(500, "bernoulli-logit", 1, method);
  EXPECT_EQ(plan.system.solver, "kcg");
  EXPECT_EQ(plan.system.preconditioner, "none");
  EXPECT_EQ(plan.inference, "kernel-cg");
  EXPECT_EQ(chosen_row(plan, "solve").method.find("kcg"), 0u);
  method.preconditioner = "jacobi";
  EXPECT_THROW(plan_of_classes(500, "bernoulli-logit", 1, method), InvalidArgument);
}

}  // namespace plan_test
}  // namespace mercer::planning
