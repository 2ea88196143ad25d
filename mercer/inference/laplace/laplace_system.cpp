#include "mercer/inference/laplace/laplace_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/approximations/rpcholesky.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/krylov/cg.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/preconditioners/rpcholesky.hpp"
#include "mercer/preconditioners/woodbury.hpp"

namespace mercer::inference {
namespace {

// Preconditioners of K + W^-1 need a finite W^-1.
constexpr double kLeastCurvature = 1e-10;
// An iteration with an old factor reads N^2 numbers three times, a factorisation takes N^3/3 flops:
// it is worth about N / 100 iterations. Better solves than this are left to it.
constexpr Index kRowsPerIteration = 300;
constexpr double kBestByOldFactor = 1e-9;

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
    throw DimensionMismatch("system of Laplace: points", x.rows(), "points before", points());
  operators::dense_matrix(kernel, x, k_);
  current_ = false;
}

void DenseLaplaceSystem::multiply(ConstMatrixView v, MatrixView kv) const {
  linalg::gemm(1.0, k_, linalg::Transpose::no, v, linalg::Transpose::no, 0.0, kv);
  products_ += v.cols();
}

void DenseLaplaceSystem::set_curvature(const Curvature& curvature) {
  CurvatureRoot root(curvature, points());
  current_ = current_ && root == root_;
  if (root.functions() != root_.functions() || root.coupled() != root_.coupled()) factor_.reset();
  root_ = std::move(root);
}

void DenseLaplaceSystem::factor() {
  if (current_ && factor_) return;
  factor_ = std::make_unique<CurvedFactor>(k_, root_, std::move(factor_));
  factorisations_ += factor_->count();
  current_ = true;
}

SystemReport DenseLaplaceSystem::solve(ConstMatrixView b, MatrixView x, double tolerance,
                                       const Observer& observer) {
  const Index n = points();
  SystemReport report;
  if (!current_ && factor_ && tolerance > kBestByOldFactor) {
    const Product k(*this);
    krylov::SolverOptions options;
    options.tolerance = tolerance;
    options.max_iterations = static_cast<int>(std::max<Index>(6, n / kRowsPerIteration));
    krylov::SolverContext context;
    context.preconditioner = factor_.get();
    context.observer = observer;
    const auto result = krylov::cg(CurvedOperator(k, root_), b, x, options, context);
    report.stop = result.stop;
    report.iterations = result.iterations;
    report.matvecs = result.total_matvecs() * root_.functions();
    report.relative_residual = result.relative_residual;
    if (result.stop == StopReason::converged || result.stop == StopReason::interrupted)
      return report;
  }
  factor();
  x = b;
  factor_->solve_in_place(x);
  report.stop = StopReason::converged;
  report.relative_residual = 0;
  return report;
}

double DenseLaplaceSystem::log_det() {
  factor();
  return factor_->log_det();
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
  return linalg::Cholesky(factor_->block(c)).inverse();
}

const linalg::Cholesky& DenseLaplaceSystem::coupling() {
  factor();
  return factor_->coupling();
}

// With V_c = L_c^-1 S_c k and, for coupled functions, g_c = q_c * (B_c^-1 S_c k):
//   block (c, d) = [c = d] V_c'V_c - g_c'(U'H U)^-1 g_d.
LaplaceSystem::Explained DenseLaplaceSystem::explained(ConstMatrixView cross, double /*tolerance*/,
                                                       const Observer& /*observer*/) {
  factor();
  const Index m = cross.cols(), c = root_.functions();
  Explained out;
  out.blocks = Matrix::Zero(m, c * c);
  out.truncated = Matrix::Zero(m, c);
  std::vector<Matrix> g;
  for (Index j = 0; j < c; ++j) {
    Matrix v = root_.scale().col(j).asDiagonal() * cross;
    factor_->block(j).solve_lower_in_place(v);
    linalg::column_dots(v, v, {out.blocks.col(j + c * j).data(), static_cast<std::size_t>(m)});
    if (!root_.coupled()) continue;
    linalg::solve_lower(factor_->block(j).factor(), linalg::Transpose::yes, v);
    v = root_.direction().col(j).asDiagonal() * v;
    factor_->coupling().solve_lower_in_place(v);
    g.push_back(std::move(v));
  }
  Vector dots(m);
  for (Index d = 0; d < static_cast<Index>(g.size()); ++d)
    for (Index j = d; j < c; ++j) {
      linalg::column_dots(g[static_cast<std::size_t>(j)], g[static_cast<std::size_t>(d)],
                          {dots.data(), static_cast<std::size_t>(m)});
      out.blocks.col(j + c * d) -= dots;
      if (j != d) out.blocks.col(d + c * j) -= dots;
    }
  return out;
}

struct IterativeLaplaceSystem::Impl {
  SystemChoice choice;
  Operators k;
  CurvatureRoot root;
  std::unique_ptr<CurvedOperator> exact, fast;
  Matrix low_rank;  // F of "auto"; empty otherwise
  std::unique_ptr<linalg::Preconditioner> preconditioner;
  preconditioners::BuildReport report{.name = "none"};
  double build_seconds = 0;

  void factor_kernel();
  void precondition(const Curvature& curvature);
};

void IterativeLaplaceSystem::Impl::factor_kernel() {
  const Index n = k.exact->size();
  const Index most = choice.preconditioning.rank.value_or(1000);
  approximations::RpCholeskyOptions options{.rank = laplace_rank(n, most), .tolerance = 1e-8};
  options.seed = choice.preconditioning.seed;
  auto built = approximations::rpcholesky(*k.exact, options);
  low_rank = std::move(built.factor);
  report = {.name = std::string(preconditioners::rpcholesky_info().name), .rank = low_rank.cols()};
}

void IterativeLaplaceSystem::Impl::precondition(const Curvature& curvature) {
  const Matrix& w = curvature.w;
  if (curvature.coupled && choice.preconditioner != "auto" && choice.preconditioner != "none")
    throw InvalidArgument(
        fmt::format("`preconditioner={}` is built for K + W^-1, and functions that are coupled in "
                    "a row have no "
                    "W^-1; give auto or none",
                    choice.preconditioner));
  // A kernel that is zero everywhere has no factor, and B = I needs none.
  if (choice.preconditioner == "none" || (choice.preconditioner == "auto" && low_rank.size() == 0))
    return;
  if (curvature.coupled) {
    const Index rank = CoupledLowRank::rank_for(root.functions(), low_rank.cols());
    preconditioner = std::make_unique<CoupledLowRank>(low_rank, rank, root);
    report.rank = rank;
    return;
  }
  std::vector<std::unique_ptr<linalg::Preconditioner>> parts;
  Matrix scale;
  if (low_rank.size() > 0) {
    for (Index c = 0; c < w.cols(); ++c)
      parts.push_back(std::make_unique<preconditioners::Woodbury>(
          Matrix(root.scale().col(c).asDiagonal() * low_rank), 1.0));
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
  if (choice.direct())
    throw InvalidArgument("this system is solved iteratively; the direct solver has its own");
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

void IterativeLaplaceSystem::set_curvature(const Curvature& curvature) {
  const Timer timer;
  impl_->root = CurvatureRoot(curvature, points());
  impl_->exact = std::make_unique<CurvedOperator>(*impl_->k.exact, impl_->root);
  if (impl_->k.fast) impl_->fast = std::make_unique<CurvedOperator>(*impl_->k.fast, impl_->root);
  impl_->precondition(curvature);
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
  options.keep_coefficients = solver.keeps_coefficients;
  auto result = solver.solve(*impl_->exact, b, x, options, context);
  SystemReport report;
  report.energy_errors = energy_errors(result);
  report.stop = result.stop;
  report.iterations = result.iterations;
  report.matvecs = result.total_matvecs() * impl_->root.functions();
  report.relative_residual = result.relative_residual;
  report.fell_back_to_double = result.fell_back_to_double;
  report.seconds = timer.seconds();
  return report;
}

const CurvatureRoot& IterativeLaplaceSystem::root() const { return impl_->root; }

// For x_d = B^-1 b_d with the residual r_d = b_d - B x_d:
//   b_c'B^-1 b_d = b_c'x_d + x_c'r_d + r_c'B^-1 r_d,
// and since B >= I the last term is at most |r_c| |r_d|.
LaplaceSystem::Explained IterativeLaplaceSystem::explained(ConstMatrixView cross, double tolerance,
                                                           const Observer& observer) {
  const auto& root = impl_->root;
  const Index n = root.points(), m = cross.cols(), c = root.functions();
  // Right-hand sides run over functions, then points: R' (e_c (x) k_j).
  Matrix wide = Matrix::Zero(n, c * c * m);
  for (Index j = 0; j < c; ++j)
    for (Index p = 0; p < m; ++p) wide.col((j * m + p) * c + j) = cross.col(p);
  const Matrix pulled = root.transposed_times(wide);
  const Eigen::Map<const Matrix> b(pulled.data(), n * c, c * m);
  Matrix x = Matrix::Zero(n * c, c * m), r(n * c, c * m);
  Explained out{Matrix(m, c * c), Matrix(m, c), solve(b, x, tolerance, observer)};
  if (out.report.stop == StopReason::interrupted) return out;
  impl_->exact->apply(x, r);
  r = b - r;
  Vector plain(m), correction(m);
  const auto dots = [&](ConstMatrixView u, ConstMatrixView v, Vector& to) {
    linalg::column_dots(u, v, {to.data(), static_cast<std::size_t>(m)});
  };
  for (Index d = 0; d < c; ++d) {
    for (Index j = 0; j < c; ++j) {
      dots(b.middleCols(j * m, m), x.middleCols(d * m, m), plain);
      dots(x.middleCols(j * m, m), r.middleCols(d * m, m), correction);
      out.blocks.col(j + c * d) = plain + correction;
    }
    out.truncated.col(d) = r.middleCols(d * m, m).colwise().squaredNorm().transpose();
  }
  return out;
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

// Coupled functions have copies on both sides of the root and of the preconditioner.
double IterativeLaplaceSystem::vector_bytes(Index n, FunctionCount functions, Index columns) {
  return 8.0 * static_cast<double>(n) * static_cast<double>(functions.count) *
         static_cast<double>(columns) * (functions.coupled ? 18 : 10);
}

// F, and U of every function; coupled: F, a weighted copy and the matrix of all their columns.
double IterativeLaplaceSystem::low_rank_bytes(Index n, FunctionCount functions, Index rank) {
  const auto columns = static_cast<double>(rank) * static_cast<double>(functions.count);
  return 8.0 * static_cast<double>(n) * static_cast<double>(rank) *
             static_cast<double>(functions.coupled ? 3 : functions.count + 2) +
         (functions.coupled ? 8.0 * columns * columns : 0.0);
}

}  // namespace mercer::inference
