#include "mercer/inference/laplace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/operators/tiled_operator.hpp"

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
// An exact evidence is one only near the mode: within so many times the tolerance.
constexpr double kFarFromMode = 1e3;
// A step of Newton's method takes about so many in all, for estimates.
constexpr double kUsualSteps = 8;

// Everything that depends on f, column by column.
struct Local {
  Vector log_density;  // C
  Matrix g, w;
  Matrix step_w;  // what Newton's method goes by: the observed curvature, where it is positive
};

Local evaluate(const LatentProblem& problem, const LatentData& data, const Matrix& f) {
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

double log_density(const LatentProblem& problem, const LatentData& data, Index j,
                   ConstVectorView f) {
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
  Newton(const LatentProblem& problem, const LatentData& data, LatentSystem& system,
         const NewtonOptions& options)
      : problem_(problem),
        data_(data),
        system_(system),
        options_(options),
        solve_tolerance_(options.solve_tolerance) {}

  LaplaceMode run(LaplaceMode start, const Observer& observer);

 private:
  void begin(Matrix start);
  /// r = g - a, K r, and the bound; true when it is small enough.
  bool measure();
  SystemReport find_direction(const Observer& observer);
  /// a and f of function j move along its direction as far as psi rises; false: not at all.
  bool move(Index j);

  const LatentProblem& problem_;
  const LatentData& data_;
  LatentSystem& system_;
  const NewtonOptions& options_;
  double solve_tolerance_;  // tightened where directions turn out poor
  Matrix ka_;               // K a
  Local local_;
  Matrix r_, kr_, d_, kd_, b_, s_;
  Vector psi_;
  double root_prior_ = 1;
  LaplaceMode mode_;
};

void Newton::begin(Matrix start) {
  const Index n = data_.size(), c = data_.functions();
  mode_.a = start.size() > 0 ? std::move(start) : Matrix::Zero(n, c);
  ka_ = Matrix::Zero(n, c);
  if (mode_.a.cwiseAbs().maxCoeff() > 0) system_.multiply(mode_.a, ka_);
  root_prior_ = std::sqrt(problem_.kernel.diagonal(data_.x).maxCoeff());
  kr_.resize(n, c);
  kd_.resize(n, c);
  mode_.f = ka_.rowwise() + data_.offset.transpose();
  local_ = evaluate(problem_, data_, mode_.f);
  psi_ = local_.log_density - 0.5 * column_dots(mode_.a, ka_);
  // A warm start that is worse than none is none.
  const Vector cold =
      evaluate(problem_, data_, data_.offset.transpose().replicate(n, 1)).log_density;
  for (Index j = 0; j < c; ++j)
    if (!(psi_(j) >= cold(j))) {
      mode_.a.col(j).setZero();
      ka_.col(j).setZero();
    }
  mode_.f = ka_.rowwise() + data_.offset.transpose();
  local_ = evaluate(problem_, data_, mode_.f);
  psi_ = local_.log_density - 0.5 * column_dots(mode_.a, ka_);
}

bool Newton::measure() {
  r_ = local_.g - mode_.a;
  system_.multiply(r_, kr_);
  // r'K r is not negative but for rounding, whose size its own then is.
  mode_.residual = column_dots(r_, kr_).cwiseAbs().cwiseSqrt();
  return mode_.residual.allFinite() &&
         root_prior_ * mode_.residual.maxCoeff() <= options_.tolerance;
}

SystemReport Newton::find_direction(const Observer& observer) {
  const Index n = data_.size(), c = data_.functions();
  system_.set_curvature(local_.step_w);
  const Matrix root = local_.step_w.cwiseSqrt();
  b_ = root.cwiseProduct(kr_);
  s_ = Matrix::Zero(n, c);
  const Eigen::Map<const Matrix> b(b_.data(), n * c, 1);
  Eigen::Map<Matrix> s(s_.data(), n * c, 1);
  auto report = system_.solve(b, s, solve_tolerance_, observer);
  d_ = r_ - root.cwiseProduct(s_);
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

LaplaceMode Newton::run(LaplaceMode start, const Observer& observer) {
  const auto products = system_.products();
  begin(std::move(start.a));
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
  mode_.matvecs = system_.products() - products;
  return std::move(mode_);
}

}  // namespace

Vector LatentProblem::log_parameters() const {
  const Vector own = likelihood->log_parameters();
  Vector theta(kernel.num_parameters() + own.size());
  theta << kernel.log_parameters(), own;
  return theta;
}

void LatentProblem::set_log_parameters(ConstVectorView theta) {
  const Index p = kernel.num_parameters();
  kernel.set_log_parameters(theta.head(p));
  if (theta.size() > p) likelihood->set_log_parameters(theta.tail(theta.size() - p));
}

std::vector<std::string> LatentProblem::parameter_names() const {
  auto names = kernel.parameter_names();
  for (auto& name : likelihood->parameter_names()) names.push_back(std::move(name));
  return names;
}

LatentData LatentData::rows(std::span<const Index> which) const {
  LatentData out{Matrix(static_cast<Index>(which.size()), x.cols()),
                 Matrix(static_cast<Index>(which.size()), y.cols()), offset};
  for (std::size_t i = 0; i < which.size(); ++i) {
    out.x.row(static_cast<Index>(i)) = x.row(which[i]);
    out.y.row(static_cast<Index>(i)) = y.row(which[i]);
  }
  return out;
}

LaplaceMode find_mode(const LatentProblem& problem, const LatentData& data, LatentSystem& system,
                      LaplaceMode start, const NewtonOptions& options, const Observer& observer) {
  if (data.y.rows() != data.x.rows())
    throw DimensionMismatch("laplace: rows of y", data.y.rows(), "points", data.x.rows());
  if (data.offset.size() != data.y.cols())
    throw DimensionMismatch("laplace: offsets", data.offset.size(), "functions", data.y.cols());
  return Newton(problem, data, system, options).run(std::move(start), observer);
}

ModeSlopes mode_slopes(const LatentProblem& problem, const LatentData& data,
                       const LaplaceMode& mode) {
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

Vector likelihood_gradient(const LatentProblem& problem, const LatentData& data,
                           const LaplaceMode& mode, ConstMatrixView sigma_w, ConstMatrixView ks) {
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

// With R = S B^-1 S and Sigma = (K^-1 + W)^-1, S Sigma S = I - B^-1:
//   d log q = 1/2 a'dK a - 1/2 tr(R dK) + s'dK g,  s = u - R K u,  u = -1/2 Sigma_jj dW_j.
LaplaceEvidence exact_laplace(const LatentProblem& problem, const LatentData& data,
                              bool with_gradient, const NewtonOptions& options, LaplaceMode start) {
  DenseLatentSystem system(problem.kernel, data.x);
  LaplaceEvidence out;
  out.mode = find_mode(problem, data, system, std::move(start), options);
  const double bound =
      std::sqrt(problem.kernel.diagonal(data.x).maxCoeff()) * out.mode.residual.maxCoeff();
  if (!(bound <= kFarFromMode * options.tolerance))
    throw NotPositiveDefinite(
        fmt::format("Newton's method did not find the mode: latent means may be off by {:.2g}",
                    bound),
        0);
  out.value = out.mode.psi() - 0.5 * system.log_det();
  if (!with_gradient) return out;

  const Index n = data.size(), c = data.functions();
  const auto slopes = mode_slopes(problem, data, out.mode);
  const Matrix root = out.mode.w.cwiseSqrt();
  Matrix weights = Matrix::Zero(n, n);  // of dK
  Matrix sigma_w(n, c), ks(n, c);
  for (Index j = 0; j < c; ++j) {
    Matrix inverse = system.inverse(j);
    sigma_w.col(j) = 1 - inverse.diagonal().array();
    const Vector u = -0.5 * sigma_w.col(j).cwiseProduct(slopes.curvature_ratio.col(j));
    inverse = root.col(j).asDiagonal() * inverse * root.col(j).asDiagonal();  // R
    const Vector s = u - inverse * (system.k() * u);
    ks.col(j) = system.k() * s;
    weights -= 0.5 * inverse;
    weights += 0.5 * out.mode.a.col(j) * out.mode.a.col(j).transpose();
    weights +=
        0.5 * (s * slopes.gradient.col(j).transpose() + slopes.gradient.col(j) * s.transpose());
  }
  const Index p = problem.kernel.num_parameters();
  const Vector own = likelihood_gradient(problem, data, out.mode, sigma_w, ks);
  out.gradient.resize(p + own.size());
  operators::weighted_gradient(problem.kernel, data.x, weights, out.gradient.head(p));
  out.gradient.tail(own.size()) = own;
  return out;
}

double exact_laplace_bytes(Index n, Index functions) {
  return 8.0 * static_cast<double>(n) * static_cast<double>(n) *
         (3.0 + static_cast<double>(functions));
}

double exact_laplace_flops(Index n, Index functions) {
  const auto size = static_cast<double>(n);
  return static_cast<double>(functions) * size * size * size * (kUsualSteps / 3 + 1);
}

}  // namespace mercer::inference
