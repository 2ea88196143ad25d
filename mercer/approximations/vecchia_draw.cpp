#include "mercer/approximations/vecchia_draw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "mercer/approximations/detail/point_set_problem.hpp"
#include "mercer/core/count_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/threads.hpp"

namespace mercer::approximations {
namespace {

constexpr Index draws_to_a_task = 64;
constexpr Index rows_to_a_block = 8192;  // rows of G in memory at once

/// The rows of G of one block, made in parallel.
class BlockOfRows {
 public:
  BlockOfRows(const kernels::Kernel& kernel, const Matrix& x, double s2, Index most)
      : kernel_(kernel), x_(x), s2_(s2), rows_(most + 1, std::min(rows_to_a_block, x.rows())) {}

  /// Returns the number of rows that needed a raised diagonal.
  Index make(const Neighbours& neighbours) {
    const Index count = neighbours.points;
    const Index tasks = (count + draws_to_a_task - 1) / draws_to_a_task;
    std::vector<Index> raised(static_cast<std::size_t>(tasks), 0);
    parallel_for(tasks, [&](Index task, int) {
      detail::PointSetProblem problem(kernel_, x_);
      Vector noise;
      for (Index k = task * draws_to_a_task; k < std::min(count, (task + 1) * draws_to_a_task);
           ++k) {
        const Index i = neighbours.first + k;
        problem.gather(neighbours.of(i), i);
        noise.setConstant(problem.size(), s2_);
        if (!problem.factorise(noise)) ++raised[static_cast<std::size_t>(task)];
        rows_.col(k).head(problem.size()) = problem.g();
      }
    });
    Index sum = 0;
    for (const Index r : raised) sum += r;
    return sum;
  }

  /// Forward substitution G z = z over the block; z is in the order of the factorisation.
  void solve(const Neighbours& neighbours, Vector& z) const {
    for (Index k = 0; k < neighbours.points; ++k) {
      const Index i = neighbours.first + k;
      const auto before = neighbours.of(i);
      const auto m = static_cast<Index>(before.size());
      double sum = z(i);
      for (Index j = 0; j < m; ++j) sum -= rows_(j, k) * z(before[static_cast<std::size_t>(j)]);
      z(i) = sum / rows_(m, k);
    }
  }

 private:
  const kernels::Kernel& kernel_;
  const Matrix& x_;
  double s2_;
  Matrix rows_;  // a row of G in each column: neighbours, then the point itself
};

}  // namespace

VecchiaDraw vecchia_draw(const kernels::Kernel& kernel, const Matrix& x, double s2,
                         const VecchiaDrawOptions& options, const DrawObserver& observer) {
  validate(options);
  linalg::Diagonal(s2).require_positive("vecchia draw");
  const Index n = x.rows();
  const auto order = Rng(options.seed, "vecchia draw order").permutation(n);
  Matrix ordered(n, x.cols());
  for (Index c = 0; c < x.cols(); ++c)
    for (Index i = 0; i < n; ++i) ordered(i, c) = x(order[static_cast<std::size_t>(i)], c);
  auto how = options.search;
  how.count = options.neighbours;
  const NeighbourSearch search({kernel, ordered, s2}, how);

  VecchiaDraw out;
  out.neighbours = std::max<Index>(0, std::min(options.neighbours, n - 1));
  Vector z(n);
  Rng(options.seed, "vecchia draw").fill_normal(z);
  BlockOfRows rows(kernel, ordered, s2, out.neighbours);
  for (Index first = 0; first < n; first += rows_to_a_block) {
    if (observer && observer(first) == Action::stop)
      throw Interrupted(fmt::format("interrupted after {} of {} points were drawn",
                                    count_text(first), count_text(n)));
    const auto neighbours = search.find(first, std::min(n, first + rows_to_a_block));
    out.raised += rows.make(neighbours);
    rows.solve(neighbours, z);
  }
  out.values.resize(n);
  for (Index i = 0; i < n; ++i) out.values(order[static_cast<std::size_t>(i)]) = z(i);
  return out;
}

double vecchia_draw_bytes(Index n, Index d, Index neighbours) {
  const auto points = static_cast<double>(n), inputs = static_cast<double>(d);
  const auto m = static_cast<double>(std::min(neighbours, std::max<Index>(n - 1, 0)));
  const auto block = static_cast<double>(std::min(n, rows_to_a_block));
  // Points in order, their coordinates in float32 three times (at most two per input), order,
  // values and the trees; then rows, neighbours and candidates of a block.
  return points * (8 * inputs + 24 * inputs + 8 + 8 + 32) + block * (8 * (m + 1) + 4 * 5 * m);
}

}  // namespace mercer::approximations
