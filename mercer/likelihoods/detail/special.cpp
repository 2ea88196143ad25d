#include "mercer/likelihoods/detail/special.hpp"

#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/gamma.hpp>

namespace mercer::likelihoods::detail {
namespace {

// From here the six terms of the asymptotic series below are exact to rounding.
constexpr double kAsymptotic = 16;

}  // namespace

double stirling_error(double x) {
  if (x < kAsymptotic)
    return boost::math::lgamma(x, Policy()) - ((x - 0.5) * std::log(x) - x + 0.5 * log_2pi);
  const double t = 1 / (x * x);
  return (1. / 12 -
          t * (1. / 360 -
               t * (1. / 1260 - t * (1. / 1680 - t * (1. / 1188 - t * (691. / 360360)))))) /
         x;
}

double digamma_error(double x) {
  if (x < kAsymptotic) return std::log(x) - 0.5 / x - boost::math::digamma(x, Policy());
  const double t = 1 / (x * x);
  return t *
         (1. / 12 -
          t * (1. / 120 - t * (1. / 252 - t * (1. / 240 - t * (1. / 132 - t * (691. / 32760))))));
}

}  // namespace mercer::likelihoods::detail
