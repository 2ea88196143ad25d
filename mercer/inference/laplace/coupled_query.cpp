#include "mercer/inference/laplace/coupled_query.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace {

// A variance may be off by this share of the prior variance because its solve is left early.
constexpr double kVarianceShare = 1e-4;

void stop_if(Action action) {
  if (action == Action::stop) throw Interrupted("interrupted while predicting");
}

void require(const SystemReport& report, double tolerance) {
  if (report.stop == StopReason::interrupted) throw Interrupted("interrupted while predicting");
  if (report.stop != StopReason::converged)
    throw ToleranceNotReached(fmt::format(
        "the covariances of coupled functions were not found to tolerance {:.1e}: {} after {} "
        "iterations, relative residual {:.1e}; use `solver=cholesky`, a looser `tolerance`, or "
        "`variance=none`",
        tolerance, to_string(report.stop), report.iterations, report.relative_residual));
}

}  // namespace

CoupledQuery::CoupledQuery(CoupledPosterior posterior, CoupledQueryOptions options)
    : posterior_(std::move(posterior)), options_(std::move(options)) {
  if (options_.variance == CoupledVariance::none && options_.joint_samples == 0) return;
  const auto& kernel = posterior_.problem.kernel;
  prior_sd_ = std::sqrt(kernel.diagonal(posterior_.x).maxCoeff());
  if (options_.system.direct())
    system_ = std::make_unique<DenseLaplaceSystem>(kernel, posterior_.x);
  else
    system_ = std::make_unique<IterativeLaplaceSystem>(kernel, posterior_.x, options_.system);
  system_->set_curvature({posterior_.w, true});
}
CoupledQuery::~CoupledQuery() = default;

// r'B^-1 r <= |r|^2 is what a variance may be off by.
double CoupledQuery::tolerance_for(ConstMatrixView b) const {
  const double largest = std::max(b.colwise().norm().maxCoeff(), 1e-300);
  return options_.tolerance.value_or(
      std::clamp(std::sqrt(kVarianceShare) * prior_sd_ / largest, 1e-10, 1e-2));
}

// u = R B^-1 (R'f0 + e); columns run over functions, then draws.
Matrix CoupledQuery::update_of(const Matrix& prior, const QueryProgress& progress,
                               std::int64_t& matvecs) {
  const Index n = prior.rows(), c = posterior_.a.cols(), count = prior.cols() / c;
  const Observer observer = [&](const Iteration&) {
    return progress ? progress(0) : Action::proceed;
  };
  Matrix b = system_->root().transposed_times(prior), x = Matrix::Zero(n * c, count);
  Eigen::Map<Matrix> stacked(b.data(), n * c, count);
  Vector e(n * c);
  for (Index s = 0; s < count; ++s) {
    Rng(options_.seed, "coupled noise", static_cast<std::uint64_t>(s)).fill_normal(e);
    stacked.col(s) += e;
  }
  const double tolerance = tolerance_for(stacked);
  const Index block = std::max<Index>(1, options_.block_rows * c);
  for (Index first = 0; first < count; first += block) {
    const Index columns = std::min(block, count - first);
    const auto report = system_->solve(stacked.middleCols(first, columns),
                                       x.middleCols(first, columns), tolerance, observer);
    matvecs += report.matvecs;
    require(report, tolerance);
  }
  return system_->root().times(unstacked(x, n));
}

const PathwiseDraws& CoupledQuery::make_draws(const QueryProgress& progress,
                                              std::int64_t& matvecs) {
  if (draws_) return *draws_;
  const Index count = options_.variance == CoupledVariance::samples
                          ? std::max(options_.draws, options_.joint_samples)
                          : options_.joint_samples;
  const PathwiseOptions wanted{.count = count * posterior_.a.cols(), .seed = options_.seed};
  return draws_.emplace(posterior_.problem, posterior_.x, wanted,
                        [&](const Matrix& prior) { return update_of(prior, progress, matvecs); });
}

// Deviations are from the mean, which is known: no degree of freedom is spent on it.
void CoupledQuery::sample_covariance(ConstMatrixView deviations, Moments& out) const {
  const Index c = posterior_.a.cols(), count = deviations.cols() / c;
  out.covariance = Matrix::Zero(deviations.rows(), c * c);
  for (Index s = 0; s < count; ++s)
    for (Index d = 0; d < c; ++d)
      for (Index j = 0; j < c; ++j)
        out.covariance.col(j + c * d) +=
            deviations.col(s * c + j).cwiseProduct(deviations.col(s * c + d));
  out.covariance /= static_cast<double>(count);
}

// Variances from the covariances, raised where they are rounding.
void CoupledQuery::settle(const Vector& prior, Moments& out) const {
  const Index c = posterior_.a.cols();
  out.variance.resize(prior.size(), c);
  for (Index i = 0; i < prior.size(); ++i)
    for (Index j = 0; j < c; ++j) {
      double& variance = out.covariance(i, j + c * j);
      out.clamped += raise_to_floor(variance, prior(i));
      out.variance(i, j) = variance;
    }
  out.sd_error_bound.reset();
}

Moments CoupledQuery::exact_variances(const QueryBlock& block, const QueryProgress& progress) {
  const Index m = block.x.rows(), c = posterior_.a.cols();
  Moments out;
  out.covariance.resize(m, c * c);
  for (Index first = 0; first < m; first += options_.block_rows) {
    const Index rows = std::min(options_.block_rows, m - first);
    const double done = static_cast<double>(first) / static_cast<double>(m);
    if (progress) stop_if(progress(done));
    Matrix cross(posterior_.x.rows(), rows);
    operators::cross_matrix(posterior_.problem.kernel, posterior_.x,
                            block.x.middleRows(first, rows), cross);
    // |R'k*| is at most |S k*| of the largest weight.
    const double tolerance = tolerance_for(std::sqrt(posterior_.w.maxCoeff()) * cross);
    const auto explained = system_->explained(cross, tolerance, [&](const Iteration&) {
      return progress ? progress(done) : Action::proceed;
    });
    out.matvecs += explained.report.matvecs;
    require(explained.report, tolerance);
    for (Index d = 0; d < c; ++d)
      for (Index j = 0; j < c; ++j) {
        auto entry = out.covariance.col(j + c * d).segment(first, rows);
        entry = -0.5 * (explained.blocks.col(j + c * d) + explained.blocks.col(d + c * j));
        if (j == d) entry += block.prior.segment(first, rows);
      }
  }
  settle(block.prior, out);
  return out;
}

// Each solve begins anew, because explained() keeps nothing; a second one is seldom needed.
CheckedVariances CoupledQuery::check_some(const QueryBlock& block, ConstMatrixView sd,
                                          const Observer& observer) {
  const Index m = block.x.rows(), c = posterior_.a.cols();
  Matrix cross(posterior_.x.rows(), m);
  operators::cross_matrix(posterior_.problem.kernel, posterior_.x, block.x, cross);
  CheckTolerance tolerance(tolerance_for(std::sqrt(posterior_.w.maxCoeff()) * cross),
                           options_.tolerance);
  CheckedVariances out;
  out.variance.resize(m, c);
  while (true) {
    const auto explained = system_->explained(cross, tolerance.value(), observer);
    const auto& report = explained.report;
    out.matvecs += report.matvecs;
    out.iterations += report.iterations;
    if (report.stop == StopReason::interrupted) throw Interrupted("interrupted while predicting");
    for (Index j = 0; j < c; ++j)
      for (Index i = 0; i < m; ++i) {
        out.variance(i, j) = block.prior(i) - explained.blocks(i, j + c * j);
        raise_to_floor(out.variance(i, j), block.prior(i));
      }
    out.truncated = out.bound = explained.truncated;
    if (report.energy_errors.size() == m * c)
      out.truncated =
          out.bound.cwiseMin(Eigen::Map<const Matrix>(report.energy_errors.data(), m, c));
    if (tolerance.suffices(sd, out.variance, out.truncated) || report.stop != StopReason::converged)
      return out;
  }
}

CheckedVariances CoupledQuery::check_variances(const QueryBlock& block, ConstMatrixView sd,
                                               const QueryProgress& progress) {
  const Index m = block.x.rows(), c = posterior_.a.cols();
  const Observer observer = [&](const Iteration&) {
    return progress ? progress(-1) : Action::proceed;
  };
  CheckedVariances out{Matrix(m, c), Matrix(m, c), Matrix(m, c)};
  for (Index first = 0; first < m; first += options_.block_rows) {
    const Index rows = std::min(options_.block_rows, m - first);
    if (progress) stop_if(progress(-1));
    out.put(first, 0, check_some(block.rows(first, rows), sd.middleRows(first, rows), observer));
  }
  return out;
}

Moments CoupledQuery::moments(const QueryBlock& block, const QueryProgress& progress) {
  const Index m = block.x.rows(), c = posterior_.a.cols(), n = options_.joint_samples;
  Matrix mean(m, c), deviations(m, 0);
  operators::cross_apply(posterior_.problem.kernel, block.x, posterior_.x, posterior_.a,
                         operators::Precision::float64, mean);
  mean.rowwise() += posterior_.offset.transpose();
  std::int64_t matvecs = 0;
  if (n > 0 || options_.variance == CoupledVariance::samples)
    deviations = make_draws(progress, matvecs).deviations(block.x);
  Moments out;
  if (options_.variance == CoupledVariance::exact) {
    out = exact_variances(block, progress);
  } else if (options_.variance == CoupledVariance::samples) {
    sample_covariance(deviations, out);
    settle(block.prior, out);
  }
  out.mean = std::move(mean);
  out.error_bound = block.prior.cwiseSqrt() * posterior_.bound_per_prior_sd.transpose();
  out.matvecs += matvecs;
  out.deviations.resize(m, c * n);
  for (Index j = 0; j < c; ++j)
    for (Index s = 0; s < n; ++s) out.deviations.col(j * n + s) = deviations.col(s * c + j);
  return out;
}

// K, the factors, U'H U and two at work while it is built.
double CoupledQuery::factor_bytes(Index n, Index functions) {
  return 8.0 * static_cast<double>(n) * static_cast<double>(n) *
         (4.0 + static_cast<double>(functions));
}

double CoupledQuery::factor_flops(Index n, Index functions) {
  const auto size = static_cast<double>(n);
  return size * size * size * (static_cast<double>(functions) + 1.0 / 3);
}

double CoupledQuery::row_flops(Index n, Index functions) {
  return 5.0 * static_cast<double>(functions) * static_cast<double>(n) * static_cast<double>(n);
}

// k*, a scaled copy and two at work, and g of every function.
double CoupledQuery::factored_row_bytes(Index n, Index functions) {
  return 8.0 * static_cast<double>(n) * (4.0 + static_cast<double>(functions));
}

// The prior, the right-hand side, the solution, its update and three copies in a solve.
double CoupledQuery::draw_bytes(Index n, Index functions) {
  return 56.0 * static_cast<double>(n) * static_cast<double>(functions);
}

// Ten blocks of C right-hand sides of N C entries.
double CoupledQuery::row_bytes(Index n, Index functions) {
  const auto count = static_cast<double>(functions);
  return 80.0 * count * count * static_cast<double>(n);
}

}  // namespace mercer::inference
