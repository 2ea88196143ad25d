// Loops over the rows of a block of vectors, cut by the shape alone: the same bits on any number
// of threads.
#pragma once

#include <algorithm>
#include <functional>

#include "mercer/core/threads.hpp"
#include "mercer/core/types.hpp"

namespace mercer::krylov::detail {

constexpr Index row_chunk = 8192;
constexpr Index parallel_work = 1 << 18;

/// body(column, first_row, rows) over fixed chunks of rows, in parallel when there is enough.
template <class Body>
void for_chunks(Index n, Index columns, const Body& body) {
  const Index chunks = (n + row_chunk - 1) / row_chunk;
  const auto task = [&](Index t, int) {
    const Index first = (t % chunks) * row_chunk;
    body(t / chunks, first, std::min(row_chunk, n - first));
  };
  if (n * columns >= parallel_work) {
    parallel_for(chunks * columns, std::ref(task));
  } else {
    for (Index t = 0; t < chunks * columns; ++t) task(t, 0);
  }
}

}  // namespace mercer::krylov::detail
