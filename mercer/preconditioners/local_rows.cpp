#include "mercer/preconditioners/local_rows.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "mercer/core/error.hpp"
#include "mercer/linalg/reductions.hpp"
#include "mercer/operators/tiled_operator.hpp"

namespace mercer::preconditioners {

LocalRows::LocalRows(std::unique_ptr<operators::KernelOperator> own,
                     std::unique_ptr<linalg::Preconditioner> part, const linalg::RowSpace& space)
    : space_(space), own_(std::move(own)), part_(std::move(part)) {}

void LocalRows::solve(ConstMatrixView r, MatrixView z) const {
  if (r.rows() != size()) throw DimensionMismatch("LocalRows: rows of r", r.rows(), "size", size());
  if (part_) part_->solve(r, z);
}

double LocalRows::log_det() const { return space_.sum(part_ ? part_->log_det() : 0.0); }

// Parts of different ranks are independent: each draws from a stream of its own, which begins where
// the common one is.
void LocalRows::sample(Rng& rng, MatrixView z) const {
  Rng own(rng.bits64(), "rows of a rank", static_cast<std::uint64_t>(space_.begin()));
  if (part_) part_->sample(own, z);
}

std::int64_t LocalRows::inner_iterations() const {
  const auto* inner = dynamic_cast<const linalg::InnerIterations*>(part_.get());
  return inner != nullptr ? inner->inner_iterations() : 0;
}

std::int64_t LocalRows::inner_products() const {
  const auto* inner = dynamic_cast<const linalg::InnerIterations*>(part_.get());
  return inner != nullptr ? inner->inner_products() : 0;
}

Built make_on_local_rows(const PreconditionerInfo& info, const Target& target,
                         const PreconditionerOptions& options) {
  const auto space = target.k.row_space();
  std::unique_ptr<operators::KernelOperator> own;
  Built built;
  linalg::check_on_all_ranks(space, "preconditioner", [&] {
    if (space.size() == 0) return;  // a rank without rows has no part
    const Matrix points = target.k.points().middleRows(space.begin(), space.size());
    own = std::make_unique<operators::TiledOperator>(target.k.kernel(), points,
                                                     operators::Precision::float64);
    built = info.make(Target{*own, target.noise}, options);
  });
  built.preconditioner =
      std::make_unique<LocalRows>(std::move(own), std::move(built.preconditioner), space);
  if (!built.report.notes.empty()) built.report.notes += "; ";
  built.report.notes +=
      fmt::format("of the {} of {} rows on this rank alone", space.size(), space.global_size());
  return built;
}

}  // namespace mercer::preconditioners
