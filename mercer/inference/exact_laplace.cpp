#include "mercer/inference/exact_laplace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace {

// An exact evidence is one only near the mode: within so many times the tolerance.
constexpr double kFarFromMode = 1e3;
// Steps of Newton's method cost about so many factorisations, for estimates.
constexpr double kFactorisations = 2;

Vector product(const Matrix& a, const Vector& v) {
  Vector out(a.rows());
  linalg::gemm(1.0, a, linalg::Transpose::no, v, linalg::Transpose::no, 0.0, out);
  return out;
}

// weights = 1/2 (a a' - R + s g' + g s') of one function, R = S B^-1 S; added to what is there
// unless it is the first.
struct Terms {
  const Matrix& inverse;  // B^-1
  Vector root, a, s, g;
};
void add_weights(const Terms& t, bool first, Matrix& weights) {
  const Index n = t.a.size(), panel = 64;
  const auto fill = [&](Index task, int) {
    for (Index j = task * panel; j < std::min(n, (task + 1) * panel); ++j) {
      const auto column = 0.5 * (t.a(j) * t.a - t.root(j) * t.root.cwiseProduct(t.inverse.col(j)) +
                                 t.g(j) * t.s + t.s(j) * t.g);
      if (first)
        weights.col(j) = column;
      else
        weights.col(j) += column;
    }
  };
  parallel_for((n + panel - 1) / panel, std::ref(fill));
}

}  // namespace

struct ExactLaplace::Last {
  std::optional<Problem> problem;  // none: the factor does not matter
  Matrix a, f, beta;
};

ExactLaplace::ExactLaplace(const Observations& data, const NewtonOptions& options)
    : data_(data), options_(options) {}
ExactLaplace::~ExactLaplace() = default;

void ExactLaplace::resume(const Problem& problem, Matrix a, Matrix beta) {
  last_ = std::make_unique<Last>(Last{problem, std::move(a), {}, std::move(beta)});
  spoiled_ = true;
}

void ExactLaplace::start_at(Matrix a) {
  last_ = std::make_unique<Last>(Last{std::nullopt, std::move(a), {}, {}});
  if (system_) system_->forget();
}

int ExactLaplace::factorisations() const { return system_ ? system_->factorisations() : 0; }

void ExactLaplace::use(const kernels::Kernel& kernel) {
  if (system_)
    system_->set_kernel(kernel, data_.x);
  else
    system_ = std::make_unique<DenseLaplaceSystem>(kernel, data_.x);
}

// The factor of the last problem at its mode, anew.
void ExactLaplace::recall() {
  spoiled_ = false;
  if (system_) system_->forget();
  if (!last_ || !last_->problem) return;
  const auto& problem = *last_->problem;
  use(problem.kernel);
  Matrix f(data_.size(), data_.functions()), w = f;
  system_->multiply(last_->a, f);
  f.rowwise() += data_.offset.transpose();
  const Matrix basis = problem.basis(data_.x);
  if (basis.cols() > 0) f += basis * last_->beta;
  for (Index j = 0; j < f.cols(); ++j)
    for (Index i = 0; i < f.rows(); ++i)
      w(i, j) = data_.weight_of(i) * problem.likelihood->curvature(data_.y(i, j), f(i, j)).value;
  last_->f = f;
  system_->set_curvature(w);
  system_->factor();
}

LaplaceMode ExactLaplace::mode_of(const Problem& problem) {
  if (spoiled_) recall();
  spoiled_ = true;
  use(problem.kernel);
  LaplaceMode start;
  if (last_) {
    start.a = last_->a;
    start.f = last_->f;
    start.beta = last_->beta;
  }
  auto mode = find_mode(problem, data_, *system_, std::move(start), options_);
  const double bound =
      std::sqrt(problem.kernel.diagonal(data_.x).maxCoeff()) * mode.residual.maxCoeff();
  if (!(bound <= kFarFromMode * options_.tolerance))
    throw NotPositiveDefinite(
        fmt::format("Newton's method did not find the mode: latent means may be off by {:.2g}",
                    bound),
        0);
  return mode;
}

LaplaceEvidence ExactLaplace::evaluate(const Problem& problem, bool with_gradient) {
  LaplaceEvidence out;
  out.mode = mode_of(problem);
  out.value = out.mode.psi() - 0.5 * system_->log_det();
  if (with_gradient) out.gradient = gradient_of(problem, out.mode);
  last_ = std::make_unique<Last>(Last{problem, out.mode.a, out.mode.f, out.mode.beta});
  spoiled_ = false;
  return out;
}

// S Sigma S = I - B^-1.
Vector ExactLaplace::gradient_of(const Problem& problem, const LaplaceMode& mode) {
  const Index n = data_.size(), c = data_.functions();
  const auto slopes = mode_slopes(problem, data_, mode);
  weights_.resize(n, n);
  Matrix sigma_w(n, c), ks(n, c);
  TrendPart trend(problem, data_, mode);
  for (Index j = 0; j < c; ++j) {
    const Matrix inverse = system_->inverse(j);
    sigma_w.col(j) = 1 - inverse.diagonal().array();
    Terms t{inverse, mode.w.col(j).cwiseSqrt(), mode.a.col(j), Vector(n), slopes.gradient.col(j)};
    const Vector u = -0.5 * sigma_w.col(j).cwiseProduct(slopes.curvature_ratio.col(j));
    const Vector scaled = t.root.cwiseProduct(product(system_->k(), u));
    t.s = u - t.root.cwiseProduct(product(inverse, scaled));
    trend.project(j, t.s);
    ks.col(j) = product(system_->k(), t.s);
    trend.add_to(j, ks.col(j));
    add_weights(t, j == 0, weights_);
  }
  const Index p = problem.kernel.num_parameters();
  const Vector own = likelihood_gradient(problem, data_, mode, sigma_w, ks);
  Vector gradient(p + own.size());
  operators::weighted_gradient(problem.kernel, data_.x, weights_, gradient.head(p));
  gradient.tail(own.size()) = own;
  return gradient;
}

LaplaceEvidence exact_laplace(const Problem& problem, const Observations& data, bool with_gradient,
                              const NewtonOptions& options, LaplaceMode start) {
  ExactLaplace exact(data, options);
  if (start.a.size() > 0) exact.start_at(std::move(start.a));
  return exact.evaluate(problem, with_gradient);
}

double exact_laplace_bytes(Index n, Index functions) {
  return 8.0 * static_cast<double>(n) * static_cast<double>(n) *
         (3.0 + static_cast<double>(functions));
}

double exact_laplace_flops(Index n, Index functions) {
  const auto size = static_cast<double>(n);
  return static_cast<double>(functions) * size * size * size * (kFactorisations / 3 + 2.0 / 3);
}

}  // namespace mercer::inference
