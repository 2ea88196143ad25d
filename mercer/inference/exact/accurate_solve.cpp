#include "mercer/inference/exact/accurate_solve.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "mercer/core/count_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/inference/certificate.hpp"

namespace mercer::inference {
namespace {

// The trend's columns are solved to this tolerance whatever the one for y: their error would
// enter the variances, whose bound does not count it.
constexpr double kBasisTolerance = 1e-10;
// Of the bound that is aimed at, what the residual may take; the rest is for rounding.
constexpr double kShareOfResidual = 0.9;
// Relative residuals below this are out of reach in double precision.
constexpr double kLeastResidual = 1e-14;
constexpr int kMostContinuations = 3, kMostRefinements = 10;

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

class AccurateSolve {
 public:
  AccurateSolve(const Problem& problem, const Observations& data, ConstMatrixView basis,
                const SystemChoice& choice, double accuracy, const ProgressCallback& progress)
      : problem_(problem),
        data_(data),
        basis_(basis),
        choice_(choice),
        accuracy_(accuracy),
        progress_(progress),
        noise_(data.noise.at(problem.noise())),
        system_(problem.kernel, noise_, data.x, choice) {}
  SolvedSystem run(const Matrix& start);

 private:
  SystemReport solve(ConstMatrixView b, MatrixView x, double tolerance, Matrix& residual,
                     krylov::Trail* trail) const;
  void solve_trend();
  void solve_target();
  void continue_while_it_pays(double tolerance, krylov::Trail& trail);
  void refine_factored();
  double wanted() const;
  double weighted(const Vector& r) const { return std::sqrt(noise_.inverse_squares(r)(0)); }

  const Problem& problem_;
  const Observations& data_;
  ConstMatrixView basis_;
  const SystemChoice& choice_;
  double accuracy_;
  const ProgressCallback& progress_;
  linalg::Diagonal noise_;  // without jitter
  RegularizedSystem system_;
  double goal_ = HUGE_VAL;  // of |D^-1/2 r|
  Matrix residual_, trend_residual_;
  SolvedSystem out_;
};

SystemReport AccurateSolve::solve(ConstMatrixView b, MatrixView x, double tolerance,
                                  Matrix& residual, krylov::Trail* trail) const {
  auto report = system_.solve(b, x, tolerance, solve_observer(progress_), &residual, trail);
  if (report.stop == StopReason::interrupted)
    throw Interrupted(
        fmt::format("interrupted after {} iterations of the solve", report.iterations));
  return report;
}

void AccurateSolve::solve_trend() {
  const double tolerance = std::min(choice_.tolerance, kBasisTolerance);
  const auto trend =
      solve(basis_, out_.solution.rightCols(basis_.cols()), tolerance, trend_residual_, nullptr);
  // 1e-10 may be out of reach; what the user asked for may not be.
  if (trend.relative_residual > choice_.tolerance) out_.report.stop = trend.stop;
  out_.report.matvecs += trend.matvecs;
  out_.report.seconds += trend.seconds;
}

// |D^-1/2 r| for which the bound is what was asked for; infinite when nothing was.
double AccurateSolve::wanted() const {
  const double bound = kShareOfResidual * accuracy_ * target_sd(data_);
  if (!(bound > 0)) return HUGE_VAL;
  const Vector prior_sd = problem_.kernel.diagonal(data_.x).cwiseSqrt();
  if (basis_.cols() == 0) return bound / prior_sd.maxCoeff();
  const Matrix m = basis_.transpose() * out_.solution.rightCols(basis_.cols());
  const Matrix columns = (0.5 * (m + m.transpose())).ldlt().solve(basis_.transpose());
  const Vector trend_sd =
      basis_.transpose().cwiseProduct(columns).colwise().sum().cwiseMax(0.0).cwiseSqrt();
  const double goal = bound / (2 * prior_sd + trend_sd).maxCoeff();
  return goal > 0 ? goal : HUGE_VAL;  // a trend that is not determined is refused later
}

std::string reason_of(StopReason stop, const SystemChoice& choice) {
  switch (stop) {
    case StopReason::iteration_limit:
      return fmt::format("the limit of {} (`max_iterations`) was reached",
                         plural(choice.max_iterations, "iteration"));
    case StopReason::random_stop:
      return fmt::format(
          "{} stops by a draw; its solutions are right on average, not each by itself",
          choice.solver);
    default:
      return choice.direct() ? "rounding of the residual allows no better"
                             : "the residual falls no further: rounding, or too weak a "
                               "preconditioner";
  }
}

// With a noise of its own in each row, how |D^-1/2 r| follows |r| is known only at the end.
void AccurateSolve::continue_while_it_pays(double tolerance, krylov::Trail& trail) {
  auto& report = out_.report;
  for (int more = 0; more <= kMostContinuations; ++more) {
    const double reached = weighted(residual_.col(0));
    out_.energy = reached;
    if (reached <= goal_) return;
    if (report.relative_residual > tolerance || more == kMostContinuations) break;
    if (report.stop == StopReason::random_stop) break;  // to go on from it would be biased
    tolerance = std::max(kLeastResidual, 0.5 * report.relative_residual * goal_ / reached);
    auto next = solve(data_.y, out_.solution.leftCols(1), tolerance, residual_, &trail);
    report.relative_residual = next.relative_residual;
    report.residual_norms = next.residual_norms;
    report.iterations += next.iterations;
    report.inner_iterations += next.inner_iterations;
    report.matvecs += next.matvecs;
    report.seconds += next.seconds;
    report.stop = next.stop;
    report.fell_back_to_double = report.fell_back_to_double || next.fell_back_to_double;
    for (Index i = 0; i < next.residuals.rows(); ++i)
      report.residuals.append(Vector::Constant(1, next.residuals(i, 0)));
  }
  out_.missed = reason_of(report.stop, choice_);
}

void AccurateSolve::solve_target() {
  const double size = data_.y.col(0).norm();
  double tolerance = choice_.tolerance;
  if (std::isfinite(goal_) && size > 0)
    tolerance = std::clamp(goal_ * std::sqrt(noise_.harmonic_mean()) / size, kLeastResidual,
                           choice_.tolerance);
  krylov::Trail trail;
  const auto trend = out_.report;
  out_.report = solve(data_.y, out_.solution.leftCols(1), tolerance, residual_, &trail);
  out_.report.matvecs += trend.matvecs;
  out_.report.seconds += trend.seconds;
  if (system_.factor() != nullptr)
    refine_factored();
  else
    continue_while_it_pays(tolerance, trail);
  if (out_.report.relative_residual <= choice_.tolerance &&
      out_.report.stop != StopReason::random_stop)
    out_.report.stop = StopReason::converged;
  if (trend.stop != StopReason::converged) out_.report.stop = trend.stop;
  if (system_.factor() != nullptr) return;
  // The error falls as the residual does, so what is missing is about the last change times the
  // factor by which the residual fell in it.
  const auto* earlier = trail.before(residual_.norm());
  out_.missing = out_.solution.col(0);
  double ratio = size > 0 ? residual_.norm() / size : 0;
  if (earlier != nullptr) {
    out_.missing -= earlier->x;
    ratio = residual_.norm() / earlier->residual;
  }
  out_.missing *= ratio;
}

// With a factor L L' of H, or of H with jitter: refinement where the accuracy needs it, and L^-1 R.
void AccurateSolve::refine_factored() {
  const auto& factor = *system_.factor();
  out_.whitening_error = std::sqrt(1 + system_.jitter() / noise_.least() +
                                   factor_rounding(problem_.kernel, noise_, data_.x));
  const auto energy = [&](const Matrix& r) {
    Matrix v = r;
    factor.solve_lower_in_place(v);
    return std::min(out_.whitening_error * v.norm(), weighted(r.col(0)));
  };
  // From here on it is the residual of H as given.
  residual_ += system_.jitter() * out_.solution.leftCols(1);
  double reached = energy(residual_);
  for (int i = 0; reached > goal_ && i < kMostRefinements; ++i) {
    Matrix next = residual_;
    factor.solve_in_place(next);
    next += out_.solution.leftCols(1);
    const Matrix r = true_residual(problem_.kernel, noise_, data_.x, data_.y, next);
    ++out_.report.matvecs;
    const double now = energy(r);
    if (!(now < 0.5 * reached)) break;
    out_.solution.leftCols(1) = next;
    residual_ = r;
    reached = now;
  }
  if (reached > goal_)
    out_.missed = system_.jitter() > 0 ? "jitter had to be added to the noise to factor H"
                                       : reason_of(StopReason::stagnation, choice_);
  out_.energy = reached;
  Matrix missing = residual_;
  factor.solve_in_place(missing);
  out_.missing = missing.col(0);
  out_.whitened_residual.resize(data_.size(), 1 + basis_.cols());
  out_.whitened_residual.leftCols(1) = residual_;
  if (basis_.cols() > 0)
    out_.whitened_residual.rightCols(basis_.cols()) =
        trend_residual_ + system_.jitter() * out_.solution.rightCols(basis_.cols());
  factor.solve_lower_in_place(out_.whitened_residual);
}

SolvedSystem AccurateSolve::run(const Matrix& start) {
  out_.solution = Matrix::Zero(data_.size(), 1 + basis_.cols());
  if (start.rows() == out_.solution.rows() && start.cols() == out_.solution.cols())
    out_.solution = start;
  if (basis_.cols() > 0) solve_trend();
  goal_ = wanted();
  solve_target();
  out_.noise = system_.noise();
  out_.jitter = system_.jitter();
  if (const auto* factor = system_.factor()) out_.log_det = factor->log_det();
  out_.build_seconds = system_.build_seconds();
  out_.preconditioner = system_.preconditioner_report();
  return std::move(out_);
}

}  // namespace

double target_sd(const Observations& data) {
  const auto y = data.target();
  return std::sqrt((y.array() - y.mean()).square().mean());
}

SolvedSystem solve_system(const Problem& problem, const Observations& data, ConstMatrixView basis,
                          const SystemChoice& choice, double accuracy,
                          const ProgressCallback& progress, const Matrix& start) {
  if (progress && progress({"solve", -1, "building " + choice.solver}) == Action::stop)
    throw Interrupted("interrupted before the solve");
  return AccurateSolve(problem, data, basis, choice, accuracy, progress).run(start);
}

}  // namespace mercer::inference
