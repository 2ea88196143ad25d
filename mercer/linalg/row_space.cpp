#include "mercer/linalg/row_space.hpp"

#include <fmt/format.h>

#include "mercer/core/error.hpp"

namespace mercer::linalg {
namespace {

/// fill(part, begin, rows) for the rows of every copy in every column, in the order of the stream.
template <class Fill>
void for_copies(const RowSpace& space, MatrixView out, const Fill& fill) {
  if (out.rows() != space.size())
    throw DimensionMismatch("random vectors: rows", out.rows(), "rows held here", space.size());
  const Index rows = space.end() - space.begin(), all = space.global_size() / space.copies();
  for (Index j = 0; j < out.cols(); ++j)
    for (Index c = 0; c < space.copies(); ++c)
      fill(out.block(c * rows, j, rows, 1), space.begin(), all);
}

}  // namespace

RowSpace::RowSpace(Index begin, Index end, Index rows, const Ranks& ranks)
    : RowSpace(begin, end, rows, &ranks) {
  if (begin < 0 || end < begin || rows < end)
    throw InvalidArgument(fmt::format("rows {} to {} are not a part of {} rows", begin, end, rows));
}

RowSpace RowSpace::stacked(Index copies) const {
  if (copies_ != 1) throw InvalidArgument("a stacked row space cannot be stacked again");
  if (!split()) return local(copies * rows_);
  RowSpace result = *this;
  result.copies_ = copies;
  return result;
}

double RowSpace::sum(double value) const {
  reduce({&value, 1}, Reduction::sum);
  return value;
}

double RowSpace::max(double value) const {
  reduce({&value, 1}, Reduction::max);
  return value;
}

double RowSpace::min(double value) const {
  reduce({&value, 1}, Reduction::min);
  return value;
}

void fill_normal(Rng& rng, const RowSpace& space, MatrixView out) {
  if (!space.split()) return rng.fill_normal(out);
  for_copies(space, out, [&](MatrixView part, Index first, Index rows) {
    rng.fill_normal_rows(part, first, rows);
  });
}

void fill_rademacher(Rng& rng, const RowSpace& space, MatrixView out) {
  if (!space.split()) return rng.fill_rademacher(out);
  for_copies(space, out, [&](MatrixView part, Index first, Index rows) {
    rng.fill_rademacher_rows(part, first, rows);
  });
}

}  // namespace mercer::linalg
