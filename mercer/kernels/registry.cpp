#include "mercer/kernels/registry.hpp"

#include <fmt/format.h>

#include <boost/math/special_functions/gamma.hpp>
#include <utility>

#include "mercer/core/error.hpp"

namespace mercer::kernels {
namespace {

namespace scalar {
using std::exp;
using std::log1p;
using std::max;
using std::sqrt;
double pow_int(double base, int exponent) { return std::pow(base, exponent); }
#include "mercer/kernels/leaves-inl.hpp"
}  // namespace scalar

// --- Parts of a leaf -----------------------------------------------------------------------------

template <class L>
constexpr bool has_shape_slope = requires(double x, OwnNumbers own) {
  double(L::shape_slope(x, x, own));
};
template <class L>
constexpr bool has_radial_spectrum = requires(OwnNumbers own, Rng& rng) {
  double(L::frequency_scale(own, rng));
};
template <class L>
constexpr bool has_spectrum = requires(std::span<const double> l, OwnNumbers own, Rng& rng,
                                       MatrixView w) {
  L::add_frequencies(l, own, rng, w);
};
template <class L>
constexpr bool has_power = requires(OwnNumbers own) {
  PowerForm(L::power(own));
};
template <class L>
constexpr bool has_reason = requires {
  std::string_view(L::no_features);
};

/// A leaf that lacks a part does not compile.
template <class L>
constexpr void check_parts() {
  constexpr bool distance = L::family == Family::distance, dot = L::family == Family::dot;
  static_assert(!L::words.name.empty() && !L::words.formula.empty() && !L::words.remark.empty(),
                "a leaf states its name, formula and remark in `words`");
  static_assert(
      requires { bool(L::separable); }, "a leaf states whether it is `separable`");
  static_assert(
      requires(double x, OwnNumbers own) { double(L::profile(x, own)); },
      "a leaf has profile(x, own)");
  static_assert(
      !(distance || dot) || requires(double x, OwnNumbers own) { double(L::slope(x, own)); },
      "a leaf that sees its inputs has slope(x, own), the derivative of its profile");
  static_assert(
      !distance || requires { bool(L::smooth_at_zero); },
      "a distance leaf states whether its slope is finite at r = 0: `smooth_at_zero`");
  static_assert(
      !distance || requires(double x, OwnNumbers own) { double(L::exponent(x, own)); },
      "a distance leaf has exponent(r2, own); return 0 if its decay has no bound");
  static_assert(has_shape_slope<L> == (!L::shape.name.empty() && L::inputs == InputMap::plain),
                "a leaf with a shape has shape_slope(x, slope, own), unless the shape is a period");
  static_assert(L::shape.name.empty() || (L::shape.least < L::shape.start &&
                                          L::shape.start < L::shape.most && L::shape.least >= 0),
                "the start value of a shape lies between its limits, which are not negative");
  static_assert(L::degree.start <= L::degree.most, "the degree starts at most at its limit");
  static_assert(!distance || has_radial_spectrum<L> + has_spectrum<L> + has_reason<L> == 1,
                "a distance leaf has one of frequency_scale, add_frequencies and no_features");
  static_assert(!dot || has_power<L> + has_reason<L> == 1,
                "a dot leaf has one of power and no_features");
}

// --- The table -----------------------------------------------------------------------------------

/// w(:, i) += scale * normal / l, the frequencies of a mixture of rbf kernels over their scale.
template <class L>
void radial_frequencies(std::span<const double> lengthscales, OwnNumbers own, Rng& rng,
                        MatrixView w) {
  for (Index i = 0; i < w.cols(); ++i) {
    const double scale = L::frequency_scale(own, rng);
    for (Index c = 0; c < w.rows(); ++c)
      w(c, i) += scale * rng.normal() / lengthscales[static_cast<std::size_t>(c)];
  }
}

template <class L>
LeafInfo info_of(std::size_t place) {
  check_parts<L>();
  LeafInfo info{};
  info.kind = LeafKind{place};
  info.name = L::words.name;
  info.words = L::words;
  info.family = L::family;
  info.inputs = L::inputs;
  info.has_lengthscale = L::has_lengthscale;
  info.has_iso_lengthscale = L::has_iso_lengthscale;
  info.shape = L::shape;
  info.degree = L::degree;
  info.separable = L::separable;
  info.profile = &L::template profile<double>;
  if constexpr (L::family != Family::constant) info.slope = &L::template slope<double>;
  if constexpr (L::family == Family::distance) {
    info.smooth_at_zero = L::smooth_at_zero;
    info.exponent = &L::exponent;
  }
  if constexpr (has_shape_slope<L>) info.shape_slope = &L::template shape_slope<double>;
  if constexpr (has_radial_spectrum<L>) info.add_frequencies = &radial_frequencies<L>;
  if constexpr (has_spectrum<L>) info.add_frequencies = &L::add_frequencies;
  if constexpr (has_power<L>) info.power = &L::power;
  if constexpr (has_reason<L>) info.no_features = L::no_features;
  return info;
}

template <class... L, std::size_t... I>
std::array<LeafInfo, sizeof...(L)> table_of(LeafList<L...>, std::index_sequence<I...>) {
  return {info_of<L>(I)...};
}

const auto& table() {
  static const auto all =
      table_of(scalar::AllLeaves{}, std::make_index_sequence<scalar::AllLeaves::size>{});
  return all;
}

bool is_called(const LeafInfo& info, std::string_view name) {
  const auto& aliases = info.words.aliases;
  return !name.empty() &&
         (info.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end());
}

}  // namespace

double unit_gamma(double shape, Rng& rng) {
  return boost::math::gamma_p_inv(shape, rng.uniform()) / shape;
}

std::string LeafInfo::summary() const { return fmt::format("{}; {}", words.formula, words.remark); }

std::span<const LeafInfo> kernels_registry() { return table(); }

const LeafInfo& leaf_info(LeafKind kind) { return table().at(static_cast<std::size_t>(kind)); }

const LeafInfo& leaf_info(std::string_view name) {
  for (const auto& info : table())
    if (is_called(info, name)) return info;
  std::string names;
  for (const auto& info : table())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  throw InvalidArgument(fmt::format("unknown kernel '{}'; there are: {}", name, names));
}

}  // namespace mercer::kernels
