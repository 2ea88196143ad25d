#include "mercer/operators/detail/schedule.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "mercer/core/threads.hpp"

namespace mercer::operators::detail {

void tournament(Index blocks, const std::function<void(Index, Index, Index, int)>& pair,
                const std::function<void(Index)>& after_round) {
  const auto play = [&](const std::vector<std::pair<Index, Index>>& matches) {
    const auto count = static_cast<Index>(matches.size());
    parallel_for(count, [&](Index m, int worker) {
      const auto [i, j] = matches[static_cast<std::size_t>(m)];
      pair(i, j, m, worker);
    });
    if (after_round) after_round(count);
  };
  std::vector<std::pair<Index, Index>> matches;
  for (Index i = 0; i < blocks; ++i) matches.emplace_back(i, i);
  play(matches);
  // The circle method: one player stays, the others move on; an odd field gets a bye.
  const Index players = blocks + blocks % 2;
  for (Index round = 0; round + 1 < players; ++round) {
    matches.clear();
    for (Index k = 0; k < players / 2; ++k) {
      const Index a = k == 0 ? players - 1 : (round + k) % (players - 1);
      const Index b = (round + players - 1 - k) % (players - 1);
      if (a < blocks && b < blocks) matches.emplace_back(std::min(a, b), std::max(a, b));
    }
    play(matches);
  }
}

void for_each_unit(const PointSet& points, Index i, Index j,
                   const std::function<void(const Unit&)>& visit) {
  const Block& rows = points.blocks()[static_cast<std::size_t>(i)];
  const Block& columns = points.blocks()[static_cast<std::size_t>(j)];
  for (const auto& group : rows.groups) {
    if (i != j) {
      visit({&group, group.begin, group.end, columns.begin, columns.end, true});
      continue;
    }
    for (Index tile = group.begin; tile < group.end; tile += kTile) {
      const Index end = std::min(tile + kTile, group.end);
      visit({&group, tile, end, tile, end, false});
      if (end < columns.end) visit({&group, tile, end, end, columns.end, true});
    }
  }
}

}  // namespace mercer::operators::detail
