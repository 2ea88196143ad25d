#include <fmt/format.h>

#include <array>

#include "mercer/core/error.hpp"
#include "mercer/likelihoods/bernoulli_logit.hpp"
#include "mercer/likelihoods/bernoulli_probit.hpp"
#include "mercer/likelihoods/gaussian.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "mercer/likelihoods/negative_binomial.hpp"
#include "mercer/likelihoods/poisson.hpp"
#include "mercer/likelihoods/softmax.hpp"
#include "mercer/likelihoods/student_t.hpp"

namespace mercer::likelihoods {
namespace {

const auto& registry() {
  static const std::array all = {
      // clang-format off
      gaussian_info(),
      bernoulli_logit_info(),
      bernoulli_probit_info(),
      softmax_info(),
      poisson_info(),
      negative_binomial_info(),
      student_t_info(),
      // clang-format on
  };
  return all;
}

}  // namespace

std::span<const LikelihoodInfo> likelihoods() { return registry(); }

std::unique_ptr<Likelihood> make(std::string_view text) {
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  std::string names;
  for (const auto& info : registry()) {
    if (info.name == name) {
      if (colon == std::string_view::npos) return info.make({});
      if (colon + 1 < text.size()) return info.make(text.substr(colon + 1));
      throw InvalidArgument(fmt::format("likelihood '{}': nothing follows the colon", text));
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  }
  throw InvalidArgument(fmt::format("there is no likelihood '{}'; there are: {}", name, names));
}

}  // namespace mercer::likelihoods
