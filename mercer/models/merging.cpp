#include "mercer/models/merging.hpp"

#include <cmath>

#include "mercer/data/equal_rows.hpp"

namespace mercer::models {

inference::Observations merge_replicates(inference::Observations data) {
  if (data.noise.known.size() > 0) return data;
  const Index n = data.size();
  const auto first = data::first_equal_rows(data.x);
  std::vector<Index> kept, place(first.size());
  for (std::size_t j = 0; j < first.size(); ++j) {
    const auto same = static_cast<std::size_t>(first[j]);
    place[j] = same == j ? static_cast<Index>(kept.size()) : place[same];
    if (same == j) kept.push_back(first[j]);
  }
  const auto m = static_cast<Index>(kept.size());
  if (m == n) return data;

  const Vector weight = data.noise.weight.size() > 0 ? data.noise.weight : Vector(Vector::Ones(n));
  auto out = data.rows(kept);
  Vector total = Vector::Zero(m), moved = total;
  inference::Replicates gone{Vector::Constant(m, -1), Vector::Zero(m), Vector::Zero(m)};
  for (Index j = 0; j < n; ++j) {
    const Index i = place[static_cast<std::size_t>(j)];
    total(i) += weight(j);
    moved(i) += weight(j) * (data.y(j) - out.y(i));  // from the first: no digits are lost
    gone.removed(i) += 1;
    gone.log_det(i) -= std::log(weight(j));
  }
  out.y += moved.cwiseQuotient(total);
  for (Index j = 0; j < n; ++j) {
    const Index i = place[static_cast<std::size_t>(j)];
    gone.squares(i) += weight(j) * std::pow(data.y(j) - out.y(i), 2);
  }
  gone.log_det.array() += total.array().log();
  out.noise.weight = std::move(total);
  out.replicates = std::move(gone);
  return out;
}

}  // namespace mercer::models
