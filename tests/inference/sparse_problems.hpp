// Small data for the sparse approximations, and the dense formulas that they are checked against:
// plain Eigen algebra with N x N matrices, written without the library's own.
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "mercer/core/rng.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/inference/sparse/sparse_posterior.hpp"

namespace mercer::testing {

using inference::MeanKind;
using inference::Observations;
using inference::Problem;

inline std::vector<std::string> approximations_of_regression() {
  std::vector<std::string> out;
  for (const auto& method : inference::methods())
    if (method.abilities.approximate) out.emplace_back(method.name);
  return out;
}

inline Matrix sparse_points(Index n, Index d, std::uint64_t seed) {
  Matrix x(n, d);
  Rng(seed, "sparse points").fill_normal(x);
  return x;
}

/// Base points apart from each other, where the kernels are smooth on the scale of a step.
inline Matrix base_on_a_grid() {
  Matrix base(9, 2);
  for (Index i = 0; i < 9; ++i)
    base.row(i) << -1.1 + 1.05 * static_cast<double>(i % 3) + 0.03 * static_cast<double>(i),
        -1.0 + 0.95 * static_cast<double>(i / 3);
  return base;
}

enum class Rows { plain, row_noise, replicates };

inline Observations sparse_rows(Index n, Index d = 2, Rows kind = Rows::plain) {
  Observations out{sparse_points(n, d, 3), Matrix(n, 1)};
  Rng rng(4, "sparse targets");
  for (Index i = 0; i < n; ++i)
    out.y(i, 0) = 0.5 + std::sin(2 * out.x(i, 0)) + 0.4 * out.x(i, d - 1) + 0.3 * rng.normal();
  Matrix u(n, 4);
  rng.fill_uniform(u);
  if (kind == Rows::row_noise) {
    out.noise.weight = 1 + 3 * u.col(0).array();
    out.noise.known = 0.1 * u.col(1);
  }
  if (kind == Rows::replicates) {  // each row stands for two
    out.noise.weight = Vector::Constant(n, 2);
    out.replicates = {Vector::Ones(n), Vector::Constant(n, std::log(2.0)), u.col(2)};
  }
  return out;
}

inline Problem sparse_problem(const std::string& kernel = "matern52:iso", Index d = 2,
                              MeanKind mean = MeanKind::zero, double lengthscale = 0.9) {
  auto k = kernels::Kernel::parse(kernel, d);
  k.set_all_lengthscales(lengthscale);
  k.set_all_variances(1.3);
  return {k, 0.07, mean};
}

/// The same with a lengthscale at which K(points, points) has this condition number.
inline Problem with_condition(Problem problem, const Matrix& points, double condition) {
  double low = std::log(1e-2), high = std::log(1e3);
  for (int i = 0; i < 22; ++i) {
    const double middle = 0.5 * (low + high);
    problem.kernel.set_all_lengthscales(std::exp(middle));
    const Matrix s = problem.kernel.reference_matrix(points, points);
    const Vector values = Eigen::SelfAdjointEigenSolver<Matrix>(s).eigenvalues();
    const bool worse = !(values(0) > 0) || values(values.size() - 1) / values(0) > condition;
    (worse ? high : low) = middle;
  }
  problem.kernel.set_all_lengthscales(std::exp(low));
  return problem;
}

inline inference::QueryBlock query_rows(const Problem& problem, const Matrix& x) {
  return {x, problem.basis(x), problem.kernel.diagonal(x)};
}

struct DenseAnswer {
  double evidence = 0;
  Vector mean, variance;
};

/// Of y ~ N(A beta, c) with the best beta, and f* with covariances `cross` (N x M) and `own` (M).
/// `weights_cross`: covariances that the mean goes by, where they are others (rra).
inline DenseAnswer dense_answer(const Problem& problem, const Observations& rows, const Matrix& c,
                                const Matrix& at, const Matrix& cross, const Vector& own,
                                const Matrix& weights_cross = {}) {
  const Matrix a = problem.basis(rows.x), a_new = problem.basis(at);
  const Eigen::LDLT<Matrix> factor(c);
  Vector r = rows.y.col(0);
  DenseAnswer out;
  Matrix covariance;
  Vector beta;
  if (a.cols() > 0) {
    const Matrix solved = factor.solve(a);
    covariance = (a.transpose() * solved).inverse();
    beta = covariance * (solved.transpose() * rows.y.col(0));
    r -= a * beta;
  }
  const Vector alpha = factor.solve(r);
  const auto n = static_cast<double>(rows.size());
  out.evidence = -0.5 * (r.dot(alpha) + factor.vectorD().array().log().sum() +
                         n * std::log(2 * std::numbers::pi)) +
                 rows.replicates.log_likelihood(problem.noise());
  out.mean = (weights_cross.size() > 0 ? weights_cross : cross).transpose() * alpha;
  const Matrix solved = factor.solve(cross);
  out.variance = own - cross.cwiseProduct(solved).colwise().sum().transpose();
  if (a.cols() > 0) {
    out.mean += a_new * beta;
    const Matrix rest = a_new - solved.transpose() * a;
    out.variance += (rest * covariance).cwiseProduct(rest).rowwise().sum();
  }
  return out;
}

inline DenseAnswer dense_exact(const Problem& problem, const Observations& rows, const Matrix& at) {
  Matrix c = problem.kernel.reference_matrix(rows.x, rows.x);
  c.diagonal() += rows.noise.at(problem.noise()).vector(rows.size());
  return dense_answer(problem, rows, c, at, problem.kernel.reference_matrix(rows.x, at),
                      problem.kernel.diagonal(at));
}

/// A method of the family with these base points; `block_of_row` for pitc and pic, and for pic
/// `block_of_new`, the block of each row of `at`.
inline DenseAnswer dense_sparse(const std::string& method, const Problem& problem,
                                const Observations& rows, const Matrix& base, const Matrix& at,
                                const std::vector<Index>& block_of_row = {},
                                const std::vector<Index>& block_of_new = {}) {
  const auto& kernel = problem.kernel;
  const Index n = rows.size();
  const Eigen::LDLT<Matrix> s_bb(kernel.reference_matrix(base, base));
  const Matrix s_bn = kernel.reference_matrix(base, rows.x);
  const Matrix s_bm = kernel.reference_matrix(base, at);
  const Matrix k = kernel.reference_matrix(rows.x, rows.x);
  const Matrix k_new = kernel.reference_matrix(rows.x, at);
  const Matrix q = s_bn.transpose() * s_bb.solve(s_bn);
  const Matrix q_new = s_bn.transpose() * s_bb.solve(s_bm);
  const Vector d = rows.noise.at(problem.noise()).vector(n);
  Matrix c = q;
  Matrix cross = q_new;
  Vector own = kernel.diagonal(at);
  if (method == "fitc") c.diagonal() = k.diagonal();
  if (method == "pitc" || method == "pic")
    for (Index i = 0; i < n; ++i) {
      const auto mine = block_of_row[static_cast<std::size_t>(i)];
      for (Index j = 0; j < n; ++j)
        if (block_of_row[static_cast<std::size_t>(j)] == mine) c(i, j) = k(i, j);
      for (Index j = 0; method == "pic" && j < at.rows(); ++j)
        if (block_of_new[static_cast<std::size_t>(j)] == mine) cross(i, j) = k_new(i, j);
    }
  c.diagonal() += d;
  if (method == "srm") own = (s_bm.cwiseProduct(s_bb.solve(s_bm))).colwise().sum().transpose();
  auto out = dense_answer(problem, rows, c, at, cross, own, method == "rra" ? k_new : Matrix());
  if (method == "vfe") out.evidence -= 0.5 * ((k - q).diagonal().array() / d.array()).sum();
  return out;
}

/// Moments of a posterior at the rows of `at`.
inline inference::Moments moments_at(const Problem& problem,
                                     const inference::SparsePosterior& posterior, const Matrix& at,
                                     const inference::SparseQueryOptions& options = {}) {
  return inference::sparse_query(problem, posterior, options)->moments(query_rows(problem, at), {});
}

/// The derivative at 0 by differences of fourth order.
template <class Value>
double slope_of(const Value& value, double step) {
  return (8 * (value(step) - value(-step)) - (value(2 * step) - value(-2 * step))) / (12 * step);
}

}  // namespace mercer::testing
