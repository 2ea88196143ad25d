#include "mercer/inference/laplace_system.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "mercer/approximations/rpcholesky.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/preconditioners/woodbury.hpp"

namespace mercer::inference {
namespace {

// Preconditioners of K + W^-1 need a finite W^-1.
constexpr double kLeastCurvature = 1e-10;
// An iteration with an old factor reads N^2 numbers three times, a factorisation takes N^3/3 flops:
// it is worth about N / 100 iterations. Better solves than this are left to it.
constexpr Index kRowsPerIteration = 300;
constexpr double kBestByOldFactor = 1e-9;

using Block = Eigen::Map<const Matrix>;

// N C x t, without gaps, as N x (C t).
Block unstacked(ConstMatrixView x, Index n) { return {x.data(), n, x.rows() / n * x.cols()}; }

// B = I + S K S of all functions, S = W^1/2.
class CurvedOperator final : public linalg::LinearOperator {
 public:
  CurvedOperator(const linalg::LinearOperator& k, const Matrix& root) : k_(k), root_(root) {}
  Index size() const override { return root_.size(); }

  void apply(ConstMatrixView x, MatrixView y) const override {
    const Index n = root_.rows(), c = root_.cols();
    const auto in = unstacked(x, n);
    scaled_.resize(n, in.cols());
    product_.resize(n, in.cols());
    for (Index j = 0; j < in.cols(); ++j) scaled_.col(j) = root_.col(j % c).cwiseProduct(in.col(j));
    k_.apply(scaled_, product_);
    Eigen::Map<Matrix> out(y.data(), n, in.cols());
    for (Index j = 0; j < in.cols(); ++j)
      out.col(j) = in.col(j) + root_.col(j % c).cwiseProduct(product_.col(j));
  }

 private:
  const linalg::LinearOperator& k_;
  const Matrix& root_;
  mutable Matrix scaled_, product_;  // kept from product to product
};

// One preconditioner a function: of B itself, or of K + W^-1 = S^-1 B S^-1.
class CurvedPreconditioner final : public linalg::Preconditioner {
 public:
  CurvedPreconditioner(std::vector<std::unique_ptr<linalg::Preconditioner>> parts, Matrix scale)
      : parts_(std::move(parts)), scale_(std::move(scale)) {}
  Index size() const override { return static_cast<Index>(parts_.size()) * parts_[0]->size(); }

  // Of B: z = P^-1 r. Of K + W^-1: z = S^-1 P^-1 S^-1 r.
  void solve(ConstMatrixView r, MatrixView z) const override {
    each([&](Index c, const linalg::Preconditioner& p, Index n) {
      if (scale_.size() == 0) {
        p.solve(r.middleRows(c * n, n), z.middleRows(c * n, n));
        return;
      }
      const Vector inverse = scale_.col(c).cwiseInverse();
      Matrix scaled = inverse.asDiagonal() * r.middleRows(c * n, n);
      Matrix solved(n, r.cols());
      p.solve(scaled, solved);
      z.middleRows(c * n, n) = inverse.asDiagonal() * solved;
    });
  }
  double log_det() const override {
    double sum = 0;
    each([&](Index c, const linalg::Preconditioner& p, Index) {
      sum += p.log_det();
      if (scale_.size() > 0) sum += 2 * scale_.col(c).array().log().sum();
    });
    return sum;
  }
  void sample(Rng& rng, MatrixView z) const override {
    each([&](Index c, const linalg::Preconditioner& p, Index n) {
      p.sample(rng, z.middleRows(c * n, n));
      if (scale_.size() > 0) z.middleRows(c * n, n).array().colwise() *= scale_.col(c).array();
    });
  }

 private:
  template <class Visitor>
  void each(Visitor&& visit) const {
    for (std::size_t c = 0; c < parts_.size(); ++c)
      visit(static_cast<Index>(c), *parts_[c], parts_[c]->size());
  }

  std::vector<std::unique_ptr<linalg::Preconditioner>> parts_;
  Matrix scale_;  // S, when the parts are those of K + W^-1; else empty
};

// P = L L', of a factor that lives elsewhere.
class FactorPreconditioner final : public linalg::Preconditioner {
 public:
  explicit FactorPreconditioner(const linalg::Cholesky& factor) : factor_(factor) {}
  Index size() const override { return factor_.size(); }
  void solve(ConstMatrixView r, MatrixView z) const override {
    z = r;
    factor_.solve_in_place(z);
  }
  double log_det() const override { return factor_.log_det(); }
  void sample(Rng& rng, MatrixView z) const override {
    rng.fill_normal(z);
    linalg::multiply_lower(factor_.factor(), z);
  }

 private:
  const linalg::Cholesky& factor_;
};

void check_curvature(ConstMatrixView w, Index n) {
  if (w.rows() != n) throw DimensionMismatch("curvature: rows", w.rows(), "points", n);
  if (w.cols() == 0 || !(w.minCoeff() >= 0) || !w.allFinite())
    throw InvalidArgument("the curvature of a likelihood must be finite and not negative");
}

}  // namespace

Index laplace_rank(Index n, Index most) {
  const auto root = static_cast<Index>(4 * std::sqrt(static_cast<double>(n)));
  return std::min({std::max<Index>(100, root), most, n});
}

// K, counted.
class DenseLaplaceSystem::Product final : public linalg::LinearOperator {
 public:
  explicit Product(const DenseLaplaceSystem& system) : system_(system) {}
  Index size() const override { return system_.points(); }
  void apply(ConstMatrixView x, MatrixView y) const override { system_.multiply(x, y); }

 private:
  const DenseLaplaceSystem& system_;
};

DenseLaplaceSystem::DenseLaplaceSystem(const kernels::Kernel& kernel, const Matrix& x)
    : k_(x.rows(), x.rows()) {
  set_kernel(kernel, x);
}
DenseLaplaceSystem::~DenseLaplaceSystem() = default;

void DenseLaplaceSystem::set_kernel(const kernels::Kernel& kernel, const Matrix& x) {
  if (x.rows() != points())
    throw DimensionMismatch("latent system: points", x.rows(), "points before", points());
  operators::dense_matrix(kernel, x, k_);
  current_ = false;
}

void DenseLaplaceSystem::multiply(ConstMatrixView v, MatrixView kv) const {
  linalg::gemm(1.0, k_, linalg::Transpose::no, v, linalg::Transpose::no, 0.0, kv);
  products_ += v.cols();
}

void DenseLaplaceSystem::set_curvature(ConstMatrixView w) {
  check_curvature(w, points());
  const Matrix root = w.cwiseSqrt();
  current_ = current_ && root.cols() == root_.cols() && root == root_;
  if (root.cols() != root_.cols()) factors_.clear();
  root_ = root;
}

void DenseLaplaceSystem::factor() {
  if (current_ && !factors_.empty()) return;
  const Index n = points(), panel = 64;
  std::vector<linalg::Cholesky> old = std::move(factors_), fresh;
  factors_.clear();
  for (Index c = 0; c < root_.cols(); ++c) {
    Matrix b(0, 0);
    if (!old.empty()) b = std::move(old[static_cast<std::size_t>(c)]).storage();
    b.resize(n, n);
    const auto s = root_.col(c);
    const auto fill = [&](Index task, int) {
      for (Index j = task * panel; j < std::min(n, (task + 1) * panel); ++j) {
        const Index below = n - j;
        b.col(j).tail(below) = s(j) * s.tail(below).cwiseProduct(k_.col(j).tail(below));
        b(j, j) += 1;
      }
    };
    parallel_for((n + panel - 1) / panel, std::ref(fill));
    fresh.emplace_back(std::move(b));
    ++factorisations_;
  }
  factors_ = std::move(fresh);
  current_ = true;
}

SystemReport DenseLaplaceSystem::solve(ConstMatrixView b, MatrixView x, double tolerance,
                                       const Observer& observer) {
  const Index n = points();
  SystemReport report;
  if (!current_ && !factors_.empty() && tolerance > kBestByOldFactor) {
    std::vector<std::unique_ptr<linalg::Preconditioner>> parts;
    for (const auto& old : factors_) parts.push_back(std::make_unique<FactorPreconditioner>(old));
    const CurvedPreconditioner preconditioner(std::move(parts), Matrix());
    const Product k(*this);
    krylov::SolverOptions options;
    options.tolerance = tolerance;
    options.max_iterations = static_cast<int>(std::max<Index>(6, n / kRowsPerIteration));
    krylov::SolverContext context;
    context.preconditioner = &preconditioner;
    context.observer = observer;
    const auto result =
        krylov::solver("cg").solve(CurvedOperator(k, root_), b, x, options, context);
    report.stop = result.stop;
    report.iterations = result.iterations;
    report.matvecs = result.total_matvecs() * root_.cols();
    report.relative_residual = result.relative_residual;
    if (result.stop == StopReason::converged || result.stop == StopReason::interrupted)
      return report;
  }
  factor();
  x = b;
  for (std::size_t c = 0; c < factors_.size(); ++c)
    factors_[c].solve_in_place(x.middleRows(static_cast<Index>(c) * n, n));
  report.stop = StopReason::converged;
  report.relative_residual = 0;
  return report;
}

double DenseLaplaceSystem::log_det() {
  factor();
  double sum = 0;
  for (const auto& factor : factors_) sum += factor.log_det();
  return sum;
}

CurvedDeterminant DenseLaplaceSystem::log_determinant(const LogDeterminantOptions& /*options*/,
                                                      const Observer& /*observer*/) {
  CurvedDeterminant out;
  out.exact = true;
  out.estimate.value = log_det();
  return out;
}

Matrix DenseLaplaceSystem::inverse(Index c) {
  factor();
  return linalg::Cholesky(factors_[static_cast<std::size_t>(c)]).inverse();
}

struct IterativeLaplaceSystem::Impl {
  SystemChoice choice;
  Operators k;
  Matrix root;
  std::unique_ptr<CurvedOperator> exact, fast;
  Matrix low_rank;  // F of "auto"; empty otherwise
  std::unique_ptr<linalg::Preconditioner> preconditioner;
  preconditioners::BuildReport report{.name = "none"};
  double build_seconds = 0;

  void factor_kernel();
  void precondition(ConstMatrixView w);
};

void IterativeLaplaceSystem::Impl::factor_kernel() {
  const Index n = k.exact->size();
  const Index most = choice.preconditioning.rank.value_or(1000);
  approximations::RpCholeskyOptions options{.rank = laplace_rank(n, most), .tolerance = 1e-8};
  options.seed = choice.preconditioning.seed;
  auto built = approximations::rpcholesky(*k.exact, options);
  low_rank = std::move(built.factor);
  report = {.name = "rpcholesky", .rank = low_rank.cols()};
}

void IterativeLaplaceSystem::Impl::precondition(ConstMatrixView w) {
  // A kernel that is zero everywhere has no factor, and B = I needs none.
  if (choice.preconditioner == "none" || (choice.preconditioner == "auto" && low_rank.size() == 0))
    return;
  std::vector<std::unique_ptr<linalg::Preconditioner>> parts;
  Matrix scale;
  if (low_rank.size() > 0) {
    for (Index c = 0; c < w.cols(); ++c)
      parts.push_back(std::make_unique<preconditioners::Woodbury>(
          Matrix(root.col(c).asDiagonal() * low_rank), 1.0));
  } else {
    scale = w.cwiseMax(kLeastCurvature).cwiseSqrt();
    for (Index c = 0; c < w.cols(); ++c) {
      const linalg::Diagonal noise(Vector(scale.col(c).array().square().inverse()));
      auto built = preconditioners::make(choice.preconditioner, {*k.exact, noise, k.fast.get()},
                                         choice.preconditioning);
      report = std::move(built.report);
      parts.push_back(std::move(built.preconditioner));
    }
  }
  preconditioner = std::make_unique<CurvedPreconditioner>(std::move(parts), std::move(scale));
}

IterativeLaplaceSystem::IterativeLaplaceSystem(const kernels::Kernel& kernel, const Matrix& x,
                                               SystemChoice choice)
    : impl_(std::make_unique<Impl>()) {
  const Timer timer;
  if (choice.solver == "cholesky")
    throw InvalidArgument("this latent system is solved iteratively; cholesky has its own");
  impl_->choice = std::move(choice);
  impl_->k = make_operators(kernel, x, impl_->choice.op, impl_->choice.precision);
  if (impl_->choice.preconditioner == "auto") impl_->factor_kernel();
  impl_->build_seconds = timer.seconds();
}
IterativeLaplaceSystem::~IterativeLaplaceSystem() = default;

Index IterativeLaplaceSystem::points() const { return impl_->k.exact->size(); }

void IterativeLaplaceSystem::multiply(ConstMatrixView v, MatrixView kv) const {
  impl_->k.exact->apply(v, kv);
}

void IterativeLaplaceSystem::set_curvature(ConstMatrixView w) {
  const Timer timer;
  check_curvature(w, points());
  impl_->root = w.cwiseSqrt();
  impl_->exact = std::make_unique<CurvedOperator>(*impl_->k.exact, impl_->root);
  if (impl_->k.fast) impl_->fast = std::make_unique<CurvedOperator>(*impl_->k.fast, impl_->root);
  impl_->precondition(w);
  impl_->build_seconds += timer.seconds();
}

SystemReport IterativeLaplaceSystem::solve(ConstMatrixView b, MatrixView x, double tolerance,
                                           const Observer& observer) {
  const Timer timer;
  krylov::SolverOptions options;
  options.tolerance = tolerance;
  options.max_iterations = impl_->choice.max_iterations;
  krylov::SolverContext context;
  context.preconditioner = impl_->preconditioner.get();
  context.observer = observer;
  if (impl_->fast) context.low_precision = impl_->fast.get();
  const auto& solver = krylov::solver(impl_->choice.solver);
  auto result = solver.solve(*impl_->exact, b, x, options, context);
  SystemReport report;
  report.stop = result.stop;
  report.iterations = result.iterations;
  report.matvecs = result.total_matvecs() * impl_->root.cols();
  report.relative_residual = result.relative_residual;
  report.fell_back_to_double = result.fell_back_to_double;
  report.seconds = timer.seconds();
  return report;
}

std::int64_t IterativeLaplaceSystem::products() const {
  return impl_->k.exact->products() + (impl_->k.fast ? impl_->k.fast->products() : 0);
}
CurvedDeterminant IterativeLaplaceSystem::log_determinant(const LogDeterminantOptions& options,
                                                          const Observer& observer) {
  CurvedDeterminant out;
  if (!impl_->preconditioner) {
    out.reason = "its log determinant needs a preconditioner";
    return out;
  }
  try {
    out.estimate =
        inference::log_determinant(*impl_->exact, *impl_->preconditioner, options, observer);
  } catch (const InvalidArgument&) {
    out.reason = "this preconditioner has no log determinant";
    return out;
  }
  if (!out.estimate.positive) out.reason = "the quadrature of its log determinant broke down";
  return out;
}

const operators::KernelOperator& IterativeLaplaceSystem::k() const { return *impl_->k.exact; }
const linalg::LinearOperator& IterativeLaplaceSystem::b() const { return *impl_->exact; }
const linalg::Preconditioner* IterativeLaplaceSystem::preconditioner() const {
  return impl_->preconditioner.get();
}
const preconditioners::BuildReport& IterativeLaplaceSystem::preconditioner_report() const {
  return impl_->report;
}
double IterativeLaplaceSystem::build_seconds() const { return impl_->build_seconds; }

}  // namespace mercer::inference
