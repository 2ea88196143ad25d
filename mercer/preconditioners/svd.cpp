#include "mercer/preconditioners/svd.hpp"

#include <algorithm>
#include <cmath>

#include "mercer/approximations/randomized_svd.hpp"
#include "mercer/preconditioners/low_rank_core.hpp"
#include "mercer/preconditioners/woodbury.hpp"

namespace mercer::preconditioners {
namespace {

/// sqrt(N) when the rank is left open.
approximations::RandomizedSvdOptions svd_options(Index n, const PreconditionerOptions& options) {
  const auto root = static_cast<Index>(std::ceil(std::sqrt(static_cast<double>(n))));
  return {.rank = std::max<Index>(std::min(options.rank.value_or(root), n), 1),
          .seed = options.seed};
}

Built make_svd(const Target& target, const PreconditionerOptions& options) {
  const Index n = target.k.size();
  return build_low_rank(approximations::randomized_svd(target.k, svd_options(n, options)),
                        target.noise, target.k.row_space(), rank_note(n, options));
}

Cost svd_cost(Index n, Index, const PreconditionerOptions& options) {
  const auto svd = svd_options(n, options);
  const double bytes = Woodbury::bytes(n, svd.rank);
  return {.bytes = bytes,
          .peak_bytes = std::max(bytes, approximations::randomized_svd_bytes(n, svd)),
          .products = approximations::randomized_svd_products(n, svd),
          .build_flops =
              approximations::randomized_svd_flops(n, svd) + Woodbury::build_flops(n, svd.rank),
          .apply_flops = Woodbury::apply_flops(n, svd.rank)};
}

}  // namespace

PreconditionerInfo svd_info() {
  return {.name = "svd",
          .summary = "leading eigenvectors of K by randomised SVD plus noise",
          .make = make_svd,
          .cost = svd_cost,
          .takes = {.rank = true}};
}

}  // namespace mercer::preconditioners
