#include "mercer/inference/mean_function.hpp"

#include <fmt/format.h>

#include "mercer/core/error.hpp"

namespace mercer::inference {

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
  for (const auto kind : {MeanKind::zero, MeanKind::constant, MeanKind::linear})
    if (to_string(kind) == name) return kind;
  throw InvalidArgument(fmt::format("unknown mean '{}'; there are: zero, constant, linear", name));
}

Index mean_basis_size(MeanKind kind, Index d) {
  return kind == MeanKind::zero ? 0 : kind == MeanKind::constant ? 1 : d + 1;
}

Matrix mean_basis(MeanKind kind, ConstMatrixView x) {
  Matrix a = Matrix::Ones(x.rows(), mean_basis_size(kind, x.cols()));
  if (kind == MeanKind::linear) a.rightCols(x.cols()) = x;
  return a;
}

}  // namespace mercer::inference
