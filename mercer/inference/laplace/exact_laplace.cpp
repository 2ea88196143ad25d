#include "mercer/inference/laplace/exact_laplace.hpp"

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

// weights = 1/2 (a a' - Q + s g' + g s') of one function, Q = S B^-1 S; added to what is there
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
  Matrix f(data_.size(), data_.functions());
  system_->multiply(last_->a, f);
  f.rowwise() += data_.offset.transpose();
  const Matrix basis = problem.basis(data_.x);
  if (basis.cols() > 0) f += basis * last_->beta;
  last_->f = f;
  system_->set_curvature(
      {likelihood_at(*problem.likelihood, data_, f).w, problem.likelihood->coupled() != nullptr});
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
  if (mode.stop != StopReason::converged && !(bound <= kFarFromMode * options_.tolerance))
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

// Of coupled functions. With the blocks of B (curved_operator.hpp) and U'H U = L L',
//   Q_cd = [c = d] S_c B_c^-1 S_c - G_c G_d',   G_c = S_c B_c^-1 diag(q_c) L^-T,
// so that E_cd = Sigma W of row i is the entry (i, i) of K Q_cd. Adds -1/2 sum_c Q_cc to the
// weights of dK; returns u.
Matrix ExactLaplace::coupled_terms(const Problem& problem, const LaplaceMode& mode) {
  const Index n = data_.size(), c = data_.functions();
  const auto& root = system_->root();
  const auto& coupling = system_->coupling().factor();
  weights_.setZero();
  std::vector<Matrix> g;
  Matrix e = Matrix::Zero(n, c * c);
  for (Index j = 0; j < c; ++j) {
    Matrix inverse = system_->inverse(j);
    Matrix side = root.scale().col(j).asDiagonal() * inverse * root.direction().col(j).asDiagonal();
    inverse = root.scale().col(j).asDiagonal() * inverse * root.scale().col(j).asDiagonal();
    e.col(j + c * j) = system_->k().cwiseProduct(inverse).colwise().sum();
    weights_ -= 0.5 * inverse;
    linalg::solve_lower_right(coupling, linalg::Transpose::yes, side);
    linalg::gemm(0.5, side, linalg::Transpose::no, side, linalg::Transpose::yes, 1.0, weights_);
    g.push_back(std::move(side));
  }
  Matrix kg(n, n);
  for (Index j = 0; j < c; ++j) {
    system_->multiply(g[static_cast<std::size_t>(j)], kg);
    for (Index d = 0; d < c; ++d)
      e.col(j + c * d) -= kg.cwiseProduct(g[static_cast<std::size_t>(d)]).rowwise().sum();
  }
  return coupled_slopes(problem, mode, [&](Index row, Matrix& block) {
    for (Index d = 0; d < c; ++d)
      for (Index j = 0; j < c; ++j) block(j, d) = e(row, j + c * d);
  });
}

// s = u - Q K u, and 1/2 (a a' + s g' + g s') of every function on top of the weights.
Vector ExactLaplace::coupled_gradient(const Problem& problem, const LaplaceMode& mode) {
  using linalg::Transpose;
  const Index n = data_.size(), c = data_.functions();
  const Matrix g = mode_slopes(problem, data_, mode).gradient;
  weights_.resize(n, n);
  const Matrix u = coupled_terms(problem, mode);
  Matrix ku(n, c);
  system_->multiply(u, ku);
  const Matrix b = system_->root().transposed_times(ku);
  Matrix x(n, c);
  Eigen::Map<Matrix> stacked(x.data(), n * c, 1);
  system_->solve(Eigen::Map<const Matrix>(b.data(), n * c, 1), stacked, 0.0);
  const Matrix s = u - system_->root().times(x);
  linalg::gemm(0.5, mode.a, Transpose::no, mode.a, Transpose::yes, 1.0, weights_);
  linalg::gemm(0.5, s, Transpose::no, g, Transpose::yes, 1.0, weights_);
  linalg::gemm(0.5, g, Transpose::no, s, Transpose::yes, 1.0, weights_);
  Vector gradient(problem.kernel.num_parameters());
  operators::weighted_gradient(problem.kernel, data_.x, weights_, gradient);
  return gradient;
}

// S Sigma S = I - B^-1.
Vector ExactLaplace::gradient_of(const Problem& problem, const LaplaceMode& mode) {
  if (problem.likelihood->coupled() != nullptr) return coupled_gradient(problem, mode);
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

double exact_laplace_bytes(Index n, FunctionCount functions) {
  const auto count = static_cast<double>(functions.count);
  // Coupled: K, weights, U'H U, three at work, the factors and the G of every function.
  return 8.0 * static_cast<double>(n) * static_cast<double>(n) *
         (functions.coupled ? 6.0 + 2.0 * count : 3.0 + count);
}

double exact_laplace_flops(Index n, FunctionCount functions) {
  const auto size = static_cast<double>(n), count = static_cast<double>(functions.count);
  if (!functions.coupled) return count * size * size * size * (kFactorisations / 3 + 2.0 / 3);
  // A factorisation comes with an inverse; the gradient takes another, a triangular solve and two
  // products.
  return size * size * size * (kFactorisations * (count + 1.0 / 3) + count * (2.0 / 3 + 1 + 4));
}

}  // namespace mercer::inference
