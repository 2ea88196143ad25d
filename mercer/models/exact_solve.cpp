#include "mercer/models/exact_solve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"

namespace mercer::models {
namespace {

// Says how far a solve is: residuals fall roughly geometrically, so progress is counted in digits.
Observer solve_observer(const ProgressCallback& progress) {
  if (!progress) return {};
  return [progress, first = 0.0](const Iteration& it) mutable {
    if (first <= 0) first = std::max(it.value, it.target);
    double fraction = -1;
    if (it.target > 0 && it.value > 0 && first > it.target)
      fraction = std::clamp(std::log(first / it.value) / std::log(first / it.target), 0.0, 1.0);
    return progress({"solve", fraction,
                     fmt::format("iteration {}, relative residual {:.1e}", it.number, it.value)});
  };
}

// The trend's columns are solved to this tolerance whatever the one for y: their error would
// enter the variances, whose bound does not count it.
constexpr double kBasisTolerance = 1e-10;

}  // namespace

SolvedSystem solve_system(const inference::Problem& problem, const inference::Observations& data,
                          ConstMatrixView basis, const inference::SystemChoice& choice,
                          const ProgressCallback& progress) {
  if (progress && progress({"solve", -1, "building " + choice.solver}) == Action::stop)
    throw Interrupted("interrupted before the solve");
  const inference::RegularizedSystem system(problem.kernel, data.noise.at(problem.noise()), data.x,
                                            choice);
  SolvedSystem out;
  out.solution = Matrix::Zero(data.size(), 1 + basis.cols());
  const auto solve_columns = [&](ConstMatrixView b, MatrixView solution, double tolerance) {
    auto report = system.solve(b, solution, tolerance, solve_observer(progress));
    if (report.stop == StopReason::interrupted)
      throw Interrupted(
          fmt::format("interrupted after {} iterations of the solve", report.iterations));
    return report;
  };
  out.report = solve_columns(data.y, out.solution.leftCols(1), choice.tolerance);
  if (basis.cols() > 0) {
    const auto trend = solve_columns(basis, out.solution.rightCols(basis.cols()),
                                     std::min(choice.tolerance, kBasisTolerance));
    // 1e-10 may be out of reach; what the user asked for may not be.
    if (trend.relative_residual > choice.tolerance) out.report.stop = trend.stop;
    out.report.matvecs += trend.matvecs;
    out.report.seconds += trend.seconds;
  }
  out.noise = system.noise();
  out.jitter = system.jitter();
  out.build_seconds = system.build_seconds();
  out.preconditioner = system.preconditioner_report();
  return out;
}

}  // namespace mercer::models
