#include <fmt/format.h>

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

Registry<LikelihoodInfo>& likelihoods() {
  // clang-format off
  static Registry<LikelihoodInfo> all("likelihood", {
      gaussian_info(),
      bernoulli_logit_info(),
      bernoulli_probit_info(),
      softmax_info(),
      poisson_info(),
      negative_binomial_info(),
      student_t_info(),
  });
  // clang-format on
  return all;
}

std::unique_ptr<Likelihood> make(std::string_view text) {
  const auto colon = text.find(':');
  const auto& info = likelihoods().find(text.substr(0, colon));
  if (colon == std::string_view::npos) return info.make({});
  if (colon + 1 < text.size()) return info.make(text.substr(colon + 1));
  throw InvalidArgument(fmt::format("likelihood '{}': nothing follows the colon", text));
}

}  // namespace mercer::likelihoods
