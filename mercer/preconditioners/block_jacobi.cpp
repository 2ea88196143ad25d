#include "mercer/preconditioners/block_jacobi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::preconditioners {
namespace {

BlockCholesky factor_blocks(const operators::KernelOperator& k, double noise_variance,
                            Index blocks) {
  if (!(noise_variance >= 0) || !std::isfinite(noise_variance))
    throw InvalidArgument(fmt::format(
        "block-jacobi: the noise variance is {}, but must be zero or positive", noise_variance));
  return {approximations::clusters(k.kernel(), k.points(), blocks),
          [&](std::span<const Index> points, MatrixView block) {
            Matrix x(block.rows(), k.points().cols());
            for (Index i = 0; i < x.rows(); ++i)
              x.row(i) = k.points().row(points[static_cast<std::size_t>(i)]);
            operators::dense_matrix(k.kernel(), x, block);
            block.diagonal().array() += noise_variance;
          }};
}

Built make_block_jacobi(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.k.size();
  const Index asked = options.blocks.value_or(default_blocks(n));
  auto p = std::make_unique<BlockJacobi>(target.k, target.noise_variance, asked);
  const auto& clusters = p->core().clusters();
  Built built;
  built.report.blocks = clusters.count();
  built.report.bytes = BlockCholesky::bytes(n, clusters.count());
  for (Index b = 0; b < clusters.count(); ++b)
    built.report.kernel_values += std::pow(static_cast<double>(clusters.block(b).size()), 2);
  built.report.notes = blocks_note(n, options) + p->core().jitter_note();
  built.report.notes += fmt::format("blocks of up to {} points", clusters.largest());
  built.preconditioner = std::move(p);
  return built;
}

Cost block_jacobi_cost(Index n, Index d, const PreconditionerOptions& options) {
  const Index blocks = options.blocks.value_or(default_blocks(n));
  const double bytes = BlockCholesky::bytes(n, blocks);
  const auto points = static_cast<double>(n);
  return {.bytes = bytes,
          // Beside the factors, the block under work twice (for each of a few threads).
          .peak_bytes = bytes + 8 * bytes / static_cast<double>(std::max<Index>(blocks, 8)),
          .kernel_values = bytes / 8,
          .build_flops = BlockCholesky::build_flops(n, blocks) +
                         points * static_cast<double>(d) * std::log2(points + 1),
          .apply_flops = BlockCholesky::apply_flops(n, blocks)};
}

}  // namespace

PreconditionerInfo block_jacobi_info() {
  return {.name = "block-jacobi",
          .summary = "diagonal blocks of K plus noise, of nearby points",
          .make = make_block_jacobi,
          .cost = block_jacobi_cost,
          .takes = {.blocks = true}};
}

BlockJacobi::BlockJacobi(const operators::KernelOperator& k, double noise_variance, Index blocks)
    : core_(factor_blocks(k, noise_variance, blocks)) {}

void BlockJacobi::solve(ConstMatrixView r, MatrixView z) const {
  if (r.rows() != size())
    throw DimensionMismatch("BlockJacobi: rows of r", r.rows(), "size", size());
  z = r;
  core_.solve_in_place(z);
}

void BlockJacobi::sample(Rng& rng, MatrixView z) const {
  rng.fill_normal(z);
  core_.multiply_lower_in_place(z);
}

}  // namespace mercer::preconditioners
