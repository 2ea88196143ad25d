#include "mercer/inference/mean_function.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "mercer/core/error.hpp"

namespace mercer::inference {
namespace {
constexpr std::array kMeanKinds = {MeanKind::zero, MeanKind::constant, MeanKind::linear};
}

std::string_view to_string(MeanKind kind) {
  switch (kind) {
    case MeanKind::zero:
      return "zero";
    case MeanKind::constant:
      return "constant";
    case MeanKind::linear:
      return "linear";
  }
  return "unknown";
}

MeanKind mean_kind(std::string_view name) {
  for (const auto kind : kMeanKinds)
    if (to_string(kind) == name) return kind;
  throw InvalidArgument(
      fmt::format("unknown mean '{}'; there are: {}", name, fmt::join(mean_kinds(), ", ")));
}

std::vector<std::string_view> mean_kinds() {
  std::vector<std::string_view> names;
  names.reserve(std::size(kMeanKinds));
  for (const auto kind : kMeanKinds) names.push_back(to_string(kind));
  return names;
}

Index mean_basis_size(MeanKind kind, Index d) {
  return kind == MeanKind::zero ? 0 : kind == MeanKind::constant ? 1 : d + 1;
}

Matrix mean_basis(MeanKind kind, ConstMatrixView x, const std::vector<Index>& left_out) {
  const auto fewer = static_cast<Index>(left_out.size());
  Matrix a = Matrix::Ones(x.rows(), mean_basis_size(kind, x.cols()) - fewer);
  if (kind != MeanKind::linear) return a;
  Index column = 1;
  auto skipped = left_out.begin();
  for (Index c = 0; c < x.cols(); ++c) {
    if (skipped != left_out.end() && *skipped == c)
      ++skipped;
    else
      a.col(column++) = x.col(c);
  }
  return a;
}

std::vector<Index> dependent_inputs(MeanKind kind, ConstMatrixView x) {
  std::vector<Index> dependent;
  if (kind != MeanKind::linear) return dependent;
  const Index n = x.rows();
  constexpr double smallest_share = 1e-6;  // its square is still far above the rounding of A'A
  Matrix q(n, std::min(n, x.cols() + 1));  // an orthonormal basis of the columns kept so far
  q.col(0).setConstant(1 / std::sqrt(static_cast<double>(n)));
  Index kept = 1;
  for (Index c = 0; c < x.cols(); ++c) {
    // Shares of the largest entry: columns of any unit neither overflow nor vanish when squared.
    const double largest = x.col(c).cwiseAbs().maxCoeff();
    Vector v = largest > 0 ? Vector(x.col(c) / largest) : Vector(Vector::Zero(n));
    const double size = v.norm();
    if (kept < n)
      for (int twice = 0; twice < 2; ++twice)
        v -= q.leftCols(kept) * (q.leftCols(kept).transpose() * v);
    if (kept == n || !(v.norm() > smallest_share * size))
      dependent.push_back(c);
    else
      q.col(kept++) = v / v.norm();
  }
  if (kept >= n)
    throw DataError(
        fmt::format("a linear trend of {} inputs passes through any {} points, so there would be "
                    "nothing left to learn; use `mean=constant`, fewer `inputs`, or more rows",
                    x.cols(), n));
  return dependent;
}

}  // namespace mercer::inference
