#include "mercer/inference/laplace/laplace_gradient.hpp"

#include <algorithm>

#include "mercer/core/error.hpp"

namespace mercer::inference {
namespace {

// The probes of one estimate and their solves; columns run over functions, then probes.
struct ProbeSolves {
  Matrix r;   // N x C t
  Matrix q;   // Q r
  Matrix kq;  // K q
};

// A weighted mean over the probes of every function: column c of the result is
// sum over s of weight(s) m(:, c + C s).
template <class Derived>
Matrix over_probes(const Eigen::MatrixBase<Derived>& m, Index functions, const Vector& weight) {
  Matrix out = Matrix::Zero(m.rows(), functions);
  for (Index s = 0; s < weight.size(); ++s)
    out += weight(s) * m.middleCols(s * functions, functions);
  return out;
}

class Estimator {
 public:
  Estimator(const Problem& problem, const Observations& data, IterativeLaplaceSystem& system,
            const LaplaceMode& mode, double tolerance)
      : problem_(problem),
        data_(data),
        system_(system),
        mode_(mode),
        slopes_(mode_slopes(problem, data, mode)),
        tolerance_(tolerance) {}

  SystemReport solve_probes(Rng& rng, Index probes, Matrix& solutions, const Observer& observer);
  /// The part of the gradient that is linear in the probes, each with its weight.
  Vector from_probes(const Vector& weight, const Observer& observer, SystemReport& report);
  /// The rest: 1/2 a'dK a, and what the likelihood's parameters do directly.
  Vector exact_part() const;

 private:
  Matrix pull(const Matrix& sigma_w, const Vector& weight) const;

  const Problem& problem_;
  const Observations& data_;
  IterativeLaplaceSystem& system_;
  const LaplaceMode& mode_;
  ModeSlopes slopes_;
  double tolerance_;
  ProbeSolves probes_;
};

SystemReport Estimator::solve_probes(Rng& rng, Index probes, Matrix& solutions,
                                     const Observer& observer) {
  const Index n = data_.size(), c = data_.functions();
  probes_.r.resize(n, c * probes);
  linalg::fill_rademacher(rng, system_.k().row_space(), probes_.r);
  const Matrix b = system_.root().transposed_times(probes_.r);
  if (solutions.rows() != n * c || solutions.cols() != probes)
    solutions = Matrix::Zero(n * c, probes);
  auto report = system_.solve(Eigen::Map<const Matrix>(b.data(), n * c, probes), solutions,
                              tolerance_, observer);
  probes_.q = system_.root().times(Eigen::Map<const Matrix>(solutions.data(), n, c * probes));
  return report;
}

// u, from Sigma_jj W_j of independent functions, or from E = Sigma W of every row, for which the
// probes give the mean of (K q) r'.
Matrix Estimator::pull(const Matrix& sigma_w, const Vector& weight) const {
  if (problem_.likelihood->coupled() == nullptr)
    return -0.5 * slopes_.curvature_ratio.cwiseProduct(sigma_w);
  const Index c = data_.functions();
  return coupled_slopes(problem_, mode_, [&](Index row, Matrix& e) {
    e.setZero();
    for (Index s = 0; s < weight.size(); ++s)
      e += weight(s) * probes_.kq.row(row).segment(s * c, c).transpose() *
           probes_.r.row(row).segment(s * c, c);
  });
}

Vector Estimator::from_probes(const Vector& weight, const Observer& observer,
                              SystemReport& report) {
  const Index n = data_.size(), c = data_.functions(), t = weight.size();
  const Index p = problem_.kernel.num_parameters();
  // -1/2 tr(Q dK), and K q on the way.
  Matrix u = probes_.r;
  for (Index s = 0; s < t; ++s) u.middleCols(s * c, c) *= -0.5 * weight(s);
  probes_.kq.resize(n, c * t);
  Vector gradient(p);
  system_.k().apply_with_gradient(u, probes_.q, probes_.kq, gradient);

  const Matrix sigma_w = over_probes(probes_.kq.cwiseProduct(probes_.r), c, weight);
  Matrix ks = Matrix::Zero(n, c);
  if (slopes_.implicit) {
    u = pull(sigma_w, weight);
    Matrix ku(n, c);
    system_.multiply(u, ku);
    const Matrix b = system_.root().transposed_times(ku);
    Matrix v = Matrix::Zero(n * c, 1);
    report = system_.solve(Eigen::Map<const Matrix>(b.data(), n * c, 1), v, tolerance_, observer);
    Matrix s = u - system_.root().times(Eigen::Map<const Matrix>(v.data(), n, c));
    TrendPart trend(problem_, data_, mode_);
    for (Index j = 0; j < c; ++j) trend.project(j, s.col(j));
    Vector implicit(p);
    // The kernel is symmetric, so g may be the left factor: K s comes with it.
    system_.k().apply_with_gradient(slopes_.gradient, s, ks, implicit);
    for (Index j = 0; j < c; ++j) trend.add_to(j, ks.col(j));
    gradient += implicit;
  }
  // Of the likelihood's parameters: all but sum d log p, which no probe has a part in.
  const Vector all = likelihood_gradient(problem_, data_, mode_, sigma_w, ks);
  const Matrix none = Matrix::Zero(n, c);
  Vector out(p + all.size());
  out.head(p) = gradient;
  out.tail(all.size()) = all - likelihood_gradient(problem_, data_, mode_, none, none);
  return out;
}

Vector Estimator::exact_part() const {
  const Index n = data_.size(), c = data_.functions(), p = problem_.kernel.num_parameters();
  const Matrix none = Matrix::Zero(n, c);
  const Vector own = likelihood_gradient(problem_, data_, mode_, none, none);
  Vector out(p + own.size());
  Matrix ka(n, c);
  Vector gradient(p);
  const Matrix half = 0.5 * mode_.a;
  system_.k().apply_with_gradient(half, mode_.a, ka, gradient);
  out.head(p) = gradient;
  out.tail(own.size()) = own;
  return out;
}

}  // namespace

LaplaceGradient::LaplaceGradient(const Observations& data, LaplaceEstimatorOptions options)
    : data_(data), options_(std::move(options)) {
  validate(options_);
}
LaplaceGradient::~LaplaceGradient() = default;

void LaplaceGradient::use_probes(std::uint64_t number) {
  if (state_.probes == number) return;
  state_.probes = number;
  state_.solutions.resize(0, 0);
}

LaplaceEstimate LaplaceGradient::estimate(const Problem& problem, double tolerance, bool with_error,
                                          const Observer& observer) {
  LaplaceEstimate out;
  IterativeLaplaceSystem system(problem.kernel, data_.x, options_.system);
  NewtonOptions newton;
  newton.tolerance = tolerance;
  newton.solve_tolerance = std::min(0.5, std::max(tolerance, 1e-3));
  newton.basis_tolerance = std::min(0.1 * newton.solve_tolerance, tolerance);
  LaplaceMode start;
  start.a = state_.mode;
  start.f = state_.latent;
  out.mode = find_mode(problem, data_, system, std::move(start), newton, observer);
  out.stop = out.mode.stop;
  if (out.stop == StopReason::interrupted) return out;

  const Index t = options_.probes;
  Estimator estimator(problem, data_, system, out.mode, tolerance);
  const auto stream = options_.fresh ? static_cast<std::uint64_t>(state_.estimates) : state_.probes;
  Rng rng(options_.seed, "laplace probes", stream);
  // The same probes are warm starts of each other; new ones are not.
  Matrix solutions = options_.fresh ? Matrix() : state_.solutions;
  auto report = estimator.solve_probes(rng, t, solutions, observer);
  const auto note = [&](const SystemReport& r) {
    out.iterations = std::max(out.iterations, r.iterations);
    out.relative_residual = std::max(out.relative_residual, r.relative_residual);
    if (r.stop != StopReason::converged) out.stop = r.stop;
  };
  note(report);
  if (out.stop == StopReason::interrupted) return out;

  const double share = 1 / static_cast<double>(t);
  SystemReport adjoint;
  Vector gradient = estimator.from_probes(Vector::Constant(t, share), observer, adjoint);
  note(adjoint);
  if (out.stop == StopReason::interrupted) return out;
  gradient += estimator.exact_part();
  if (with_error && t > 1) {
    // Half of the probes against the other half: the mean is zero, the variance that of the mean.
    Vector signs(t);
    for (Index s = 0; s < t; ++s) signs(s) = s % 2 == 0 ? share : -share;
    if (t % 2 == 1) signs(t - 1) = 0;
    out.standard_error = estimator.from_probes(signs, observer, adjoint).cwiseAbs();
    note(adjoint);
    if (out.stop == StopReason::interrupted) return out;
  }
  out.gradient = std::move(gradient);
  out.matvecs = system.products();
  state_.mode = out.mode.a;
  state_.latent = out.mode.f;
  state_.solutions = std::move(solutions);
  ++state_.estimates;
  return out;
}

}  // namespace mercer::inference
