// Climbs over hyperparameters and base points, for every approximation that has both gradients.
#include "mercer/training/base_points.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/training/search.hpp"
#include "tests/testing/temporary_folder.hpp"
#include "tests/training/exact_reference.hpp"

namespace mercer::training {
namespace base_points_test {

struct World {
  inference::Observations rows;
  inference::Problem start;
};

// The third input is the same in all rows. Rows are observed once or twice, as merging leaves them.
World make_world(const std::string& kernel = "matern52", Index n = 150) {
  World w{{Matrix(n, 3), Matrix(n, 1), Vector::Zero(1)},
          {kernels::Kernel::parse(kernel, 3), 0.05, inference::MeanKind::constant}};
  Rng rng(5, "base points");
  rng.fill_normal(w.rows.x);
  w.rows.x.col(2).setConstant(0.25);
  w.rows.noise.weight = Vector::Ones(n);
  for (Index i = 0; i < n; ++i) {
    w.rows.noise.weight(i) = 1 + i % 2;
    w.rows.y(i, 0) = std::sin(2 * w.rows.x(i, 0)) + 0.4 * w.rows.x(i, 1) + 1 + 0.2 * rng.normal();
  }
  return w;
}

std::vector<std::string> methods_with_base_gradients() {
  std::vector<std::string> names;
  for (const auto& info : inference::methods())
    if (info.abilities.optimizes_base) names.emplace_back(info.name);
  return names;
}

constexpr Index kRank = 9;

std::unique_ptr<inference::Inference> make_method(const std::string& name, const World& w) {
  inference::InferenceSetup setup{.rows = w.rows, .seed = 3};
  setup.sparse.rank = kRank;
  return inference::make(name, w.start, setup);
}

BaseClimb climb_of(const World& w) {
  return {.box = bounds(w.start, w.rows),
          .range = input_range(w.rows.x),
          .entries = Search::entries(w.rows)};
}

class BaseClimbLaw : public ::testing::TestWithParam<std::string> {};

TEST_P(BaseClimbLaw, TheGradientInTheBasePointsIsThatOfTheEvidence) {
  for (const char* text : {"matern52", "rbf:iso * periodic(0) + 0.3 * linear(1,2)"}) {
    auto w = make_world(text, 60);
    const auto method = make_method(GetParam(), w);
    method->renew(w.start);
    const Matrix base = method->base_points();
    ASSERT_EQ(base.cols(), 3);
    Matrix gradient;
    const auto evidence = method->evaluate_with_base(w.start, {}, gradient);
    const auto value = [&](Index j, Index c, double shift) {
      Matrix moved = base;
      moved(j, c) += shift;
      method->use_base(moved);
      return method->evaluate(w.start, {.gradient = false}).value;
    };
    EXPECT_DOUBLE_EQ(value(0, 0, 0), evidence.value);
    const double h = 1e-3, largest = gradient.cwiseAbs().maxCoeff();
    for (Index j = 0; j < base.rows(); ++j)
      for (Index c = 0; c < 3; ++c) {
        // Fourth order: h^4/30 of a fifth derivative, and 1e-12 / h of rounding in the evidence.
        const double difference =
            (8 * (value(j, c, h) - value(j, c, -h)) - (value(j, c, 2 * h) - value(j, c, -2 * h))) /
            (12 * h);
        EXPECT_NEAR(gradient(j, c), difference, 1e-6 * std::max(1.0, largest))
            << text << ", input " << c << " of base point " << j;
      }
  }
}

TEST_P(BaseClimbLaw, TheEvidenceGrowsAndIsThatOfTheResult) {
  const auto w = make_world();
  const auto method = make_method(GetParam(), w);
  const auto result = climb_base(*method, w.start, climb_of(w));
  EXPECT_GT(result.evidence, result.start_evidence + 1);
  EXPECT_EQ(result.base, method->base_points());
  auto problem = w.start;
  problem.set_log_parameters(result.theta);
  const auto fresh = make_method(GetParam(), w);
  fresh->use_base(result.base);
  const auto evidence = fresh->evaluate(problem, {});
  // The same sums from the same numbers; per entry and back costs a rounding.
  EXPECT_NEAR(evidence.value, result.evidence, 1e-12 * std::abs(evidence.value));
  EXPECT_LE((evidence.gradient - result.gradient).norm(), 1e-9 * (1 + evidence.gradient.norm()));
  // An input that is constant in the data stays so; the others stay near the data.
  EXPECT_TRUE((result.base.col(2).array() == 0.25).all());
  for (Index c = 0; c < 2; ++c) {
    const double low = w.rows.x.col(c).minCoeff(), high = w.rows.x.col(c).maxCoeff();
    EXPECT_GE(result.base.col(c).minCoeff(), low - 0.5 * (high - low));
    EXPECT_LE(result.base.col(c).maxCoeff(), high + 0.5 * (high - low));
  }
}

TEST_P(BaseClimbLaw, MovedBasePointsAreBetterThanFixedOnes) {
  const auto w = make_world();
  const auto method = make_method(GetParam(), w);
  method->renew(w.start);
  auto problem = w.start;
  const auto fixed = optim::lbfgs(
      [&](ConstVectorView theta, VectorView gradient) {
        problem.set_log_parameters(theta);
        const auto e = method->evaluate(problem, {});
        gradient = -e.gradient;
        return -e.value;
      },
      w.start.log_parameters(), bounds(w.start, w.rows));
  problem.set_log_parameters(fixed.theta);
  const auto result = climb_base(*method, problem, climb_of(w));
  EXPECT_NEAR(result.start_evidence, -fixed.value, 1e-9 * std::abs(fixed.value));
  EXPECT_GT(result.evidence, result.start_evidence);
}

TEST_P(BaseClimbLaw, NeverEndsBelowTheEvidenceItBeganWith) {
  const auto w = make_world();
  const auto method = make_method(GetParam(), w);
  auto climb = climb_of(w);
  const auto best = climb_base(*method, w.start, climb);
  auto problem = w.start;
  problem.set_log_parameters(best.theta);
  // From the end again; and from a theta at its bound, which L-BFGS has to move away.
  const auto again = climb_base(*method, problem, climb);
  EXPECT_GE(again.evidence, again.start_evidence);
  EXPECT_NEAR(again.start_evidence, best.evidence, 1e-9 * std::abs(best.evidence));
  Vector lower = climb.box.lower();
  lower(0) = best.theta(0);
  climb.box = optim::Box(lower, climb.box.upper());
  climb.steps = 1;
  method->use_base(best.base);
  const auto at_bound = climb_base(*method, problem, climb);
  EXPECT_GE(at_bound.evidence, at_bound.start_evidence);
}

TEST_P(BaseClimbLaw, StoppedAnywhereItGoesOnToTheSameBits) {
  const auto w = make_world();
  const auto climb = climb_of(w);
  const auto whole = climb_base(*make_method(GetParam(), w), w.start, climb);
  ASSERT_GT(whole.steps, 4);
  for (const int last : {1, whole.steps / 2, whole.steps - 1}) {
    inference::State kept;
    auto part = climb;
    part.keep = [&](inference::State state) { kept = std::move(state); };
    part.observer = [&](const BaseStep& step) {
      return step.number == last ? Action::stop : Action::proceed;
    };
    const auto stopped = climb_base(*make_method(GetParam(), w), w.start, part);
    EXPECT_EQ(stopped.stop, StopReason::interrupted);
    EXPECT_EQ(stopped.steps, last);
    EXPECT_GE(stopped.evidence, stopped.start_evidence);
    auto rest = climb;
    rest.from = kept;
    const auto resumed = climb_base(*make_method(GetParam(), w), w.start, rest);
    EXPECT_EQ(resumed.resumed_evaluations, stopped.evaluations);
    EXPECT_EQ(resumed.theta, whole.theta);
    EXPECT_EQ(resumed.base, whole.base);
    EXPECT_EQ(resumed.evidence, whole.evidence);
    EXPECT_EQ(resumed.steps, whole.steps);
    EXPECT_EQ(resumed.stop, whole.stop);
  }
}

// Through the checkpoint of a search, which a killed program would leave behind.
TEST_P(BaseClimbLaw, ASearchKeepsItInItsCheckpoint) {
  const auto w = make_world();
  const testing::TemporaryFolder folder;
  TrainOptions options;
  TrainingChoice choice;
  choice.trainer = "exact";
  choice.rows = w.rows.size();
  std::vector<std::string> stages;
  const auto run = [&](int stop_at) {
    int calls = 0;
    const ProgressCallback progress = [&](const Progress& p) {
      if (stages.empty() || stages.back() != p.stage) stages.push_back(p.stage);
      return ++calls == stop_at ? Action::stop : Action::proceed;
    };
    const StepObserver on_step;
    const LearnRequest request{options, 4, 99, progress, on_step};
    Search search(w.start, w.rows, choice, request);
    const auto method = make_method(GetParam(), w);
    auto result = climb_base(search, *method, w.start.log_parameters());
    EXPECT_EQ(search.report.steps, result.steps);
    EXPECT_EQ(*search.learned(), result.theta);
    search.finish();
    return result;
  };
  const auto whole = run(0);
  EXPECT_EQ(stages, std::vector<std::string>{"learn (base points)"});
  options.checkpoint = folder.file("checkpoint");
  const auto part = run(3);
  EXPECT_EQ(part.stop, StopReason::interrupted);
  EXPECT_TRUE(std::filesystem::exists(options.checkpoint));
  const auto rest = run(0);
  EXPECT_GT(rest.resumed_evaluations, 2);
  EXPECT_EQ(rest.theta, whole.theta);
  EXPECT_EQ(rest.base, whole.base);
}

TEST_P(BaseClimbLaw, RefusesWhatDoesNotFit) {
  const auto w = make_world();
  const auto method = make_method(GetParam(), w);
  auto climb = climb_of(w);
  climb.range = Matrix::Zero(2, 2);
  EXPECT_THROW(climb_base(*method, w.start, climb), DimensionMismatch);
  climb = climb_of(w);
  climb.box = optim::Box(Vector::Zero(1), Vector::Ones(1));
  EXPECT_THROW(climb_base(*method, w.start, climb), DimensionMismatch);
}

INSTANTIATE_TEST_SUITE_P(Methods, BaseClimbLaw, ::testing::ValuesIn(methods_with_base_gradients()),
                         [](const auto& tested) { return tested.param; });

TEST(BaseClimb, MethodsWithoutGradientsInTheBasePointsRefuse) {
  const auto w = make_world();
  for (const auto& info : inference::methods()) {
    if (info.abilities.optimizes_base || !info.abilities.base ||
        !info.refusal(w.start, w.rows).empty())
      continue;
    const auto method = make_method(std::string(info.name), w);
    EXPECT_THROW(climb_base(*method, w.start, climb_of(w)), InvalidArgument) << info.name;
  }
}

}  // namespace base_points_test
}  // namespace mercer::training
