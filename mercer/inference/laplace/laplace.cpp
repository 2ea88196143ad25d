#include "mercer/inference/laplace/laplace.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/likelihoods/coupled_likelihood.hpp"

namespace mercer::inference {
namespace {

constexpr double kArmijo = 1e-4;
constexpr int kMostHalvings = 40;
constexpr double kLongestStep = 64;
// Changes of psi below this share of it are rounding.
constexpr double kRounding = 1e-12;
// There, so many steps whose residual is no smaller than this share of the least before are enough.
constexpr double kNoProgress = 0.9;
constexpr int kMostIdle = 4;
// A direction that had to be halved more often than this came from too loose a solve.
constexpr int kManyHalvings = 2;
constexpr double kTighter = 1e-2, kTightest = 1e-12, kSlow = 0.3;

// The inverse of a small symmetric matrix, whatever the units of its rows.
Matrix inverse_of(const Matrix& m) {
  const Matrix even = 0.5 * (m + m.transpose());
  const Vector scale = even.diagonal().cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
  const Matrix scaled = scale.asDiagonal() * even * scale.asDiagonal();
  return scale.asDiagonal() * scaled.ldlt().solve(Matrix::Identity(m.rows(), m.cols())) *
         scale.asDiagonal();
}

class Newton {
 public:
  Newton(const Problem& problem, const Observations& data, LaplaceSystem& system,
         const NewtonOptions& options)
      : problem_(problem),
        data_(data),
        system_(system),
        options_(options),
        groups_(*problem.likelihood, data.functions()),
        solve_tolerance_(options.solve_tolerance),
        basis_(problem.basis(data.x)) {}

  LaplaceMode run(LaplaceMode start, const Observer& observer);

 private:
  void begin(LaplaceMode start, const Observer& observer);
  void stand_at(Matrix a, Matrix ka, Matrix beta);
  // K a + A beta + offset.
  Matrix latent() const;
  // Q A and M of the curvature that was set last.
  SystemReport solve_trend(const Matrix& w, double tolerance, const Observer& observer);
  // t = M^-1 A'(a + d), and d becomes d - Q A t. Returns t.
  Matrix add_trend();
  void finish_trend();
  void step_from(const Matrix& f, const Observer& observer);
  SystemReport solve(const Matrix& w, const Matrix& v, const Observer& observer);
  /// r = g - a, K r, and the bound; true when it is small enough.
  bool measure();
  double trend_error();
  SystemReport find_direction(const Observer& observer);
  /// r'(K^-1 + W)^-1 r of group j, r the slope of psi: that of the last direction.
  double squared_decrement(Index j) const {
    return groups_.dot(r_, basis_.cols() > 0 ? fd_ : kd_, j);
  }
  bool stands_at_the_mode();
  void finish(bool done);
  void estimate_missing();
  /// a and f of group j move along their direction as far as psi rises; false: not at all.
  bool move(Index j);
  void take_step(Index j, double t);
  class Line;

  const Problem& problem_;
  const Observations& data_;
  LaplaceSystem& system_;
  const NewtonOptions& options_;
  FunctionGroups groups_;
  double solve_tolerance_;  // tightened where directions turn out poor
  Matrix basis_;            // A, N x q
  Matrix trend_solves_;     // Q A of every function, N x q C
  Matrix trend_products_;   // M = A'Q A of every function, q x q C
  Matrix beta_step_;        // q x C
  Matrix fd_;               // the step of f: K d + A beta_step
  Matrix ka_;               // K a
  LocalLikelihood local_;
  Matrix r_, kr_, d_, kd_, b_, s_;
  Vector before_;           // residual of every function before the last step
  bool d_is_next_ = false;  // d_ is the direction at mode_.a, not the one that led to it
  Vector psi_;
  double root_prior_ = 1;
  LaplaceMode mode_;
};

Matrix Newton::latent() const {
  Matrix f = ka_.rowwise() + data_.offset.transpose();
  if (basis_.cols() > 0) f += basis_ * mode_.beta;
  return f;
}

void Newton::stand_at(Matrix a, Matrix ka, Matrix beta) {
  mode_.a = std::move(a);
  mode_.beta = std::move(beta);
  ka_ = std::move(ka);
  mode_.f = latent();
  local_ = likelihood_at(*problem_.likelihood, data_, mode_.f);
  psi_ = local_.log_density - 0.5 * groups_.dots(mode_.a, ka_);
}

void Newton::begin(LaplaceMode start, const Observer& observer) {
  const Index n = data_.size(), c = data_.functions();
  root_prior_ = std::sqrt(problem_.kernel.diagonal(data_.x).maxCoeff());
  kr_.resize(n, c);
  kd_.resize(n, c);
  const Matrix no_trend = Matrix::Zero(basis_.cols(), c);
  stand_at(Matrix::Zero(n, c), Matrix::Zero(n, c), no_trend);
  if (start.a.size() == 0) return;
  const Matrix cold_psi = psi_;
  Matrix ka(n, c);
  system_.multiply(start.a, ka);
  const bool same_trend = start.beta.rows() == no_trend.rows() && start.beta.cols() == c;
  stand_at(start.a, ka, same_trend ? start.beta : no_trend);
  if (start.f.size() > 0) step_from(start.f, observer);
  // A warm start that is worse than none is none.
  for (Index j = 0; j < groups_.count; ++j)
    if (!(psi_(j) >= cold_psi(j))) {
      groups_.of(mode_.a, j).setZero();
      groups_.of(ka_, j).setZero();
      groups_.of(mode_.beta, j).setZero();
    }
  stand_at(std::move(mode_.a), std::move(ka_), std::move(mode_.beta));
}

// f of another kernel's mode is a better place to begin than its a, though it is not K a: with
// delta = f - offset - K a and r = g(f) - a, Newton's step from f is to
//   a + r + R B^-1 R'(delta - K r).
void Newton::step_from(const Matrix& f, const Observer& observer) {
  const auto there = likelihood_at(*problem_.likelihood, data_, f);
  r_ = there.g - mode_.a;
  system_.multiply(r_, kr_);
  const Matrix delta = (f - ka_).rowwise() - data_.offset.transpose();
  const auto report = solve(there.step_w, delta - kr_, observer);
  mode_.iterations += report.iterations;
  if (report.stop == StopReason::interrupted) return;
  ++mode_.steps;
  d_ = r_ + system_.root().times(s_);
  const Matrix a = mode_.a, ka = ka_, beta = mode_.beta;
  Matrix next_beta = beta;
  if (basis_.cols() > 0) {
    const auto trend = solve_trend(there.step_w, solve_tolerance_, observer);
    if (trend.stop == StopReason::interrupted) return;
    next_beta = add_trend();
  }
  system_.multiply(d_, kd_);
  const Vector psi = psi_;
  stand_at(a + d_, ka + kd_, std::move(next_beta));
  for (Index j = 0; j < groups_.count; ++j)
    if (!(psi_(j) >= psi(j))) {
      groups_.of(mode_.a, j) = groups_.of(a, j);
      groups_.of(ka_, j) = groups_.of(ka, j);
      groups_.of(mode_.beta, j) = groups_.of(beta, j);
      psi_(j) = psi(j);
    }
}

bool Newton::measure() {
  r_ = local_.g - mode_.a;
  system_.multiply(r_, kr_);
  // r'K r >= 0 in exact arithmetic; a negative value is rounding error of that magnitude.
  // The error of one of several coupled functions is bounded by the residual of all of them.
  mode_.residual = groups_.dots(r_, kr_).cwiseAbs().cwiseSqrt().replicate(groups_.width, 1);
  const bool small =
      mode_.residual.allFinite() && root_prior_ * mode_.residual.maxCoeff() <= options_.tolerance;
  if (basis_.cols() == 0) return small;
  return small && trend_error() <= options_.tolerance;
}

// How far the trend at the points is from that of the best beta, to first order: |a_i'M^-1 A'g|
// with M of the last step; infinite before the first.
double Newton::trend_error() {
  const Index q = basis_.cols(), c = data_.functions();
  if (trend_products_.size() == 0) return HUGE_VAL;
  double largest = 0;
  mode_.trend_defect = 0;
  for (Index j = 0; j < c; ++j) {
    const Vector slope = basis_.transpose() * local_.g.col(j);
    const Vector step = trend_products_.middleCols(j * q, q).partialPivLu().solve(slope);
    largest = std::max(largest, (basis_ * step).cwiseAbs().maxCoeff());
    mode_.trend_defect = std::max(mode_.trend_defect, std::sqrt(std::abs(slope.dot(step))));
  }
  return std::isfinite(largest) ? largest : HUGE_VAL;
}

SystemReport Newton::solve_trend(const Matrix& w, double tolerance, const Observer& observer) {
  const Index n = data_.size(), c = data_.functions(), q = basis_.cols();
  const Matrix root = w.cwiseSqrt();
  Matrix b(n * c, q), x = Matrix::Zero(n * c, q);
  for (Index j = 0; j < c; ++j) b.middleRows(j * n, n) = root.col(j).asDiagonal() * basis_;
  auto report = system_.solve(b, x, tolerance, observer);
  mode_.iterations += report.iterations;
  trend_solves_.resize(n, q * c);
  trend_products_.resize(q, q * c);
  for (Index j = 0; j < c; ++j) {
    trend_solves_.middleCols(j * q, q) = root.col(j).asDiagonal() * x.middleRows(j * n, n);
    trend_products_.middleCols(j * q, q) = basis_.transpose() * trend_solves_.middleCols(j * q, q);
  }
  return report;
}

Matrix Newton::add_trend() {
  const Index q = basis_.cols();
  Matrix t(q, d_.cols());
  for (Index j = 0; j < d_.cols(); ++j) {
    const Vector pull = basis_.transpose() * (mode_.a.col(j) + d_.col(j));
    t.col(j) = trend_products_.middleCols(j * q, q).partialPivLu().solve(pull);
    d_.col(j) -= trend_solves_.middleCols(j * q, q) * t.col(j);
  }
  return t;
}

// Q A, M^-1 and the residual of these solves, at the mode.
void Newton::finish_trend() {
  const Index n = data_.size(), c = data_.functions(), q = basis_.cols();
  solve_trend(mode_.w, options_.basis_tolerance, {});
  mode_.basis_solves = trend_solves_;
  mode_.beta_covariance.resize(q, q * c);
  Matrix k_solves(n, q * c);
  system_.multiply(trend_solves_, k_solves);
  mode_.trend_residual = 0;
  for (Index j = 0; j < c; ++j) {
    const Matrix covariance = inverse_of(trend_products_.middleCols(j * q, q));
    mode_.beta_covariance.middleCols(j * q, q) = covariance;
    // D^-1/2 E = S A - S K Q A - S^-1 Q A; where W is zero, so is the row of Q A, and of the last
    // term.
    const Vector root = mode_.w.col(j).cwiseSqrt();
    const Vector inverse = (root.array() > 0).select(root.cwiseInverse(), 0.0);
    const Matrix e = root.asDiagonal() * (basis_ - k_solves.middleCols(j * q, q)) -
                     inverse.asDiagonal() * trend_solves_.middleCols(j * q, q);
    const double squared = (e.transpose() * e).cwiseProduct(covariance).sum();
    mode_.trend_residual = std::max(mode_.trend_residual, std::sqrt(std::max(0.0, squared)));
  }
}

// s_ = B^-1 R'v, with the curvature w.
SystemReport Newton::solve(const Matrix& w, const Matrix& v, const Observer& observer) {
  const Index n = data_.size(), c = data_.functions();
  system_.set_curvature(groups_.curvature(w));
  b_ = system_.root().transposed_times(v);
  s_ = Matrix::Zero(n, c);
  const Eigen::Map<const Matrix> b(b_.data(), n * c, 1);
  Eigen::Map<Matrix> s(s_.data(), n * c, 1);
  const Observer within = [&](const Iteration& it) {
    return observer({mode_.steps + 1, it.value, it.target, it.seconds});
  };
  return system_.solve(b, s, solve_tolerance_, observer ? within : Observer());
}

SystemReport Newton::find_direction(const Observer& observer) {
  auto report = solve(local_.step_w, kr_, observer);
  d_ = r_ - system_.root().times(s_);
  if (basis_.cols() > 0 && report.stop != StopReason::interrupted) {
    const auto trend = solve_trend(local_.step_w, solve_tolerance_, observer);
    if (trend.stop == StopReason::interrupted) report.stop = trend.stop;
    beta_step_ = add_trend();
  }
  system_.multiply(d_, kd_);
  if (basis_.cols() > 0) fd_ = kd_ + basis_ * beta_step_;
  return report;
}

// psi of group j along its direction: f + t step, a + t d.
class Newton::Line {
 public:
  Line(const Newton& at, Index j)
      : at_(at),
        j_(j),
        f_(at.groups_.of(at.mode_.f, j)),
        step_(at.groups_.of(at.basis_.cols() > 0 ? at.fd_ : at.kd_, j)),
        quadratic_(at.groups_.dot(at.mode_.a, at.ka_, j)),
        cross_(at.groups_.dot(at.mode_.a, at.kd_, j)),
        square_(at.groups_.dot(at.d_, at.kd_, j)) {}

  double psi(double t) const {
    return log_density(*at_.problem_.likelihood, at_.data_, j_, f_ + t * step_) -
           0.5 * (quadratic_ + t * (2 * cross_ + t * square_));
  }
  // Of a likelihood that couples nothing.
  double slope(double t) const {
    double sum = -cross_ - t * square_;
    for (Index i = 0; i < f_.rows(); ++i)
      sum += at_.data_.weight_of(i) * step_(i, 0) *
             at_.problem_.likelihood->log_density(at_.data_.y(i, j_), f_(i, 0) + t * step_(i, 0))
                 .first;
    return sum;
  }
  // Steps that take negative curvature for zero are too short, and converge linearly. Where psi
  // still rises at the end of a whole step, go on to where a linear slope would be zero.
  double beyond_one() const {
    if (at_.problem_.likelihood->log_concave() || at_.groups_.coupled != nullptr) return 1;
    const double before = slope(0), after = slope(1);
    if (!(after > 0 && before > after)) return 1;
    const double t = std::min(before / (before - after), kLongestStep);
    return psi(t) >= psi(1) - kRounding * (1 + std::abs(psi(1))) ? t : 1;
  }

 private:
  const Newton& at_;
  Index j_;
  Matrix f_, step_;
  double quadratic_, cross_, square_;
};

void Newton::take_step(Index j, double t) {
  groups_.of(mode_.a, j) += t * groups_.of(d_, j);
  groups_.of(ka_, j) += t * groups_.of(kd_, j);
  for (Index c = j * groups_.width; c < (j + 1) * groups_.width; ++c)
    mode_.f.col(c) = ka_.col(c).array() + data_.offset(c);
  if (basis_.cols() == 0) return;
  groups_.of(mode_.beta, j) += t * groups_.of(beta_step_, j);
  groups_.of(mode_.f, j) += basis_ * groups_.of(mode_.beta, j);
}

bool Newton::move(Index j) {
  const double slope = squared_decrement(j);
  if (!(slope > 0)) return false;
  const Line line(*this, j);
  double t = 1;
  for (int halving = 0; halving <= kMostHalvings; ++halving, t *= 0.5) {
    // Close to the mode psi is flat to rounding, and the whole step is a good one.
    if (line.psi(t) >= psi_(j) + kArmijo * t * slope - kRounding * (1 + std::abs(psi_(j)))) {
      take_step(j, halving == 0 ? line.beyond_one() : t);
      return true;
    }
    ++mode_.halvings;
  }
  return false;
}

// Where K is large against W^-1, rounding of K a keeps r'K r above the tolerance at the mode
// itself. What is left of the error is then measured by the Newton decrement l: to first order
//   |f*(a) - f*(mode)| <= l sd*,  l^2 = r'(K^-1 + W)^-1 r,  sd* the posterior sd at x*,
// by the Cauchy-Schwarz inequality in the inner product of K^-1 + W.
bool Newton::stands_at_the_mode() {
  solve_tolerance_ = kTightest;
  const auto report = find_direction({});
  mode_.iterations += report.iterations;
  double largest = 0;
  for (Index j = 0; j < groups_.count; ++j)
    largest = std::max(largest, std::abs(squared_decrement(j)));
  mode_.decrement = std::sqrt(largest);
  d_is_next_ = true;
  return *mode_.decrement <= options_.tolerance;  // false for NaN
}

// The error of the mode falls as its residual does.
void Newton::estimate_missing() {
  if (before_.size() == 0 && !d_is_next_) {
    const auto report = find_direction({});
    mode_.iterations += report.iterations;
    d_is_next_ = true;
  }
  mode_.missing = d_;
  mode_.missing_beta = basis_.cols() > 0 ? beta_step_ : Matrix(0, d_.cols());
  if (d_is_next_) return;
  for (Index c = 0; c < d_.cols(); ++c) {
    const double fall = before_(c) > 0 ? std::min(1.0, mode_.residual(c) / before_(c)) : 0.0;
    mode_.missing.col(c) *= fall;
    mode_.missing_beta.col(c) *= fall;
  }
}

void Newton::finish(bool done) {
  // What is reported is that of a itself, not of sums of steps.
  if (mode_.steps > 0 && mode_.stop != StopReason::interrupted) {
    system_.multiply(mode_.a, ka_);
    mode_.f = latent();
    local_ = likelihood_at(*problem_.likelihood, data_, mode_.f);
    done = measure();
  }
  if (done && mode_.stop != StopReason::interrupted) mode_.stop = StopReason::converged;
  // Sums of steps had converged, a itself is as good as rounding allows.
  if (!done && mode_.stop == StopReason::iteration_limit && mode_.steps < options_.max_steps)
    mode_.stop = StopReason::stagnation;
  const bool could_not = mode_.stop == StopReason::stagnation ||
                         (mode_.stop == StopReason::iteration_limit && mode_.steps > 0);
  if (could_not && stands_at_the_mode()) mode_.stop = StopReason::converged;
  if (options_.with_change && mode_.stop != StopReason::interrupted) estimate_missing();
  mode_.w = local_.w;
  mode_.log_density = local_.log_density.sum();
  mode_.quadratic = groups_.dots(mode_.a, ka_).sum();
  system_.set_curvature(groups_.curvature(mode_.w));
  if (basis_.cols() > 0 && mode_.stop != StopReason::interrupted) finish_trend();
}

LaplaceMode Newton::run(LaplaceMode start, const Observer& observer) {
  const auto products = system_.products();
  begin(std::move(start), observer);
  bool done = measure();
  double least = mode_.residual.maxCoeff();
  int idle = 0;
  while (!done && mode_.steps < options_.max_steps) {
    const auto report = find_direction(observer);
    mode_.iterations += report.iterations;
    if (report.stop == StopReason::interrupted) {
      mode_.stop = report.stop;
      break;
    }
    ++mode_.steps;
    before_ = mode_.residual;
    bool moved = false;
    const int halvings = mode_.halvings;
    for (Index j = 0; j < groups_.count; ++j) moved = move(j) || moved;
    // d = r - R B^-1 R'K r cancels where R'K R is large: the solve must then be better.
    const bool poor = !moved || mode_.halvings - halvings > kManyHalvings * groups_.count;
    const bool could_be_better = solve_tolerance_ > kTightest;
    if (poor) solve_tolerance_ = std::max(kTighter * solve_tolerance_, kTightest);
    if (!moved && could_be_better) continue;
    local_ = likelihood_at(*problem_.likelihood, data_, mode_.f);
    psi_ = local_.log_density - 0.5 * groups_.dots(mode_.a, ka_);
    const double before = mode_.residual.maxCoeff();
    done = measure();
    // Whole steps that gain little are the solve's doing too.
    if (mode_.halvings == halvings && mode_.residual.maxCoeff() > kSlow * before)
      solve_tolerance_ = std::max(kTighter * solve_tolerance_, kTightest);
    const Iteration it{mode_.steps, root_prior_ * mode_.residual.maxCoeff(), options_.tolerance, 0};
    if (observer && observer(it) == Action::stop) {
      mode_.stop = StopReason::interrupted;
      break;
    }
    // Rounding: what the residual says is what there is.
    const double now = mode_.residual.maxCoeff();
    const bool flat = now * now <= kRounding * (1 + psi_.cwiseAbs().maxCoeff());
    idle = flat && now > kNoProgress * least ? idle + 1 : 0;
    least = std::min(least, now);
    if (!done && (!moved || idle == kMostIdle)) {
      mode_.stop = StopReason::stagnation;
      break;
    }
  }
  finish(done);
  mode_.matvecs = system_.products() - products;
  return std::move(mode_);
}

}  // namespace

void check_coupling(const likelihoods::Likelihood& likelihood, MeanKind mean,
                    const std::string& preconditioner) {
  if (likelihood.coupled() == nullptr) return;
  if (mean != MeanKind::zero)
    throw InvalidArgument(fmt::format(
        "`mean={}` does not go with the likelihood {}: a trend that all functions share changes no "
        "probability, so its coefficients are not determined; add 'constant' or 'linear' to the "
        "kernel instead",
        to_string(mean), likelihood.text()));
  if (preconditioner != "auto" && preconditioner != "none")
    throw InvalidArgument(
        fmt::format("`preconditioner={}` is built for K + W^-1, and the functions that the "
                    "likelihood {} couples "
                    "have no W^-1; give auto or none",
                    preconditioner, likelihood.text()));
}

LaplaceMode find_mode(const Problem& problem, const Observations& data, LaplaceSystem& system,
                      LaplaceMode start, const NewtonOptions& options, const Observer& observer) {
  if (data.y.rows() != data.x.rows())
    throw DimensionMismatch("laplace: rows of y", data.y.rows(), "points", data.x.rows());
  if (data.noise.weight.size() != 0 && data.noise.weight.size() != data.y.rows())
    throw DimensionMismatch("laplace: weights", data.noise.weight.size(), "rows", data.y.rows());
  if (data.offset.size() != data.y.cols())
    throw DimensionMismatch("laplace: offsets", data.offset.size(), "functions", data.y.cols());
  check_coupling(*problem.likelihood, problem.mean, "auto");
  return Newton(problem, data, system, options).run(std::move(start), observer);
}

}  // namespace mercer::inference
