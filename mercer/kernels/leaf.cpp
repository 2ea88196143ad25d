#include "mercer/kernels/leaf.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "mercer/core/error.hpp"

namespace mercer::kernels {
namespace {

// Numbers the groups in the order of their first input, and keeps the lengthscale of each.
void renumber(Leaf& leaf, const std::vector<Index>& shared_with) {
  const auto inputs = leaf.inputs.size();
  std::vector<double> kept;
  std::vector<Index> place(inputs), group(inputs);
  for (std::size_t k = 0; k < inputs; ++k) {
    const auto first = static_cast<std::size_t>(shared_with[k]);
    if (first == k) {
      place[k] = static_cast<Index>(kept.size());
      kept.push_back(leaf.lengthscale(static_cast<Index>(k)));
    }
    group[k] = place[first];
  }
  leaf.lengthscales = std::move(kept);
  leaf.group = std::move(group);
}

}  // namespace

bool Leaf::share_lengthscale(const std::vector<Index>& columns,
                             const std::vector<std::string>& names) {
  std::vector<std::size_t> places;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if (std::find(columns.begin(), columns.end(), inputs[k]) != columns.end()) places.push_back(k);
  if (places.size() < 2 || !info().has_lengthscale) return false;
  if (!ard) return true;
  // The first input of each group.
  std::vector<Index> first(inputs.size());
  for (std::size_t k = 0; k < inputs.size(); ++k)
    for (first[k] = 0; lengthscale_index(first[k]) != lengthscale_index(static_cast<Index>(k));)
      ++first[k];
  const auto size_of_group = [&](std::size_t k) {
    return static_cast<std::size_t>(std::count(first.begin(), first.end(), first[k]));
  };
  const auto together = [&](std::size_t k) { return first[k] == first[places[0]]; };
  if (size_of_group(places[0]) == places.size() &&
      std::all_of(places.begin(), places.end(), together))
    return true;  // they share it already
  for (const std::size_t k : places)
    if (size_of_group(k) > 1)
      throw InvalidArgument(fmt::format(
          "kernel: in {} the inputs {} are to share one lengthscale, but one of them shares its "
          "own with others already; name all of them together",
          info().name, fmt::join(names, ", ")));
  for (const std::size_t k : places) first[k] = static_cast<Index>(places[0]);
  if (places.size() < inputs.size()) {
    renumber(*this, first);
    shared_names.push_back(names);
    return true;
  }
  // All inputs of the leaf: what `iso` says.
  ard = false;
  lengthscales.resize(info().has_iso_lengthscale ? 1 : 0);
  return true;
}

}  // namespace mercer::kernels
