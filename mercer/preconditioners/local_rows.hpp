// P = blockdiag over ranks of a preconditioner of the rows that each holds: what a preconditioner
// does whose mathematics couples all rows, where they are shared among ranks. The coupling between
// ranks is left out (additive Schwarz without overlap): no communication, more iterations.
//   Cost:    that of the preconditioner for the rows held here.
//   When not: rows in random order: what a rank holds is then a thinned sample of the data, and
//            neighbours are on other ranks. Sort the rows in space first.
#pragma once

#include <memory>

#include "mercer/preconditioners/preconditioner_info.hpp"

namespace mercer::preconditioners {

class LocalRows final : public linalg::Preconditioner, public linalg::InnerIterations {
 public:
  /// `own` is the kernel operator of the points held here, which `part` may refer to.
  LocalRows(std::unique_ptr<operators::KernelOperator> own,
            std::unique_ptr<linalg::Preconditioner> part, const linalg::RowSpace& space);

  Index size() const override { return space_.size(); }
  linalg::RowSpace row_space() const override { return space_; }
  void solve(ConstMatrixView r, MatrixView z) const override;
  double log_det() const override;
  /// The draw depends on the split, as P does.
  void sample(Rng& rng, MatrixView z) const override;

  /// Of this rank's part; 0 when it does not iterate.
  std::int64_t inner_iterations() const override;
  std::int64_t inner_products() const override;

 private:
  linalg::RowSpace space_;
  std::unique_ptr<operators::KernelOperator> own_;
  std::unique_ptr<linalg::Preconditioner> part_;
};

/// `info` built on the rows held here.
Built make_on_local_rows(const PreconditionerInfo& info, const Target& target,
                         const PreconditionerOptions& options);

}  // namespace mercer::preconditioners
