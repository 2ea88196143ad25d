#include "mercer/krylov/fcg.hpp"

#include "mercer/krylov/detail/conjugate_gradients.hpp"

namespace mercer::krylov {

SolveResult fcg(const linalg::LinearOperator& a, ConstMatrixView b, MatrixView x,
                const SolverOptions& options, const SolverContext& context) {
  check_arguments("fcg", a, b, x, options, context);
  refuse_option("fcg", options.keep_coefficients, "keep_coefficients", "cg");
  refuse_option("fcg", options.restart.has_value(), "restart", "gmres and fgmres");
  refuse_option("fcg", options.random_stop.has_value(), "random_stop", "unbiased solvers");
  const int window = options.window.value_or(default_window);
  return detail::ConjugateGradients(a, b, x, options, context, window).run();
}

double fcg_bytes(Index n, Index columns, bool preconditioned) {
  const double blocks = (preconditioned ? 4 : 3) + 2 * default_window;
  return 8.0 * blocks * static_cast<double>(n) * static_cast<double>(columns);
}

double fcg_flops(Index n, Index columns) {
  return (12 + 4.0 * default_window) * static_cast<double>(n) * static_cast<double>(columns);
}

SolverInfo fcg_info() {
  return {.name = "fcg",
          .summary = "flexible conjugate gradients: P may change from step to step",
          .solve = fcg,
          .needs_positive_definite = true,
          .flexible = true,
          .bytes = fcg_bytes,
          .flops = fcg_flops};
}

}  // namespace mercer::krylov
