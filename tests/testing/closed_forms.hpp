// The textbook formula of every leaf in long double, written apart from the library: what the law
// tests compare with. A registered leaf without an entry here fails them.
#pragma once

#include <cmath>
#include <numbers>
#include <string_view>

#include "mercer/core/error.hpp"
#include "mercer/kernels/leaf.hpp"

namespace mercer::testing {

using Long = long double;

/// k as a function of r^2 (distance family) or s (dot family).
struct ClosedForm {
  std::string_view name;
  Long (*value)(Long argument, Long shape, int degree);
};

inline constexpr ClosedForm kClosedForms[] = {
    {"rbf", [](Long r2, Long, int) -> Long { return std::exp(-r2 / 2); }},
    {"matern12", [](Long r2, Long, int) -> Long { return std::exp(-std::sqrt(r2)); }},
    {"matern32",
     [](Long r2, Long, int) -> Long {
       const Long a = std::sqrt(3 * r2);
       return (1 + a) * std::exp(-a);
     }},
    {"matern52",
     [](Long r2, Long, int) -> Long {
       const Long a = std::sqrt(5 * r2);
       return (1 + a + a * a / 3) * std::exp(-a);
     }},
    {"rq",
     [](Long r2, Long alpha, int) -> Long {
       return std::exp(-alpha * std::log1p(r2 / (2 * alpha)));
     }},
    {"periodic", [](Long r2, Long, int) -> Long { return std::exp(-r2 / 2); }},
    {"linear", [](Long s, Long, int) -> Long { return s; }},
    {"poly", [](Long s, Long offset, int degree) -> Long { return std::pow(s + offset, degree); }},
    {"constant", [](Long, Long, int) -> Long { return 1; }},
};

inline const ClosedForm& closed_form(std::string_view name) {
  for (const auto& form : kClosedForms)
    if (form.name == name) return form;
  throw Error("tests/testing/closed_forms.hpp has no formula of the kernel " + std::string(name));
}

/// (x - y)^2 / l^2, or the squared chord of the circle map.
inline Long squared_distance(const kernels::Leaf& leaf, Long x, Long y, Long lengthscale) {
  Long u = x - y;
  if (leaf.info().inputs == kernels::InputMap::circle)
    u = 2 * std::sin(std::numbers::pi_v<Long> * u / static_cast<Long>(leaf.shape));
  return u * u / (lengthscale * lengthscale);
}

}  // namespace mercer::testing
