#include "mercer/preconditioners/pitc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mercer/approximations/nystrom.hpp"
#include "mercer/core/error.hpp"
#include "mercer/linalg/blas.hpp"
#include "mercer/preconditioners/low_rank_core.hpp"

namespace mercer::preconditioners {
namespace {

BlockCholesky factor_blocks(const operators::KernelOperator& k, const linalg::Diagonal& noise,
                            const Matrix& f, Index blocks) {
  if (f.rows() != k.size())
    throw DimensionMismatch("pitc: rows of the factor", f.rows(), "number of points", k.size());
  return {approximations::clusters(k.kernel(), k.points(), blocks),
          [&](std::span<const Index> points, MatrixView block) {
            fill_kernel_block(k, noise, points, block);
            Matrix rows(block.rows(), f.cols());
            for (Index j = 0; j < rows.cols(); ++j)
              for (Index i = 0; i < rows.rows(); ++i)
                rows(i, j) = f(points[static_cast<std::size_t>(i)], j);
            linalg::gemm(-1.0, rows, linalg::Transpose::no, rows, linalg::Transpose::yes, 1.0,
                         block);
          }};
}

/// B = L^-1 F, in place.
Matrix&& whitened(const BlockCholesky& blocks, Matrix& f) {
  blocks.solve_lower_in_place(f);
  return std::move(f);
}

Built make_pitc(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.k.size();
  const auto landmarks = landmark_options(target, options);
  auto approximation = approximations::nystrom(target.k, landmarks);
  const Index asked = options.blocks.value_or(default_blocks(n));
  auto p = std::make_unique<Pitc>(target.k, target.noise, std::move(approximation.factor), asked);
  const Index blocks = p->blocks().clusters().count();
  Built built;
  built.report.rank = p->core().rank();
  built.report.blocks = blocks;
  built.report.bytes = Woodbury::bytes(n, p->core().rank()) + BlockCholesky::bytes(n, blocks);
  built.report.kernel_values =
      approximations::nystrom_kernel_values(n, landmarks) + p->blocks().entries();
  auto& notes = built.report.notes;
  notes = rank_note(n, options) + blocks_note(n, options) + p->blocks().jitter_note();
  if (approximation.exhausted)
    notes += fmt::format("only {} distinct landmarks; ", approximation.pivots.size());
  notes += fmt::format("{} landmarks, blocks of up to {} points", approximation.pivots.size(),
                       p->blocks().clusters().largest());
  built.preconditioner = std::move(p);
  return built;
}

Cost pitc_cost(Index n, Index d, const PreconditionerOptions& options) {
  const auto landmarks = landmark_options(n, options);
  Cost cost = nystrom_cost(n, landmarks);
  const Cost of_blocks = block_cost(n, d, options);
  const Index blocks = options.blocks.value_or(default_blocks(n));
  const auto rank = static_cast<double>(landmarks.count);
  cost.bytes += of_blocks.bytes;
  cost.peak_bytes += of_blocks.peak_bytes;
  cost.kernel_values += of_blocks.kernel_values;
  // L^-1 F and the F F' of the blocks
  cost.build_flops += of_blocks.build_flops + 1.5 * rank * BlockCholesky::apply_flops(n, blocks);
  cost.apply_flops += of_blocks.apply_flops;
  return cost;
}

}  // namespace

PreconditionerInfo pitc_info() {
  return {.name = "pitc",
          .summary = "landmark columns, and diagonal blocks of what they leave of K plus noise",
          .make = make_pitc,
          .cost = pitc_cost,
          .takes = {.rank = true, .blocks = true, .landmarks = true}};
}

Pitc::Pitc(const operators::KernelOperator& k, const linalg::Diagonal& noise, Matrix&& factor,
           Index blocks)
    : blocks_(factor_blocks(k, noise, factor, blocks)), core_(whitened(blocks_, factor), 1.0) {}

void Pitc::solve(ConstMatrixView r, MatrixView z) const {
  if (r.rows() != size()) throw DimensionMismatch("Pitc: rows of r", r.rows(), "size", size());
  z = r;
  blocks_.solve_lower_in_place(z);
  core_.solve(z, z);  // Woodbury works in place once it has copied
  blocks_.solve_upper_in_place(z);
}

void Pitc::sample(Rng& rng, MatrixView z) const {
  core_.sample(rng, z);
  blocks_.multiply_lower_in_place(z);
}

}  // namespace mercer::preconditioners
