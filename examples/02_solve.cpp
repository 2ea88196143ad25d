// (K + s2 I) w = y by conjugate gradients, with and without a preconditioner, and what the true
// residual says about every prediction made from w.
#include <cstdio>

#include "mercer/mercer.hpp"

using namespace mercer;

int main() {
  constexpr Index n = 1500;
  constexpr double noise = 1e-2;
  Matrix x(n, 2);
  Rng(3, "points").fill_uniform(x);
  const Vector y = (6.0 * x.col(0)).array().sin() * (4.0 * x.col(1)).array().cos();

  auto kernel = kernels::Kernel::parse("rbf:iso", 2);
  kernel.set_all_lengthscales(0.5);
  const operators::TiledOperator k(kernel, x);
  const linalg::ShiftedOperator h(k, noise);  // K + s2 I

  Matrix w = Matrix::Zero(n, 1);
  const auto plain = krylov::cg(h, y, w, {.tolerance = 1e-8});

  const auto built = preconditioners::make("pivoted-cholesky", k, noise, {.rank = 100});
  w.setZero();
  const auto preconditioned =
      krylov::cg(h, y, w, {.tolerance = 1e-8}, {.preconditioner = built.preconditioner.get()});

  std::printf("plain          %4d iterations, residual %.1e\n", plain.iterations,
              plain.relative_residual);
  std::printf("preconditioned %4d iterations, residual %.1e\n", preconditioned.iterations,
              preconditioned.relative_residual);

  // |mean(x*) - exact mean(x*)| <= sqrt(k(x*, x*)) |r| / sqrt(s2), and k(x*, x*) = 1 here.
  const double bound = preconditioned.residual_norms[0] / std::sqrt(noise);
  std::printf("no predicted mean is further than %.1e from the exact one\n", bound);
  return plain.converged() && preconditioned.converged() &&
                 preconditioned.iterations < plain.iterations
             ? 0
             : 1;
}
