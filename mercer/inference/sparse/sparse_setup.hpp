// Base points and blocks of the sparse approximations: how many, which, and who chose them.
//   rpcholesky  pivots of a randomly pivoted Cholesky factorisation
//   (approximations/rpcholesky.hpp):
//               each next point where the prior given those before is uncertain. The default.
//   kmeans      k-means++ seeding in the geometry of the kernel (approximations/landmarks.hpp).
//   random      distinct rows, all equally likely.
//   Cost:       N m^2 flops and 8 N m bytes for rpcholesky, N m kernel values and 8 N m bytes for
//               kmeans. Where that is more than 512 MB they choose among a random part of the rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mercer/approximations/clusters.hpp"
#include "mercer/kernels/kernel.hpp"

MERCER_API_BEGIN
namespace mercer::inference {

enum class BlocksBy { tree, random };
std::string_view to_string(BlocksBy by);
/// Throws InvalidArgument that lists the names there are.
BlocksBy blocks_by(std::string_view name);
std::vector<std::string_view> blocks_by_names();

struct SparseSetup {
  /// Base points (subset: rows); unset: min(N, 1000). bcm with base=auto: so many of the points
  /// that are asked for are base points together; unset: 1000.
  std::optional<Index> rank;
  /// A name of base_choices(); auto is rpcholesky (bcm: the points that are asked for).
  std::string base = "auto";
  Matrix points;                // given base points, on the scale of the model; empty: chosen
  std::optional<Index> blocks;  // unset: of about 1,000 rows each; pitc and pic: of at most m rows
  BlocksBy blocks_by = BlocksBy::tree;
};

/// auto, random, kmeans, rpcholesky.
std::vector<std::string> base_choices();

/// min(N, 1000) unless the setup says how many. Throws InvalidArgument when that is more than there
/// are rows.
Index base_count(Index rows, const SparseSetup& setup);

/// Rows of x whose points are the base points, distinct. Fewer than were asked for when the kernel
/// leaves nothing to be explained by more, to rounding. Throws InvalidArgument when more are asked
/// for than there are rows.
std::vector<Index> choose_base_rows(const kernels::Kernel& kernel, ConstMatrixView x,
                                    const SparseSetup& setup, std::uint64_t seed);
/// The base points, m x d: those given, or chosen from the rows of x. Throws InvalidArgument for a
/// rank above the number of rows, for duplicates among given points and for a wrong number of
/// their columns.
Matrix choose_base(const kernels::Kernel& kernel, ConstMatrixView x, const SparseSetup& setup,
                   std::uint64_t seed);
/// Throws InvalidArgument when points cannot be base points of a kernel of d inputs: no row, other
/// columns, numbers that are not finite, equal rows.
void check_base(ConstMatrixView points, Index d);

/// The rows in blocks, of `usual` rows each at most unless the setup says how many. Throws
/// InvalidArgument for more blocks than rows.
approximations::Clusters choose_blocks(const kernels::Kernel& kernel, ConstMatrixView x,
                                       const SparseSetup& setup, Index usual, std::uint64_t seed);
/// How many those are.
Index block_count(Index rows, const SparseSetup& setup, Index usual);

}  // namespace mercer::inference
MERCER_API_END
