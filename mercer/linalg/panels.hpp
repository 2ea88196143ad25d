// Tall N x m matrices panel by panel, in parallel and in a fixed order.
#pragma once

#include <algorithm>
#include <functional>

#include "mercer/core/threads.hpp"
#include "mercer/core/types.hpp"
#include "mercer/linalg/blas.hpp"

namespace mercer::linalg {

inline constexpr Index kPanelRows = 2048;

/// Calls body(first, rows) for every panel of n rows.
template <class Body>
void for_panels(Index n, const Body& body) {
  const auto task = [&](Index t, int) {
    body(t * kPanelRows, std::min(kPanelRows, n - t * kPanelRows));
  };
  parallel_for((n + kPanelRows - 1) / kPanelRows, std::ref(task));
}

/// a := a t; t is k x m with m <= k. No second N x k array.
inline void multiply_in_place(Matrix& a, const Matrix& t) {
  for_panels(a.rows(), [&](Index first, Index rows) {
    const Matrix before = a.middleRows(first, rows);
    gemm(1.0, before, Transpose::no, t, Transpose::no, 0.0, a.block(first, 0, rows, t.cols()));
  });
  if (t.cols() < a.cols()) a.conservativeResize(a.rows(), t.cols());
}

/// The squared length of every row.
inline Vector squared_rows(const Matrix& a) {
  Vector sums = Vector::Zero(a.rows());
  for_panels(a.rows(), [&](Index first, Index rows) {
    for (Index j = 0; j < a.cols(); ++j)
      sums.segment(first, rows) += a.col(j).segment(first, rows).cwiseAbs2();
  });
  return sums;
}

}  // namespace mercer::linalg
