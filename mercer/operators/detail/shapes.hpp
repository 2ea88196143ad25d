// Shapes of the arguments of products, checked the same way by every operator.
#pragma once

#include <string>

#include "mercer/core/error.hpp"
#include "mercer/core/types.hpp"

namespace mercer::operators::detail {

/// x and y must be n x t, both; `what` names the product in the message.
inline void check_product(const char* what, Index n, ConstMatrixView x,
                          const Eigen::Ref<Matrix>& y) {
  if (x.rows() != n)
    throw DimensionMismatch(std::string(what) + ": rows of x", x.rows(), "points", n);
  if (y.rows() != n)
    throw DimensionMismatch(std::string(what) + ": rows of y", y.rows(), "points", n);
  if (x.cols() != y.cols())
    throw DimensionMismatch(std::string(what) + ": columns of x", x.cols(), "columns of y",
                            y.cols());
}

/// u, v and kv must be n x t, all three.
inline void check_product_with_gradient(const char* what, Index n, ConstMatrixView u,
                                        ConstMatrixView v, const Eigen::Ref<Matrix>& kv) {
  check_product(what, n, u, kv);
  check_product(what, n, v, kv);
}

}  // namespace mercer::operators::detail
