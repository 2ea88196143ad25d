#include "mercer/approximations/landmarks.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <set>

#include "mercer/core/error.hpp"
#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::approximations {
namespace landmarks_test {

using testing::small_gp;

class LandmarkChoices : public ::testing::TestWithParam<Landmarks> {};

TEST_P(LandmarkChoices, AreDistinctAndOfTheNumberAsked) {
  const auto gp = small_gp({.num_points = 80, .lengthscale = 0.5});
  const auto chosen =
      choose_landmarks(gp.kernel_operator, {.count = 30, .choice = GetParam(), .pilot = 20});
  EXPECT_EQ(chosen.points.size(), 30U);
  EXPECT_EQ(std::set<Index>(chosen.points.begin(), chosen.points.end()).size(), 30U);
  EXPECT_GE(*std::min_element(chosen.points.begin(), chosen.points.end()), 0);
  EXPECT_LT(*std::max_element(chosen.points.begin(), chosen.points.end()), 80);
  EXPECT_FALSE(chosen.exhausted);
}

TEST_P(LandmarkChoices, PassOverDuplicates) {
  const auto gp = small_gp(
      {.num_points = 60, .lengthscale = 0.3, .kernel = "matern12:iso", .duplicate_points = true});
  const auto chosen = choose_landmarks(gp.kernel_operator, {.count = 60, .choice = GetParam()});
  EXPECT_EQ(chosen.points.size(), 30U);
  EXPECT_TRUE(chosen.exhausted);
  std::set<Index> pairs;
  for (const Index i : chosen.points) pairs.insert(i / 2);
  EXPECT_EQ(pairs.size(), 30U);
}

TEST_P(LandmarkChoices, DependOnTheSeedAndNotOnThreads) {
  const auto gp = small_gp({.num_points = 300, .lengthscale = 0.5});
  const LandmarkOptions options{.count = 40, .choice = GetParam(), .pilot = 50, .seed = 3};
  std::vector<std::vector<Index>> chosen;
  for (const int threads : {1, 3}) {
    const testing::WithThreads scope(threads);
    chosen.push_back(choose_landmarks(gp.kernel_operator, options).points);
  }
  EXPECT_EQ(chosen[0], chosen[1]);
  auto other = options;
  other.seed = 4;
  EXPECT_NE(choose_landmarks(gp.kernel_operator, other).points, chosen[0]);
}

TEST_P(LandmarkChoices, OnePointAndMoreThanThereAre) {
  const auto one = small_gp({.num_points = 1});
  EXPECT_EQ(choose_landmarks(one.kernel_operator, {.count = 9, .choice = GetParam()}).points,
            std::vector<Index>{0});
  EXPECT_THROW(choose_landmarks(one.kernel_operator, {.count = 0}), InvalidArgument);
  const auto all = small_gp({.num_points = 20, .lengthscale = 0.5});
  EXPECT_EQ(
      choose_landmarks(all.kernel_operator, {.count = 99, .choice = GetParam()}).points.size(),
      20U);
}

TEST_P(LandmarkChoices, HaveANameThatReadsBack) {
  EXPECT_EQ(landmarks(to_string(GetParam())), GetParam());
  EXPECT_THROW(landmarks("no-such"), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(All, LandmarkChoices,
                         ::testing::Values(Landmarks::uniform, Landmarks::kmeans,
                                           Landmarks::leverage),
                         [](const auto& test) { return std::string(to_string(test.param)); });

/// 195 points in one clump and five far from it and from each other.
testing::ReferenceKernelOperator clump_and_five() {
  Matrix x(200, 2);
  Rng(1, "clump").fill_normal(x);
  x *= 0.01;
  for (Index i = 0; i < 5; ++i) x.row(40 * i) << 10.0 * double(i + 1), 0.0;
  return {kernels::Kernel::parse("rbf:iso", 2), x};
}

TEST(Landmarks, KmeansAndLeverageFindTheFewThatMatter) {
  const auto k = clump_and_five();
  for (const auto choice : {Landmarks::kmeans, Landmarks::leverage}) {
    // A pilot of three: the clump, hardly ever one of the five.
    const auto points = choose_landmarks(k, {.count = 12, .choice = choice, .pilot = 3}).points;
    Index found = 0;
    for (Index i = 0; i < 5; ++i)
      found += std::find(points.begin(), points.end(), 40 * i) != points.end();
    EXPECT_GE(found, 4) << to_string(choice);
  }
}

TEST(Landmarks, KmeansKeepsItsColumns) {
  const auto gp = small_gp({.num_points = 50, .lengthscale = 0.5});
  const auto chosen =
      choose_landmarks(gp.kernel_operator, {.count = 7, .choice = Landmarks::kmeans});
  for (std::size_t j = 0; j < 7; ++j)
    EXPECT_TRUE(chosen.columns.col(static_cast<Index>(j)) ==
                gp.kernel_operator.matrix().col(chosen.points[j]));
  EXPECT_EQ(chosen.kernel_values, 350);
}

TEST(Landmarks, ScoresFromEveryPointAreTheLeverageScores) {
  const auto gp = small_gp({.num_points = 60, .noise = 0.1, .lengthscale = 0.7});
  const Vector scores = leverage_scores(gp.kernel_operator, 0.1, 60, 0);
  const Matrix& k = gp.kernel_operator.matrix();
  const Matrix a = k + 0.1 * Matrix::Identity(60, 60);
  // (K - K (K + s2)^-1 K) / s2 = K (K + s2)^-1, to rounding of K divided by s2.
  EXPECT_LE((scores - Matrix(k * a.inverse()).diagonal()).norm(), 1e-11);
}

TEST(Landmarks, ScoresFromAFewPointsAreFromTheDefinition) {
  const auto gp = small_gp({.num_points = 60, .noise = 0.1, .lengthscale = 0.7});
  const Vector scores = leverage_scores(gp.kernel_operator, 0.1, 10, 5);
  const auto pilot = choose_landmarks(gp.kernel_operator, {.count = 10, .seed = 5}).points;
  const Matrix& k = gp.kernel_operator.matrix();
  Matrix columns(60, 10), core(10, 10);
  for (Index j = 0; j < 10; ++j) columns.col(j) = k.col(pilot[std::size_t(j)]);
  for (Index j = 0; j < 10; ++j) core.row(j) = columns.row(pilot[std::size_t(j)]);
  core.diagonal().array() += 0.1 * 10 / 60;
  const Matrix left = k - columns * core.inverse() * columns.transpose();
  EXPECT_LE((scores - left.diagonal() / 0.1).norm(), 1e-10 * scores.norm());
}

}  // namespace landmarks_test
}  // namespace mercer::approximations
