#include "mercer/models/simulate.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"

namespace mercer::models {
namespace {

using inference::MeanKind;
using inference::Problem;

TEST(Simulate, DrawsHaveTheKernelAsCovariance) {
  const Problem problem{kernels::Kernel::parse("2 * matern32:iso", 1), 0.3, MeanKind::zero};
  const Matrix x = Eigen::Vector3d(0.0, 0.5, 2.0);
  constexpr int draws = 20000;
  Matrix latent = Matrix::Zero(3, 3);
  double noise = 0;
  for (int s = 0; s < draws; ++s) {
    const auto draw = draw_from_gp(problem, x, static_cast<std::uint64_t>(s), 1 << 20);
    latent += draw.latent * draw.latent.transpose() / draws;
    noise += (draw.target - draw.latent).squaredNorm() / (3.0 * draws);
  }
  const Matrix k = problem.kernel.reference_matrix(x, x);
  // Standard deviation of a sample covariance entry <= 2 sqrt(2 / draws) = 0.02; 4.5 of them.
  EXPECT_LE((latent - k).cwiseAbs().maxCoeff(), 0.09);
  EXPECT_NEAR(noise, 0.3, 4.5 * 0.3 * std::sqrt(2.0 / (3 * draws)));
}

TEST(Simulate, SameSeedSameBitsOnAnyThreads) {
  const Problem problem{kernels::Kernel::parse("rbf", 2), 0.1, MeanKind::zero};
  Matrix x(300, 2);
  Rng(1, "x").fill_normal(x);
  const int before = num_threads();
  set_num_threads(1);
  const auto one = draw_from_gp(problem, x, 7, 1 << 24);
  set_num_threads(3);
  const auto three = draw_from_gp(problem, x, 7, 1 << 24);
  set_num_threads(before);
  EXPECT_EQ(one.target, three.target);
}

TEST(Simulate, TooLargeIsRefusedWithWhatWouldFit) {
  const Problem problem{kernels::Kernel::parse("rbf", 1), 0.1, MeanKind::zero};
  EXPECT_THROW(draw_from_gp(problem, Matrix::Zero(1000, 1), 0, 1 << 20), DoesNotFit);
}

}  // namespace
}  // namespace mercer::models
