#include "mercer/preconditioners/inner_solve.hpp"

#include <fmt/format.h>

#include "mercer/core/error.hpp"
#include "mercer/krylov/cg.hpp"

namespace mercer::preconditioners {
namespace {

constexpr double float32_reach = 1e-5;  // relative residuals that float32 products still tell
constexpr int max_inner_iterations = 10000;

}  // namespace

InnerSolve::InnerSolve(double tolerance, const char* owner) : tolerance_(tolerance), owner_(owner) {
  if (!(tolerance > 0 && tolerance < 1))
    throw InvalidArgument(fmt::format(
        "{}: the inner tolerance is {}, but must be above 0 and below 1", owner, tolerance));
}

void InnerSolve::operator()(const linalg::LinearOperator& a, const linalg::LinearOperator* low,
                            ConstMatrixView r, MatrixView z) const {
  const krylov::SolverOptions options{.tolerance = tolerance_,
                                      .max_iterations = max_inner_iterations};
  krylov::SolverContext context;
  const auto count = [&](const krylov::SolveResult& result, bool all_low) {
    for (const int k : result.column_iterations) iterations_ += k;
    products_ += result.matvecs;
    if (!all_low) exact_products_ += result.matvecs - result.low_precision_matvecs;
  };
  z.setZero();
  if (low != nullptr && tolerance_ >= float32_reach) {
    const auto result = krylov::cg(*low, r, z, options, context);
    count(result, true);
    if (result.converged()) return;
  } else {
    context.low_precision = low;
  }
  count(krylov::cg(a, r, z, options, context), false);
}

void InnerSolve::refuse(const char* what) const {
  throw InvalidArgument(fmt::format(
      "{}: there is no {}, because P is known only by iterations; take another preconditioner",
      owner_, what));
}

}  // namespace mercer::preconditioners
