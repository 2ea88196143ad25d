#include "mercer/inference/sparse/fitc_laplace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/inference/laplace/laplace.hpp"
#include "mercer/inference/sparse/reduced.hpp"
#include "mercer/inference/sparse/sparse_gradient.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/linalg/panels.hpp"

namespace mercer::inference {
namespace {

using linalg::Transpose;

// The mode is looked for to this error of the latent mean; an evidence is one up to a thousand
// times further away.
constexpr double kModeTolerance = 1e-8, kUsableMode = 1e-5;
constexpr double kUsualSteps = 8;  // of Newton's method in an evaluation, for the planner

void scale_rows_into(ConstVectorView scale, const Matrix& a, Matrix& out) {
  out.resize(a.rows(), a.cols());
  linalg::for_panels(a.rows(), [&](Index first, Index n) {
    out.middleRows(first, n) = scale.segment(first, n).asDiagonal() * a.middleRows(first, n);
  });
}

}  // namespace

FitcLaplaceSystem::FitcLaplaceSystem(const kernels::Kernel& kernel, const Matrix& x,
                                     const Matrix& base)
    : base_(kernel, base), v_(x.rows(), base.rows()), g_(x.rows()) {
  for_slices(x.rows(), [&](Index first, Index n) {
    const Matrix part = base_.whitened(x.middleRows(first, n));
    v_.middleRows(first, n) = part;
    g_.segment(first, n) = unexplained(kernel, x.middleRows(first, n), part);
  });
}

void FitcLaplaceSystem::multiply(ConstMatrixView x, MatrixView kx) const {
  Matrix at_base(v_.cols(), x.cols());
  linalg::gemm(1.0, v_, Transpose::yes, x, Transpose::no, 0.0, at_base);
  linalg::gemm(1.0, v_, Transpose::no, at_base, Transpose::no, 0.0, kx);
  kx += g_.asDiagonal() * x;
  products_ += x.cols();
}

void FitcLaplaceSystem::set_curvature(const Curvature& curvature) {
  if (curvature.coupled)
    throw InvalidArgument("fitc: functions that the likelihood couples have no diagonal W");
  CurvatureRoot root(curvature, points());
  if (root == root_ && !factors_.empty()) return;
  root_ = std::move(root);
  factors_.assign(static_cast<std::size_t>(root_.functions()), Matrix());
}

Vector FitcLaplaceSystem::delta(Index c) const {
  return 1 + root_.scale().col(c).array().square() * g_.array();
}

Vector FitcLaplaceSystem::omega(Index c) const {
  return root_.scale().col(c).cwiseAbs2().cwiseQuotient(delta(c));
}

const Matrix& FitcLaplaceSystem::factor(Index c) {
  Matrix& l = factors_[static_cast<std::size_t>(c)];
  if (l.size() > 0) return l;
  const Index m = base_.size();
  Matrix b = Matrix::Identity(m, m);
  const Vector scale = omega(c).cwiseSqrt();
  for_slices(points(), [&](Index first, Index n) {
    const Matrix part = scale.segment(first, n).asDiagonal() * v_.middleRows(first, n);
    linalg::gram(1.0, part, 1.0, b);
  });
  l = linalg::Cholesky(std::move(b)).storage();
  l.triangularView<Eigen::StrictlyUpper>().setZero();
  return l;
}

// B~^-1 = Delta^-1 - Delta^-1 S V'B^-1 V S Delta^-1.
SystemReport FitcLaplaceSystem::solve(ConstMatrixView b, MatrixView x, double /*tolerance*/,
                                      const Observer& /*observer*/) {
  const Timer timer;
  const Index n = points();
  for (Index c = 0; c < root_.functions(); ++c) {
    const Vector inverse = delta(c).cwiseInverse();
    const Vector scale = root_.scale().col(c).cwiseProduct(inverse);
    const Matrix part = b.middleRows(c * n, n);
    Matrix at_base(base_.size(), b.cols());
    linalg::gemm(1.0, v_, Transpose::yes, scale.asDiagonal() * part, Transpose::no, 0.0, at_base);
    linalg::solve_lower(factor(c), Transpose::no, at_base);
    linalg::solve_lower(factor(c), Transpose::yes, at_base);
    Matrix back(n, b.cols());
    linalg::gemm(1.0, v_, Transpose::no, at_base, Transpose::no, 0.0, back);
    x.middleRows(c * n, n) = inverse.asDiagonal() * part - scale.asDiagonal() * back;
  }
  SystemReport report;
  report.seconds = timer.seconds();
  return report;
}

LaplaceSystem::Explained FitcLaplaceSystem::explained(ConstMatrixView cross, double tolerance,
                                                      const Observer& observer) {
  const Index n = points(), count = root_.functions();
  Matrix b(n * count, cross.cols());
  for (Index c = 0; c < count; ++c)
    b.middleRows(c * n, n) = root_.scale().col(c).asDiagonal() * cross;
  Matrix x(b.rows(), b.cols());
  Explained out{Matrix::Zero(cross.cols(), count * count), Matrix::Zero(cross.cols(), count),
                solve(b, x, tolerance, observer)};
  for (Index c = 0; c < count; ++c)
    out.blocks.col(c + count * c) =
        b.middleRows(c * n, n).cwiseProduct(x.middleRows(c * n, n)).colwise().sum().transpose();
  return out;
}

Vector FitcLaplaceSystem::inverse_times(Index c, ConstVectorView z) {
  const Vector weight = omega(c);
  const Vector scaled = weight.cwiseProduct(z);
  Vector at_base = v_.transpose() * scaled;
  linalg::solve_lower(factor(c), Transpose::no, at_base);
  linalg::solve_lower(factor(c), Transpose::yes, at_base);
  return scaled - weight.cwiseProduct(v_ * at_base);
}

double FitcLaplaceSystem::log_det() {
  double sum = 0;
  for (Index c = 0; c < root_.functions(); ++c)
    sum += delta(c).array().log().sum() + 2 * factor(c).diagonal().array().log().sum();
  return sum;
}

CurvedDeterminant FitcLaplaceSystem::log_determinant(const LogDeterminantOptions& /*options*/,
                                                     const Observer& /*observer*/) {
  CurvedDeterminant out;
  out.exact = true;
  out.estimate.value = log_det();
  return out;
}

namespace {

class FitcLaplace final : public Inference {
 public:
  explicit FitcLaplace(const InferenceSetup& setup)
      : rows_(setup.rows), setup_(setup.sparse), seed_(setup.seed) {
    if (setup_.points.size() > 0) use_base(setup_.points);
  }

  Evidence evaluate(const Problem& at, const Ask& ask, const Observer& /*observer*/) override {
    return evaluate_at(at, ask.gradient, nullptr);
  }
  Evidence evaluate_with_base(const Problem& at, const Ask& ask, Matrix& base_gradient) override {
    return evaluate_at(at, ask.gradient, &base_gradient);
  }
  Posterior posterior(const Problem& at, const PosteriorRequest& request,
                      const ProgressCallback& progress) override;

  void renew(const Problem& at) override {
    if (!given_) base_.resize(0, 0);
    prepare(at);
  }
  Matrix base_points() const override { return base_; }
  void use_base(Matrix points) override {
    check_base(points, points.cols());
    base_ = std::move(points);
    given_ = true;
  }
  WarmStart warm_start() const override { return last_; }
  void start_from(const WarmStart& start) override { last_ = start; }
  State save() const override {
    State state;
    if (base_.size() == 0) return state;
    save_base(base_, given_, state);
    state["a"] = last_.a;
    state["f"] = last_.f;
    state["beta"] = last_.beta;
    return state;
  }
  void load(const State& state, const Problem& like) override {
    base_ = load_base(state, like.kernel.num_inputs(), given_);
    last_ = {saved_array(state, "a"), saved_array(state, "f"), saved_array(state, "beta")};
  }

 private:
  void prepare(const Problem& at) {
    if (base_.size() == 0) base_ = choose_base(at.kernel, rows_.x, setup_, seed_);
    check_base(base_, at.kernel.num_inputs());
  }
  LaplaceMode find(const Problem& at, FitcLaplaceSystem& system, const Observer& observer);
  Evidence evaluate_at(const Problem& at, bool gradient, Matrix* base_gradient);
  Vector gradient_of(const Problem& at, const LaplaceMode& mode, FitcLaplaceSystem& system,
                     Matrix* base_gradient) const;
  SparseFunction function_of(const Problem& at, const LaplaceMode& mode, FitcLaplaceSystem& system,
                             Index c) const;

  const Observations& rows_;
  SparseSetup setup_;
  std::uint64_t seed_;
  Matrix base_;
  bool given_ = false;
  WarmStart last_;
};

LaplaceMode FitcLaplace::find(const Problem& at, FitcLaplaceSystem& system,
                              const Observer& observer) {
  LaplaceMode start;
  start.a = last_.a;
  start.f = last_.f;
  start.beta = last_.beta;
  auto mode =
      find_mode(at, rows_, system, std::move(start), {.tolerance = kModeTolerance}, observer);
  if (mode.stop == StopReason::interrupted)
    throw Interrupted("interrupted while the mode was being found");
  const double bound = std::sqrt(at.kernel.diagonal(rows_.x).maxCoeff()) * mode.residual.maxCoeff();
  if (mode.stop != StopReason::converged && !(bound <= kUsableMode))
    throw NotPositiveDefinite(
        fmt::format("Newton's method did not find the mode: latent means may be off by {:.2g}",
                    bound),
        0);
  last_ = {mode.a, mode.f, mode.beta};
  return mode;
}

Evidence FitcLaplace::evaluate_at(const Problem& at, bool gradient, Matrix* base_gradient) {
  prepare(at);
  FitcLaplaceSystem system(at.kernel, rows_.x, base_);
  const auto mode = find(at, system, {});
  Evidence out;
  out.value = mode.psi() - 0.5 * system.log_det();
  out.iterations = mode.steps;
  if (gradient) out.gradient = gradient_of(at, mode, system, base_gradient);
  return out;
}

// u = -1/2 diag(Sigma) dW/df,  s = u - (K~ + W^-1)^-1 K~ u.
Vector FitcLaplace::gradient_of(const Problem& at, const LaplaceMode& mode,
                                FitcLaplaceSystem& system, Matrix* base_gradient) const {
  const Index n = rows_.size(), functions = rows_.functions(), p = at.kernel.num_parameters();
  const auto slopes = mode_slopes(at, rows_, mode);
  TrendPart trend(at, rows_, mode);
  Matrix sigma_w(n, functions), ks(n, functions), ku(n, 1), scaled;
  Vector out = Vector::Zero(p + at.likelihood->log_parameters().size());
  if (base_gradient != nullptr) *base_gradient = Matrix::Zero(base_.rows(), base_.cols());
  for (Index c = 0; c < functions; ++c) {
    const Matrix& l = system.factor(c);
    const Vector delta = system.delta(c), omega = system.omega(c);
    scale_rows_into(delta.cwiseInverse(), system.v(), scaled);
    linalg::solve_lower_right(l, Transpose::yes, scaled);
    const Vector sigma = system.left().cwiseQuotient(delta) + linalg::squared_rows(scaled);
    sigma_w.col(c) = sigma.cwiseProduct(mode.w.col(c));
    const Vector u = -0.5 * sigma_w.col(c).cwiseProduct(slopes.curvature_ratio.col(c));
    system.multiply(u, ku);
    Vector s = u - system.inverse_times(c, ku.col(0));
    trend.project(c, s);
    system.multiply(s, ku);
    trend.add_to(c, ku.col(0));
    ks.col(c) = ku.col(0);

    const Vector a = mode.a.col(c);
    Matrix right(n, 2), left(base_.rows(), 2);
    right << a, s;
    linalg::gemm(1.0, system.v(), Transpose::yes, right, Transpose::no, 0.0, left);
    const Matrix at_base = left;  // V [a, s]
    left.col(0) += left.col(1);
    left.col(1) = at_base.col(0);
    KernelGradient kernel(system.base(), l, base_gradient != nullptr);
    for_slices(n, [&](Index first, Index count) {
      const Matrix v = system.v().middleRows(first, count);
      const Matrix own = right.middleRows(first, count);
      const Vector weight = omega.segment(first, count);
      const Vector diagonal =
          own.col(0).array().square() + 2 * own.col(0).array() * own.col(1).array();
      kernel.add({rows_.x.middleRows(first, count), v, weight, left, own, diagonal}, true, false);
    });
    kernel.finish(left * at_base.transpose(), false);
    out.head(p) += kernel.gradient();
    if (base_gradient != nullptr) *base_gradient += kernel.base_gradient();
  }
  out.tail(out.size() - p) = likelihood_gradient(at, rows_, mode, sigma_w, ks);
  return out;
}

SparseFunction FitcLaplace::function_of(const Problem& at, const LaplaceMode& mode,
                                        FitcLaplaceSystem& system, Index c) const {
  SparseFunction f;
  f.factor = system.factor(c);
  f.mean_weights = system.v().transpose() * mode.a.col(c);
  f.offset = rows_.offset(c);
  const Matrix basis = at.basis(rows_.x);
  const Index q = basis.cols();
  if (q == 0) return f;
  f.trend_weights.resize(base_.rows(), q);
  linalg::gemm(1.0, system.v(), Transpose::yes, system.omega(c).asDiagonal() * basis, Transpose::no,
               0.0, f.trend_weights);
  linalg::solve_lower(f.factor, Transpose::no, f.trend_weights);
  f.beta = mode.beta.col(c);
  f.beta_covariance = mode.beta_covariance.middleCols(c * q, q);
  return f;
}

Posterior FitcLaplace::posterior(const Problem& at, const PosteriorRequest& request,
                                 const ProgressCallback& progress) {
  const ObservedCall call(progress);
  const Timer timer;
  prepare(at);
  FitcLaplaceSystem system(at.kernel, rows_.x, base_);
  const auto mode = find(at, system, [&](const Iteration& it) {
    return progress ? call.progress()({"solve", -1, fmt::format("Newton step {}", it.number)})
                    : Action::proceed;
  });
  auto sparse = std::make_shared<SparsePosterior>();
  sparse->method = fitc_method().name;
  sparse->base = base_;
  sparse->jitter = system.base().jitter();
  Posterior out;
  for (Index c = 0; c < rows_.functions(); ++c) {
    sparse->functions.push_back(function_of(at, mode, system, c));
    const auto& f = sparse->functions.back();
    LatentFunction latent;
    latent.weights.w = f.mean_weights;
    system.base().to_kernel_weights(latent.weights.w);
    latent.weights.beta = f.beta;
    latent.weights.beta_covariance = f.beta_covariance;
    latent.offset = f.offset;
    out.functions.push_back(std::move(latent));
  }
  out.certificate.rigorous = false;
  out.certificate.residual = mode.residual;
  out.evidence = sparse_evidence(sparse->method, mode.psi() - 0.5 * system.log_det(),
                                 rows_.rows_before_merging());
  if (request.with_gradient) out.evidence.gradient = gradient_of(at, mode, system, nullptr);
  out.newton_steps = mode.steps;
  out.halvings = mode.halvings;
  out.newton_decrement = mode.decrement;
  out.jitter = system.base().jitter();
  out.build_seconds = timer.seconds();
  out.sparse = std::move(sparse);
  return out;
}

}  // namespace

std::unique_ptr<Inference> make_fitc_laplace(const InferenceSetup& setup) {
  return std::make_unique<FitcLaplace>(setup);
}

EvaluationCost fitc_laplace_cost(const CostSetting& s) {
  const auto n = static_cast<double>(s.n), functions = static_cast<double>(s.functions.count);
  const auto m = static_cast<double>(std::min(s.rank.value_or(1000), s.n));
  const double flops = n * m * m * (1 + functions * (kUsualSteps + 7)) + 3 * functions * m * m * m;
  return {
      8 * (2 * n * m + m * m * (4 + functions) + n * (8 * functions + static_cast<double>(s.d))),
      flops / s.speed.flops + 3 * n * m * functions * s.speed.pair_seconds_double};
}

}  // namespace mercer::inference
