#include "mercer/linalg/reductions.hpp"

#include <fmt/format.h>

#include <exception>

#include "mercer/core/error.hpp"

namespace mercer::linalg {

void largest_entries(const RowSpace& space, ConstMatrixView x, std::span<double> out) {
  for (Index j = 0; j < x.cols(); ++j)
    out[static_cast<std::size_t>(j)] = x.rows() > 0 ? x.col(j).cwiseAbs().maxCoeff() : 0.0;
  space.reduce(out, Reduction::max);
}

void gram(const RowSpace& space, ConstMatrixView a, Matrix& c) {
  gram(1.0, a, 0.0, c);
  space.reduce({c.data(), static_cast<std::size_t>(c.size())});
}

void inner_products(const RowSpace& space, ConstMatrixView a, ConstMatrixView b, MatrixView c) {
  gemm(1.0, a, Transpose::yes, b, Transpose::no, 0.0, c);
  space.reduce({c.data(), static_cast<std::size_t>(c.size())});
}

Matrix gather_rows(const RowSpace& space, ConstMatrixView a, std::span<const Index> which) {
  Matrix rows = Matrix::Zero(static_cast<Index>(which.size()), a.cols());
  for (Index j = 0; j < a.cols(); ++j)
    for (Index i = 0; i < rows.rows(); ++i) {
      const Index row = which[static_cast<std::size_t>(i)];
      if (space.holds(row)) rows(i, j) = a(row - space.begin(), j);
    }
  space.reduce({rows.data(), static_cast<std::size_t>(rows.size())});
  return rows;
}

// A rank without rows cannot tell whether D is one value for all.
double harmonic_mean(const RowSpace& space, const Diagonal& d) {
  if (!space.any(!d.uniform())) return d.harmonic_mean();
  if (!space.split()) return d.harmonic_mean();
  return static_cast<double>(space.global_size()) /
         space.sum(d.vector(space.size()).cwiseInverse().sum());
}

Vector gather_all(const RowSpace& space, ConstVectorView values) {
  Vector all = Vector::Zero(space.global_size());
  all.segment(space.begin(), values.size()) = values;
  space.reduce({all.data(), static_cast<std::size_t>(all.size())});
  return all;
}

void check_on_all_ranks(const RowSpace& space, const char* who,
                        const std::function<void()>& check) {
  if (!space.split()) return check();
  std::exception_ptr problem;
  try {
    check();
  } catch (...) {
    problem = std::current_exception();
  }
  const bool any = space.any(problem != nullptr);
  if (problem) std::rethrow_exception(problem);
  if (any) throw Error(fmt::format("{}: another rank refused its part", who));
}

}  // namespace mercer::linalg
