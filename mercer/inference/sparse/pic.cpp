// Partially independent conditional: pitc, and a new point joins the block of rows it lies in. With
// v* = L_bb^-1 k_b*, the block s, e = K_s* - Q_s*, g = V_s Lambda_s^-1 e and t = L_B^-1 (v* - g)
//     mean     = a*'beta + v*'mean_weights + e'alpha_s,     alpha = C^-1 (y - A beta)
//     variance = k** - v*'v* - e'Lambda_s^-1 e + |t|^2 + r*'beta_covariance r*,
//     r*       = a* - A_s'Lambda_s^-1 e - U_A't.
// A new point lies in the block whose box of inputs is nearest, and of several the one whose centre
// is; distances are those that the kernel sees.
//   Source: Snelson & Ghahramani (2007).
//   Cost:   of pitc; a prediction m^2 + B m + B^2 flops and m + B kernel values. Blocks are
//   prepared
//           when a point first lies in them, N (m^2 + B m + B^2/3) flops in all, and kept up to 1
//           GB.
//   When not: blocks are random: a point is then close to no block more than to another.
#include <algorithm>
#include <limits>
#include <map>

#include "mercer/core/error.hpp"
#include "mercer/inference/entries.hpp"
#include "mercer/inference/sparse/queries.hpp"
#include "mercer/inference/sparse/reduced.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/linalg/panels.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace {

using linalg::Transpose;

constexpr double kKeptBytes = 1073741824.0;

// alpha = C^-1 r = Lambda^-1 (r - V'mean_weights), block by block.
void keep_blocks(const Problem& at, const Observations& rows, const BaseFactor& base,
                 const SparseSolution& solution, SparsePosterior& out) {
  out.x = rows.x;
  out.noise = rows.noise.at(at.noise()).vector(rows.size());
  out.weights.resize(rows.size());
  for (Index b = 0; b < out.blocks.count(); ++b) {
    const auto which = out.blocks.block(b);
    const auto s = slice_of(at, rows.rows(which), 0, static_cast<Index>(which.size()));
    const Matrix v = base.whitened(s.x);
    const Matrix l = block_factor(at.kernel, s.x, v, s.noise);
    Vector alpha = s.y - v * solution.mean_weights;
    if (s.basis.cols() > 0) alpha -= s.basis * solution.beta;
    linalg::solve_lower(l, Transpose::no, alpha);
    linalg::solve_lower(l, Transpose::yes, alpha);
    for (std::size_t i = 0; i < which.size(); ++i)
      out.weights(which[i]) = alpha(static_cast<Index>(i));
  }
}

ReducedMethod pic_method() {
  return {.name = "pic", .model = {.lambda = Unexplained::blocks}, .keep_rows = keep_blocks};
}

/// Boxes and centres of the blocks, in the units of the kernel.
class BlockFinder {
 public:
  BlockFinder(const kernels::Kernel& kernel, const Matrix& x,
              const approximations::Clusters& blocks)
      : scale_(approximations::shortest_lengthscales(kernel).cwiseInverse()) {
    const Index count = blocks.count(), d = x.cols();
    low_ = Matrix::Constant(d, count, std::numeric_limits<double>::infinity());
    high_ = -low_;
    centre_ = Matrix::Zero(d, count);
    for (Index b = 0; b < count; ++b) {
      const auto which = blocks.block(b);
      for (const Index i : which) {
        const Vector point = x.row(i).transpose();
        low_.col(b) = low_.col(b).cwiseMin(point);
        high_.col(b) = high_.col(b).cwiseMax(point);
        centre_.col(b) += point / static_cast<double>(which.size());
      }
    }
  }

  Index block_of(const Vector& point) const {
    Index best = 0;
    double best_box = std::numeric_limits<double>::infinity(), best_centre = best_box;
    for (Index b = 0; b < low_.cols(); ++b) {
      const double box =
          (scale_.array() *
           ((low_.col(b) - point).cwiseMax(point - high_.col(b))).cwiseMax(0.0).array())
              .matrix()
              .squaredNorm();
      const double centre = (point - centre_.col(b)).cwiseProduct(scale_).squaredNorm();
      if (box < best_box || (box == best_box && centre < best_centre)) {
        best = b;
        best_box = box;
        best_centre = centre;
      }
    }
    return best;
  }

 private:
  Vector scale_;  // 0 for inputs that the kernel does not see
  Matrix low_, high_, centre_;
};

/// A block of rows, ready for predictions.
struct PreparedBlock {
  Matrix x, v, l;  // rows, V', factor of Lambda_s
  Matrix basis;
  Vector alpha;
  double bytes() const {
    return 8.0 * static_cast<double>(x.size() + v.size() + l.size() + basis.size());
  }
};

class PicQuery final : public SparseQuery {
 public:
  PicQuery(const Problem& problem, const SparsePosterior& posterior,
           const SparseQueryOptions& options)
      : problem_(problem),
        posterior_(posterior),
        options_(options),
        base_(problem.kernel, posterior.base, posterior.jitter),
        finder_(problem.kernel, posterior.x, posterior.blocks) {}

  Moments moments(const QueryBlock& block, const QueryProgress& progress) override;

 private:
  PreparedBlock prepare(Index number) const;
  void predict(const PreparedBlock& s, const QueryBlock& rows, Vector& mean,
               Vector& variance) const;

  const Problem& problem_;
  const SparsePosterior& posterior_;
  SparseQueryOptions options_;
  BaseFactor base_;
  BlockFinder finder_;
  std::map<Index, PreparedBlock> kept_;
  double kept_bytes_ = 0;
};

PreparedBlock PicQuery::prepare(Index number) const {
  auto rows = stored_block(problem_, posterior_, number);
  PreparedBlock out{std::move(rows.x), {}, {}, std::move(rows.basis), std::move(rows.y)};
  out.v = base_.whitened(out.x);
  out.l = block_factor(problem_.kernel, out.x, out.v, rows.noise);
  return out;
}

void PicQuery::predict(const PreparedBlock& s, const QueryBlock& rows, Vector& mean,
                       Vector& variance) const {
  const auto& f = posterior_.functions[0];
  const bool trend = f.beta.size() > 0;
  Matrix v = base_.whitened(rows.x);
  Matrix e(s.x.rows(), rows.x.rows());
  operators::cross_matrix(problem_.kernel, s.x, rows.x, e);
  linalg::gemm(-1.0, s.v, Transpose::no, v, Transpose::yes, 1.0, e);
  mean = v * f.mean_weights + e.transpose() * s.alpha;
  mean.array() += f.offset;
  if (trend) mean += rows.basis * f.beta;
  if (!options_.variance) return;
  Vector left = rows.prior - linalg::squared_rows(v);
  linalg::solve_lower(s.l, Transpose::no, e);
  left -= e.colwise().squaredNorm().transpose();
  linalg::solve_lower(s.l, Transpose::yes, e);                        // Lambda_s^-1 e
  linalg::gemm(-1.0, e, Transpose::yes, s.v, Transpose::no, 1.0, v);  // v* - g
  linalg::solve_lower_right(f.factor, Transpose::yes, v);
  variance = left.cwiseMax(0.0) + linalg::squared_rows(v);
  if (!trend) return;
  const Matrix r = rows.basis - e.transpose() * s.basis - v * f.trend_weights;
  variance += (r * f.beta_covariance).cwiseProduct(r).rowwise().sum();
}

Moments PicQuery::moments(const QueryBlock& block, const QueryProgress& progress) {
  const Index rows = block.x.rows();
  auto out = empty_moments(rows, 1, options_.variance);
  std::map<Index, std::vector<Index>> members;
  for (Index i = 0; i < rows; ++i)
    members[finder_.block_of(block.x.row(i).transpose())].push_back(i);
  Index done = 0;
  for (const auto& [number, which] : members) {
    const auto found = kept_.find(number);
    PreparedBlock fresh;
    if (found == kept_.end()) fresh = prepare(number);
    const PreparedBlock& s = found == kept_.end() ? fresh : found->second;
    for (std::size_t first = 0; first < which.size(); first += kSparseRows) {
      const auto n = static_cast<Index>(std::min<std::size_t>(kSparseRows, which.size() - first));
      QueryBlock some{Matrix(n, block.x.cols()), Matrix(n, block.basis.cols()), Vector(n)};
      for (Index i = 0; i < n; ++i) {
        const Index row = which[first + static_cast<std::size_t>(i)];
        some.x.row(i) = block.x.row(row);
        some.basis.row(i) = block.basis.row(row);
        some.prior(i) = block.prior(row);
      }
      Vector mean, variance;
      predict(s, some, mean, variance);
      for (Index i = 0; i < n; ++i) {
        const Index row = which[first + static_cast<std::size_t>(i)];
        out.mean(row, 0) = mean(i);
        if (options_.variance) out.variance(row, 0) = variance(i);
      }
    }
    if (found == kept_.end() && kept_bytes_ + fresh.bytes() <= kKeptBytes) {
      kept_bytes_ += fresh.bytes();
      kept_.emplace(number, std::move(fresh));
    }
    done += static_cast<Index>(which.size());
    if (progress && progress(static_cast<double>(done) / static_cast<double>(rows)) == Action::stop)
      throw Interrupted("interrupted while predicting");
  }
  raise_variances(block, out);
  return out;
}

}  // namespace

std::unique_ptr<Query> make_pic_query(const Problem& problem, const SparsePosterior& posterior,
                                      const SparseQueryOptions& options) {
  return std::make_unique<PicQuery>(problem, posterior, options);
}

InferenceInfo pic_info() {
  return {.name = "pic",
          .summary = "approximate: pitc, and new points join the block they lie in",
          .abilities = {.evidence = EvidenceBy::factorisation,
                        .approximate = true,
                        .kind = EvidenceKind::approximate,
                        .evidence_of = pitc_info().name,
                        .base = true,
                        .blocks = true},
          .refusal = sparse_needs_gaussian_noise,
          .takes_solver = is_cholesky,
          .cost = [](const CostSetting& s) { return reduced_cost(pic_method(), s); },
          .make = [](const InferenceSetup& setup) { return make_reduced(pic_method(), setup); }};
}

}  // namespace mercer::inference
