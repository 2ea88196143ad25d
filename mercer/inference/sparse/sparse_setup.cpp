#include "mercer/inference/sparse/sparse_setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "mercer/approximations/landmarks.hpp"
#include "mercer/approximations/rpcholesky.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::inference {
namespace {

constexpr Index kUsualBasePoints = 1000;
// Numbers in the N x m array that rpcholesky and kmeans work on, at most: 512 MB.
constexpr Index kMostValues = Index{1} << 26;

constexpr std::array kAllBlocksBy = {BlocksBy::tree, BlocksBy::random};

Matrix rows_of(ConstMatrixView x, const std::vector<Index>& which) {
  Matrix out(static_cast<Index>(which.size()), x.cols());
  for (Index i = 0; i < out.rows(); ++i) out.row(i) = x.row(which[static_cast<std::size_t>(i)]);
  return out;
}

/// Rows that base points are chosen among: all, or a random part whose columns fit into memory.
std::vector<Index> candidates(Index rows, Index count, std::uint64_t seed) {
  const Index most = std::max(kMostValues / std::max<Index>(count, 1), 4 * count);
  std::vector<Index> all(static_cast<std::size_t>(rows));
  std::iota(all.begin(), all.end(), Index{0});
  if (rows <= most) return all;
  auto some = Rng(seed, "candidates for base points").permutation(rows);
  some.resize(static_cast<std::size_t>(most));
  std::sort(some.begin(), some.end());
  return some;
}

std::vector<Index> chosen_among(const operators::KernelOperator& k, const std::string& how,
                                Index count, std::uint64_t seed) {
  if (how == "rpcholesky") {
    approximations::RpCholesky factor(k, {.rank = count, .seed = seed});
    factor.grow(count);
    return factor.pivots();
  }
  const auto choice =
      how == "kmeans" ? approximations::Landmarks::kmeans : approximations::Landmarks::uniform;
  return approximations::choose_landmarks(k, {.count = count, .choice = choice, .seed = seed})
      .points;
}

void check_base_choice(const std::string& name) {
  const auto names = base_choices();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw InvalidArgument(fmt::format("there is no choice '{}' of base points; there are: {}", name,
                                      fmt::join(names, ", ")));
}

}  // namespace

std::string_view to_string(BlocksBy by) { return by == BlocksBy::tree ? "tree" : "random"; }

BlocksBy blocks_by(std::string_view name) {
  for (const auto by : kAllBlocksBy)
    if (to_string(by) == name) return by;
  throw InvalidArgument(fmt::format("there are no blocks by '{}'; there are: {}", name,
                                    fmt::join(blocks_by_names(), ", ")));
}

std::vector<std::string_view> blocks_by_names() {
  std::vector<std::string_view> names;
  names.reserve(kAllBlocksBy.size());
  for (const auto by : kAllBlocksBy) names.push_back(to_string(by));
  return names;
}

std::vector<std::string> base_choices() { return {"auto", "random", "kmeans", "rpcholesky"}; }

Index base_count(Index rows, const SparseSetup& setup) {
  const Index count = setup.rank.value_or(std::min(rows, kUsualBasePoints));
  if (count < 1) throw InvalidArgument(fmt::format("`rank` must be positive, not {}", count));
  if (count > rows)
    throw InvalidArgument(fmt::format(
        "`rank={}` asks for more base points than there are distinct rows ({})", count, rows));
  return count;
}

std::vector<Index> choose_base_rows(const kernels::Kernel& kernel, ConstMatrixView x,
                                    const SparseSetup& setup, std::uint64_t seed) {
  check_base_choice(setup.base);
  const Index count = base_count(x.rows(), setup);
  const std::string how = setup.base == "auto" ? "rpcholesky" : setup.base;
  if (how == "random") {  // among all rows, whatever their number: no kernel value is needed
    const operators::TiledOperator k(kernel, Matrix(x));
    return chosen_among(k, how, count, seed);
  }
  const auto among = candidates(x.rows(), count, seed);
  const operators::TiledOperator k(kernel, rows_of(x, among));
  auto chosen = chosen_among(k, how, count, seed);
  for (auto& row : chosen) row = among[static_cast<std::size_t>(row)];
  return chosen;
}

void check_base(ConstMatrixView points, Index d) {
  if (points.rows() == 0) throw InvalidArgument("base points: there is none");
  if (points.cols() != d)
    throw DimensionMismatch("base points: columns", points.cols(), "inputs of the kernel", d);
  if (!points.allFinite()) throw InvalidArgument("base points: a number is not finite");
  std::vector<Index> order(static_cast<std::size_t>(points.rows()));
  std::iota(order.begin(), order.end(), Index{0});
  const auto compare = [&](Index a, Index b) {
    for (Index c = 0; c < points.cols(); ++c)
      if (points(a, c) != points(b, c)) return points(a, c) < points(b, c) ? -1 : 1;
    return 0;
  };
  std::sort(order.begin(), order.end(), [&](Index a, Index b) {
    const int by_values = compare(a, b);
    return by_values != 0 ? by_values < 0 : a < b;
  });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (compare(order[i - 1], order[i]) == 0)
      throw InvalidArgument(
          fmt::format("base points: rows {} and {} are the same point, which makes their "
                      "covariance singular; leave "
                      "one of them out",
                      order[i - 1] + 1, order[i] + 1));
}

Matrix choose_base(const kernels::Kernel& kernel, ConstMatrixView x, const SparseSetup& setup,
                   std::uint64_t seed) {
  if (setup.points.size() == 0) return rows_of(x, choose_base_rows(kernel, x, setup, seed));
  check_base(setup.points, x.cols());
  if (setup.rank && *setup.rank != setup.points.rows())
    throw InvalidArgument(fmt::format("`rank={}` does not agree with the {} base points given",
                                      *setup.rank, setup.points.rows()));
  return setup.points;
}

Index block_count(Index rows, const SparseSetup& setup, Index usual) {
  const Index count = setup.blocks.value_or((rows + usual - 1) / std::max<Index>(usual, 1));
  if (count < 1 && rows > 0)
    throw InvalidArgument(fmt::format("`blocks` must be positive, not {}", count));
  if (count > rows)
    throw InvalidArgument(fmt::format(
        "`blocks={}` asks for more blocks than there are distinct rows ({})", count, rows));
  return count;
}

approximations::Clusters choose_blocks(const kernels::Kernel& kernel, ConstMatrixView x,
                                       const SparseSetup& setup, Index usual, std::uint64_t seed) {
  const Index rows = x.rows(), count = block_count(rows, setup, usual);
  if (setup.blocks_by == BlocksBy::tree) return approximations::clusters(kernel, x, count);
  approximations::Clusters out;
  out.order = Rng(seed, "random blocks").permutation(rows);
  for (Index b = 0; b <= count; ++b) out.offsets.push_back(b * rows / count);
  for (Index b = 0; b < count; ++b)
    std::sort(out.order.begin() + out.offsets[static_cast<std::size_t>(b)],
              out.order.begin() + out.offsets[static_cast<std::size_t>(b) + 1]);
  return out;
}

}  // namespace mercer::inference
