#include "mercer/krylov/energy_error.hpp"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <numeric>

#include "mercer/krylov/cg.hpp"
#include "tests/testing/dense_problems.hpp"

namespace mercer::krylov {
namespace energy_error_test {

using linalg::DenseOperator;

TEST(EnergyError, IsNotKnownWithoutASingleStep) { EXPECT_FALSE(energy_error({})); }

TEST(EnergyError, OfAGeometricSeriesIsExact) {
  CgCoefficients c;
  for (int j = 0; j < 40; ++j) {
    c.alpha.push_back(2);
    c.beta.push_back(0.5);
    c.energy.push_back(std::pow(0.7, j));
  }
  // The sum of 2 * 0.7^j from j = 40 on.
  EXPECT_NEAR(*energy_error(c), 2 * std::pow(0.7, 40) / 0.3, 1e-12 * std::pow(0.7, 40));
}

// Hestenes & Stiefel: from x = 0 all steps together are b'A^-1 b, but for what is left.
TEST(EnergyError, StepsAndWhatIsLeftAreTheWhole) {
  const Matrix a = testing::spd_matrix(200, 1e3, 1);
  const Eigen::LLT<Matrix> llt(a);
  const Matrix b = testing::random_matrix(200, 12, 2);
  const Matrix exact = llt.solve(b);
  for (const double tolerance : {1e-1, 1e-2, 1e-4}) {
    Matrix x = Matrix::Zero(200, 12);
    const auto result =
        cg(DenseOperator(a), b, x, {.tolerance = tolerance, .keep_coefficients = true});
    ASSERT_TRUE(result.converged());
    for (Index j = 0; j < 12; ++j) {
      const auto& c = result.coefficients[static_cast<std::size_t>(j)];
      const double steps =
          std::inner_product(c.alpha.begin(), c.alpha.end(), c.energy.begin(), 0.0);
      const Vector error = exact.col(j) - x.col(j);
      const double left = error.dot(a * error), whole = b.col(j).dot(exact.col(j));
      EXPECT_NEAR(steps + left, whole, 1e-9 * whole);
      const double estimate = *energy_error(c);
      EXPECT_GT(estimate, left / 30) << tolerance << " column " << j;
      EXPECT_LT(estimate, left * 30) << tolerance << " column " << j;
    }
  }
}

}  // namespace energy_error_test
}  // namespace mercer::krylov
