#include "mercer/preconditioners/pivoted_cholesky.hpp"

namespace mercer::preconditioners {

PivotedCholesky::PivotedCholesky(const operators::KernelOperator& k, double noise_variance,
                                 const approximations::PivotedCholeskyOptions& options)
    : PivotedCholesky(approximations::pivoted_cholesky(k, options), noise_variance) {}

PivotedCholesky::PivotedCholesky(approximations::LowRank approximation, double noise_variance)
    : core_(std::move(approximation.factor), noise_variance),
      relative_trace_error_(
          approximation.trace > 0 ? approximation.trace_error / approximation.trace : 0.0),
      columns_evaluated_(approximation.columns_evaluated),
      exhausted_(approximation.exhausted) {}

}  // namespace mercer::preconditioners
