// A program of another project: a kernel, its products, a solve and an exact likelihood, each
// checked against the other; and an exception that crosses from the library into the program.
#include <cmath>
#include <cstdio>

#include "mercer/mercer.hpp"

int main() {
  using namespace mercer;
  constexpr Index n = 200;
  constexpr double noise = 0.1;
  Matrix x(n, 2);
  Rng(7, "outside").fill_uniform(x);
  const Vector y = (3.0 * x.col(0)).array().sin() + x.col(1).array();

  const auto kernel = kernels::Kernel::parse("matern52", 2);
  const operators::TiledOperator k(kernel, x);
  const linalg::ShiftedOperator h(k, noise);
  Matrix w = Matrix::Zero(n, 1);
  const auto result = krylov::cg(h, y, w, {.tolerance = 1e-10});

  const Matrix dense = kernel.reference_matrix(x, x) + noise * Matrix::Identity(n, n);
  const double residual = (y - dense * w).norm() / y.norm();

  inference::Problem problem(kernel, noise);
  const auto evidence = inference::exact_evidence(problem, {x, y}, false);
  linalg::Cholesky factor(dense);
  const double expected =
      -0.5 * y.dot(w.col(0)) - 0.5 * factor.log_det() - 0.5 * n * std::log(2 * std::acos(-1.0));

  std::printf("iterations %d, residual %.1e, log likelihood %.6f (%.6f)\n", result.iterations,
              residual, evidence.value, expected);
  bool caught = false;
  try {
    kernels::Kernel::parse("no such kernel", 2);
  } catch (const InvalidArgument&) {
    caught = true;
  }
  const bool right = caught && result.converged() && residual < 1e-9 &&
                     std::abs(evidence.value - expected) < 1e-6 * std::abs(expected);
  return right ? 0 : 1;
}
