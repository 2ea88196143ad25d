#include "mercer/preconditioners/block_jacobi.hpp"

#include <fmt/format.h>

#include "mercer/core/error.hpp"

namespace mercer::preconditioners {
namespace {

BlockCholesky factor_blocks(const operators::KernelOperator& k, const linalg::Diagonal& noise,
                            Index blocks) {
  noise.require_nonnegative("block-jacobi");
  return {approximations::clusters(k.kernel(), k.points(), blocks),
          [&](std::span<const Index> points, MatrixView block) {
            fill_kernel_block(k, noise, points, block);
          }};
}

Built make_block_jacobi(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.k.size();
  const Index asked = options.blocks.value_or(default_blocks(n));
  auto p = std::make_unique<BlockJacobi>(target.k, target.noise, asked);
  const auto& clusters = p->core().clusters();
  Built built;
  built.report.blocks = clusters.count();
  built.report.bytes = BlockCholesky::bytes(n, clusters.count());
  built.report.kernel_values = p->core().entries();
  built.report.notes = blocks_note(n, options) + p->core().jitter_note();
  built.report.notes += fmt::format("blocks of up to {} points", clusters.largest());
  built.preconditioner = std::move(p);
  return built;
}

}  // namespace

PreconditionerInfo block_jacobi_info() {
  return {.name = "block-jacobi",
          .summary = "diagonal blocks of K plus noise, of nearby points",
          .make = make_block_jacobi,
          .cost = block_cost,
          .takes = {.blocks = true}};
}

BlockJacobi::BlockJacobi(const operators::KernelOperator& k, const linalg::Diagonal& noise,
                         Index blocks)
    : core_(factor_blocks(k, noise, blocks)) {}

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
