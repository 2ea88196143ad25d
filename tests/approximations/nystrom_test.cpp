#include "mercer/approximations/nystrom.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "tests/testing/dense_problems.hpp"
#include "tests/testing/small_gp.hpp"

namespace mercer::approximations {
namespace nystrom_test {

using testing::small_gp;

TEST(Nystrom, IsTheTextbookFormula) {
  const auto gp = small_gp({.num_points = 70, .lengthscale = 0.6, .kernel = "matern32:iso"});
  for (const auto choice : {Landmarks::uniform, Landmarks::kmeans, Landmarks::leverage}) {
    const auto result = nystrom(gp.kernel_operator, {.count = 15, .choice = choice, .pilot = 20});
    const Matrix& k = gp.kernel_operator.matrix();
    const Matrix k_xu = k(Eigen::all, result.pivots), k_uu = k(result.pivots, result.pivots);
    const Matrix expected = k_xu * k_uu.ldlt().solve(k_xu.transpose());
    // K_uu has a condition number of about 100 here.
    EXPECT_LE((result.factor * result.factor.transpose() - expected).norm(),
              1e-12 * expected.norm());
    EXPECT_NEAR(result.trace, k.trace(), 1e-12);
    EXPECT_NEAR(result.trace_error, (k - expected).trace(), 1e-11);
    EXPECT_EQ(result.clipped, 0);
    EXPECT_EQ(result.kernel_values, 70 * (choice == Landmarks::leverage ? 35 : 15));
  }
}

TEST(Nystrom, WithEveryPointIsK) {
  const auto gp = small_gp({.num_points = 40, .lengthscale = 0.3, .kernel = "matern12:iso"});
  const auto result = nystrom(gp.kernel_operator, {.count = 100});
  EXPECT_EQ(result.rank(), 40);
  EXPECT_LE((result.factor * result.factor.transpose() - gp.kernel_operator.matrix()).norm(),
            1e-12 * 40);
}

TEST(Nystrom, ClipsWhatIsRoundingAndSaysSo) {
  const auto gp = small_gp({.num_points = 60, .lengthscale = 20});
  const auto result = nystrom(gp.kernel_operator, {.count = 50});
  EXPECT_GT(result.clipped, 0);
  EXPECT_EQ(result.rank() + result.clipped, 50);
  EXPECT_TRUE(result.factor.allFinite());
  // Clipping leaves out no more than the threshold for every column.
  EXPECT_LE((result.factor * result.factor.transpose() - gp.kernel_operator.matrix()).norm(),
            1e-10 * 60);
}

TEST(Nystrom, SameBitsOnAnyThreads) {
  const auto gp = small_gp({.num_points = 200, .lengthscale = 0.5});
  for (const auto choice : {Landmarks::uniform, Landmarks::kmeans, Landmarks::leverage}) {
    std::vector<Matrix> factors;
    for (const int threads : {1, 3}) {
      const testing::WithThreads scope(threads);
      factors.push_back(nystrom(gp.kernel_operator, {.count = 30, .choice = choice}).factor);
    }
    EXPECT_TRUE(testing::same_bits(factors[0], factors[1]));
  }
}

}  // namespace nystrom_test
}  // namespace mercer::approximations
