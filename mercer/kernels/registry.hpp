// The leaves that a kernel expression is made of. A leaf sees a pair of points through one number:
//   distance family:  r2 = sum_f (a_f - b_f)^2 of its features (inputs divided by lengthscales;
//                     for `periodic` the circle map of each input);
//   dot family:       s = sum_f a_f b_f;
//   constant:         nothing.
// A new kernel is a struct in profiles-inl.hpp and a line in kernels_registry().
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mercer::kernels {

enum class LeafKind { rbf, matern12, matern32, matern52, rq, periodic, linear, poly, constant };
enum class Family { distance, dot, constant };

struct LeafInfo {
  LeafKind kind;
  std::string_view name;  // as the user types it
  Family family;
  bool has_lengthscale;         // linear:iso has none of its own: the variance in front says it all
  std::string_view shape_name;  // "alpha", "period", "offset", or empty
  double default_shape;
  bool has_degree;
  std::string_view summary;  // for --help and docs
};

std::span<const LeafInfo> kernels_registry();
const LeafInfo& leaf_info(LeafKind kind);
/// Throws InvalidArgument that lists the names there are.
const LeafInfo& leaf_info(std::string_view name);

}  // namespace mercer::kernels
