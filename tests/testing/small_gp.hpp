// A small Gaussian-process problem with everything known: points, K, A = K plus noise and
// targets.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "mercer/core/rng.hpp"
#include "mercer/linalg/linear_operator.hpp"
#include "tests/testing/reference_kernel_operator.hpp"

namespace mercer::testing {

struct SmallGpOptions {
  Index num_points = 60;
  Index num_inputs = 2;
  double noise = 1e-2;      // variance
  double noise_spread = 1;  // above 1: from `noise` up to so many times as much, by point
  double lengthscale = 1;
  std::string kernel = "rbf:iso";
  bool duplicate_points = false;  // every second point repeats the one before
  std::uint64_t seed = 7;
};

struct SmallGp {
  std::shared_ptr<const ReferenceKernelOperator> owned;
  const ReferenceKernelOperator& kernel_operator;
  double noise;                // the least
  linalg::Diagonal row_noise;  // of each point
  linalg::DenseOperator a;     // K plus noise
  Matrix y;                    // N x 1
};

inline SmallGp small_gp(const SmallGpOptions& options = {}) {
  Matrix x(options.num_points, options.num_inputs);
  Rng(options.seed, "small_gp points").fill_normal(x);
  if (options.duplicate_points)
    for (Index i = 1; i < x.rows(); i += 2) x.row(i) = x.row(i - 1);
  auto kernel = kernels::Kernel::parse(options.kernel, options.num_inputs);
  kernel.set_all_lengthscales(options.lengthscale);
  const auto k = std::make_shared<const ReferenceKernelOperator>(kernel, x);
  Matrix a = k->matrix();
  linalg::Diagonal noise = options.noise;
  if (options.noise_spread > 1) {
    Vector power(options.num_points);
    Rng(options.seed, "small_gp spread").fill_uniform(power);
    noise = Vector(options.noise * (std::log(options.noise_spread) * power.array()).exp());
  }
  a.diagonal() += noise.vector(options.num_points);
  Matrix y(options.num_points, 1);
  Rng(options.seed, "small_gp noise").fill_normal(y);
  y *= std::sqrt(options.noise);
  for (Index i = 0; i < y.rows(); ++i) y(i, 0) += std::sin(2 * x.row(i).sum());
  return {k, *k, options.noise, noise, linalg::DenseOperator(std::move(a)), std::move(y)};
}

}  // namespace mercer::testing
