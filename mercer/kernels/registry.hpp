// What is known of every leaf at run time, made from the type list in leaves-inl.hpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "mercer/kernels/leaf_parts.hpp"

MERCER_API_BEGIN
namespace mercer::kernels {

/// The place of a leaf in the type list.
enum class LeafKind : std::size_t {};

struct LeafInfo {
  LeafKind kind;
  std::string_view name;
  LeafWords words;
  Family family;
  InputMap inputs;
  bool has_lengthscale;
  bool has_iso_lengthscale;  // false: the variance in front says the same
  ShapeParameter shape;
  DegreeParameter degree;
  bool separable;
  bool smooth_at_zero;
  // The functions are described in leaves-inl.hpp; those that the leaf does not have are null.
  double (*profile)(double x, OwnNumbers);
  double (*slope)(double x, OwnNumbers);
  double (*shape_slope)(double x, double slope, OwnNumbers);
  double (*exponent)(double r2, OwnNumbers);
  void (*add_frequencies)(std::span<const double> lengthscales, OwnNumbers, Rng&, MatrixView w);
  PowerForm (*power)(OwnNumbers);
  std::string_view no_features;  // why there are no random features; empty: there are

  bool has_shape() const { return !shape.name.empty(); }
  bool has_degree() const { return degree.start > 0; }
  /// The value falls with the distance between points as they are: near points are alike.
  bool measures_distance() const { return family == Family::distance && inputs == InputMap::plain; }
  /// Formula and remark, for --help.
  std::string summary() const;
};

std::span<const LeafInfo> kernels_registry();
const LeafInfo& leaf_info(LeafKind kind);
/// By name or alias. Throws InvalidArgument that lists the names there are.
const LeafInfo& leaf_info(std::string_view name);

}  // namespace mercer::kernels
MERCER_API_END
