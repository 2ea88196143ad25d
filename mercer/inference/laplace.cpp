#include "mercer/inference/laplace.hpp"

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"

namespace mercer::inference {
namespace {

constexpr double kArmijo = 1e-4;
constexpr int kMostHalvings = 40;
// Changes of psi below this share of it are rounding.
constexpr double kRounding = 1e-12;
// There, so many steps whose residual is no smaller than this share of the least before are enough.
constexpr double kNoProgress = 0.9;
constexpr int kMostIdle = 4;
// A direction that had to be halved more often than this came from too loose a solve.
constexpr int kManyHalvings = 2;
constexpr double kTighter = 1e-2, kTightest = 1e-12, kSlow = 0.3;

// Everything that depends on f, column by column.
struct Local {
  Vector log_density;  // C
  Matrix g, w;
  Matrix step_w;  // what Newton's method goes by: the observed curvature, where it is positive
};

Local evaluate(const Problem& problem, const LaplaceData& data, const Matrix& f) {
  const Index n = f.rows(), c = f.cols();
  Local out{Vector::Zero(c), Matrix(n, c), Matrix(n, c), Matrix(n, c)};
  for (Index j = 0; j < c; ++j)
    for (Index i = 0; i < n; ++i) {
      const auto p = problem.likelihood->log_density(data.y(i, j), f(i, j));
      out.log_density(j) += p.value;
      out.g(i, j) = p.first;
      out.w(i, j) = problem.likelihood->curvature(data.y(i, j), f(i, j)).value;
      out.step_w(i, j) = std::max(-p.second, 0.0);
    }
  return out;
}

double log_density(const Problem& problem, const LaplaceData& data, Index j, ConstVectorView f) {
  double sum = 0;
  for (Index i = 0; i < f.size(); ++i)
    sum += problem.likelihood->log_density(data.y(i, j), f(i)).value;
  return sum;
}

Vector column_dots(const Matrix& a, const Matrix& b) {
  return (a.array() * b.array()).colwise().sum();
}

class Newton {
 public:
  Newton(const Problem& problem, const LaplaceData& data, LaplaceSystem& system,
         const NewtonOptions& options)
      : problem_(problem),
        data_(data),
        system_(system),
        options_(options),
        solve_tolerance_(options.solve_tolerance) {}

  LaplaceMode run(LaplaceMode start, const Observer& observer);

 private:
  void begin(LaplaceMode start, const Observer& observer);
  void stand_at(Matrix a, Matrix ka);
  void step_from(const Matrix& f, const Observer& observer);
  SystemReport solve(const Matrix& w, const Matrix& v, const Observer& observer);
  /// r = g - a, K r, and the bound; true when it is small enough.
  bool measure();
  SystemReport find_direction(const Observer& observer);
  void finish(bool done);
  /// a and f of function j move along its direction as far as psi rises; false: not at all.
  bool move(Index j);

  const Problem& problem_;
  const LaplaceData& data_;
  LaplaceSystem& system_;
  const NewtonOptions& options_;
  double solve_tolerance_;  // tightened where directions turn out poor
  Matrix ka_;               // K a
  Local local_;
  Matrix r_, kr_, d_, kd_, b_, s_;
  Vector psi_;
  double root_prior_ = 1;
  LaplaceMode mode_;
};

void Newton::stand_at(Matrix a, Matrix ka) {
  mode_.a = std::move(a);
  ka_ = std::move(ka);
  mode_.f = ka_.rowwise() + data_.offset.transpose();
  local_ = evaluate(problem_, data_, mode_.f);
  psi_ = local_.log_density - 0.5 * column_dots(mode_.a, ka_);
}

void Newton::begin(LaplaceMode start, const Observer& observer) {
  const Index n = data_.size(), c = data_.functions();
  root_prior_ = std::sqrt(problem_.kernel.diagonal(data_.x).maxCoeff());
  kr_.resize(n, c);
  kd_.resize(n, c);
  stand_at(Matrix::Zero(n, c), Matrix::Zero(n, c));
  if (start.a.size() == 0) return;
  const Matrix cold_psi = psi_;
  Matrix ka(n, c);
  system_.multiply(start.a, ka);
  stand_at(start.a, ka);
  if (start.f.size() > 0) step_from(start.f, observer);
  // A warm start that is worse than none is none.
  for (Index j = 0; j < c; ++j)
    if (!(psi_(j) >= cold_psi(j))) {
      mode_.a.col(j).setZero();
      ka_.col(j).setZero();
    }
  stand_at(std::move(mode_.a), std::move(ka_));
}

// f of another kernel's mode is a better place to begin than its a, though it is not K a: with
// delta = f - offset - K a and r = g(f) - a, Newton's step from f is to
//   a + r + S B^-1 S (delta - K r).
void Newton::step_from(const Matrix& f, const Observer& observer) {
  const auto there = evaluate(problem_, data_, f);
  r_ = there.g - mode_.a;
  system_.multiply(r_, kr_);
  const Matrix delta = (f - ka_).rowwise() - data_.offset.transpose();
  const auto report = solve(there.step_w, delta - kr_, observer);
  mode_.iterations += report.iterations;
  if (report.stop == StopReason::interrupted) return;
  ++mode_.steps;
  d_ = r_ + there.step_w.cwiseSqrt().cwiseProduct(s_);
  system_.multiply(d_, kd_);
  const Matrix a = mode_.a, ka = ka_;
  const Vector psi = psi_;
  stand_at(a + d_, ka + kd_);
  for (Index j = 0; j < a.cols(); ++j)
    if (!(psi_(j) >= psi(j))) {
      mode_.a.col(j) = a.col(j);
      ka_.col(j) = ka.col(j);
      psi_(j) = psi(j);
    }
}

bool Newton::measure() {
  r_ = local_.g - mode_.a;
  system_.multiply(r_, kr_);
  // r'K r is not negative but for rounding, whose size its own then is.
  mode_.residual = column_dots(r_, kr_).cwiseAbs().cwiseSqrt();
  return mode_.residual.allFinite() &&
         root_prior_ * mode_.residual.maxCoeff() <= options_.tolerance;
}

// s_ = B^-1 S v, with the curvature w.
SystemReport Newton::solve(const Matrix& w, const Matrix& v, const Observer& observer) {
  const Index n = data_.size(), c = data_.functions();
  system_.set_curvature(w);
  b_ = w.cwiseSqrt().cwiseProduct(v);
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
  d_ = r_ - local_.step_w.cwiseSqrt().cwiseProduct(s_);
  system_.multiply(d_, kd_);
  return report;
}

bool Newton::move(Index j) {
  const double slope = r_.col(j).dot(kd_.col(j));
  if (!(slope > 0)) return false;
  const double quadratic = mode_.a.col(j).dot(ka_.col(j));
  const double cross = mode_.a.col(j).dot(kd_.col(j));
  const double square = d_.col(j).dot(kd_.col(j));
  double t = 1;
  for (int halving = 0; halving <= kMostHalvings; ++halving, t *= 0.5) {
    const double psi = log_density(problem_, data_, j, mode_.f.col(j) + t * kd_.col(j)) -
                       0.5 * (quadratic + t * (2 * cross + t * square));
    // Close to the mode psi is flat to rounding, and the whole step is a good one.
    if (psi >= psi_(j) + kArmijo * t * slope - kRounding * (1 + std::abs(psi_(j)))) {
      mode_.a.col(j) += t * d_.col(j);
      ka_.col(j) += t * kd_.col(j);
      mode_.f.col(j) = ka_.col(j).array() + data_.offset(j);
      return true;
    }
    ++mode_.halvings;
  }
  return false;
}

void Newton::finish(bool done) {
  // What is reported is that of a itself, not of sums of steps.
  if (mode_.steps > 0 && mode_.stop != StopReason::interrupted) {
    system_.multiply(mode_.a, ka_);
    mode_.f = ka_.rowwise() + data_.offset.transpose();
    local_ = evaluate(problem_, data_, mode_.f);
    done = measure();
  }
  if (done && mode_.stop != StopReason::interrupted) mode_.stop = StopReason::converged;
  // Sums of steps had converged, a itself is as good as rounding allows.
  if (!done && mode_.stop == StopReason::iteration_limit && mode_.steps < options_.max_steps)
    mode_.stop = StopReason::stagnation;
  mode_.w = local_.w;
  mode_.log_density = local_.log_density.sum();
  mode_.quadratic = column_dots(mode_.a, ka_).sum();
  system_.set_curvature(mode_.w);
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
    bool moved = false;
    const int halvings = mode_.halvings;
    for (Index j = 0; j < data_.functions(); ++j) moved = move(j) || moved;
    // d = r - S B^-1 S K r cancels where S K S is large: the solve must then be better.
    const bool poor = !moved || mode_.halvings - halvings > kManyHalvings * data_.functions();
    const bool could_be_better = solve_tolerance_ > kTightest;
    if (poor) solve_tolerance_ = std::max(kTighter * solve_tolerance_, kTightest);
    if (!moved && could_be_better) continue;
    local_ = evaluate(problem_, data_, mode_.f);
    psi_ = local_.log_density - 0.5 * column_dots(mode_.a, ka_);
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

LaplaceData LaplaceData::rows(std::span<const Index> which) const {
  LaplaceData out{Matrix(static_cast<Index>(which.size()), x.cols()),
                  Matrix(static_cast<Index>(which.size()), y.cols()), offset};
  for (std::size_t i = 0; i < which.size(); ++i) {
    out.x.row(static_cast<Index>(i)) = x.row(which[i]);
    out.y.row(static_cast<Index>(i)) = y.row(which[i]);
  }
  return out;
}

LaplaceMode find_mode(const Problem& problem, const LaplaceData& data, LaplaceSystem& system,
                      LaplaceMode start, const NewtonOptions& options, const Observer& observer) {
  if (data.y.rows() != data.x.rows())
    throw DimensionMismatch("laplace: rows of y", data.y.rows(), "points", data.x.rows());
  if (data.offset.size() != data.y.cols())
    throw DimensionMismatch("laplace: offsets", data.offset.size(), "functions", data.y.cols());
  return Newton(problem, data, system, options).run(std::move(start), observer);
}

ModeSlopes mode_slopes(const Problem& problem, const LaplaceData& data, const LaplaceMode& mode) {
  const Index n = data.size(), c = data.functions();
  ModeSlopes out{Matrix(n, c), Matrix(n, c)};
  for (Index j = 0; j < c; ++j)
    for (Index i = 0; i < n; ++i) {
      out.gradient(i, j) = problem.likelihood->log_density(data.y(i, j), mode.f(i, j)).first;
      const auto curvature = problem.likelihood->curvature(data.y(i, j), mode.f(i, j));
      out.curvature_ratio(i, j) = curvature.value > 0 ? curvature.slope / curvature.value : 0.0;
      out.implicit = out.implicit || curvature.slope != 0;
    }
  return out;
}

Vector likelihood_gradient(const Problem& problem, const LaplaceData& data, const LaplaceMode& mode,
                           ConstMatrixView sigma_w, ConstMatrixView ks) {
  const Index count = problem.likelihood->log_parameters().size();
  Vector out = Vector::Zero(count);
  std::vector<likelihoods::ParameterSlope> slopes(static_cast<std::size_t>(count));
  if (count == 0) return out;
  for (Index j = 0; j < data.functions(); ++j)
    for (Index i = 0; i < data.size(); ++i) {
      problem.likelihood->parameter_slopes(data.y(i, j), mode.f(i, j), slopes);
      const double sigma = mode.w(i, j) > 0 ? sigma_w(i, j) / mode.w(i, j) : 0.0;
      for (Index p = 0; p < count; ++p) {
        const auto& slope = slopes[static_cast<std::size_t>(p)];
        out(p) += slope.value - 0.5 * sigma * slope.curvature + ks(i, j) * slope.first;
      }
    }
  return out;
}

}  // namespace mercer::inference
