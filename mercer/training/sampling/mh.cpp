// Random-walk Metropolis: normal proposals whose covariance and size are learned in the warm-up.
//   Source: Metropolis et al. (1953); Haario, Saksman & Tamminen (2001), with the adaptation ended
//           before draws are kept, so that these have the posterior as their exact limit.
//   Cost:   one evidence without gradient an iteration; about one independent draw in some ten
//   times
//           the number of parameters.
//   When not: with more than about ten parameters hmc needs far fewer evidences for a draw.
#include "mercer/training/sampling/adaptation.hpp"
#include "mercer/training/sampling/chain.hpp"
#include "mercer/training/trainers.hpp"

namespace mercer::training {
namespace {

// Between 20 % and 30 % is best for a few parameters and not bad for one.
constexpr double kMetropolisAcceptance = 0.25;
constexpr Index kMetropolisIterations = 20000;

class MetropolisChain final : public Chain {
 public:
  explicit MetropolisChain(ChainSetup given)
      : Chain(std::move(given)),
        // 2.38 / sqrt(p) is the best size for a normal posterior of many parameters.
        adaptation_({.covariance = setup().mode.covariance,
                     .warmup = setup().warmup,
                     .first_step = 2.38 / std::sqrt(static_cast<double>(phi().size())),
                     .rule = {.acceptance = kMetropolisAcceptance},
                     .restart_step = true}) {}

 protected:
  void step(Index iteration) override {
    double here = log_density_;
    Index evaluations = 1;
    if (done() == 0) {
      here = target().at(phi(), {.gradient = false}).log_density;
      ++evaluations;
    }
    Rng rng = stream("metropolis", iteration);
    const double size = adaptation_.step(iteration);
    Vector there = phi() + size * (adaptation_.root() * normals(rng, phi().size()));
    const double level = rng.uniform();
    const bool possible = target().inside(there);
    const auto value = target().at(there, {.gradient = false});
    const double acceptance =
        value.possible() ? std::min(1.0, std::exp(value.log_density - here)) : 0.0;
    // All is known: from here on nothing throws.
    counts().evaluations += evaluations;
    counts().failed += possible && !value.possible();
    log_density_ = here;
    if (level < acceptance) {
      move_to(std::move(there));
      log_density_ = value.log_density;
    }
    adaptation_.learn(iteration, phi(), acceptance);
    if (warming(iteration)) return;
    if (!keeps()) keep_from(iteration);
    const auto kept = static_cast<double>(iteration - report().first_kept + 1);
    counts().acceptance += ((level < acceptance ? 1.0 : 0.0) - report().acceptance) / kept;
    counts().step = size;
  }
  void visit_state(Archive& archive) override {
    archive.number("log_density", log_density_);
    adaptation_.visit_state(archive);
  }

 private:
  Adaptation adaptation_;
  double log_density_ = 0;
};

}  // namespace

TrainerInfo mh_info() {
  return {.name = "mh",
          .summary = "draws from the posterior by random-walk Metropolis, adapted in the warm-up",
          .by_solves = false,
          .from_start_values = true,
          .on_surrogate = false,
          .preference = [](const inference::Problem&) { return 0; },
          .refusal = [](const inference::Problem&) { return std::string(); },
          .run =
              [](Search& search, const Vector&) {
                return run_chains(search,
                                  {.evidence = inference::EvidenceBy::factorisation,
                                   .iterations = kMetropolisIterations,
                                   .warmup = 0.5,
                                   .make = [](ChainSetup setup) -> std::unique_ptr<Chain> {
                                     return std::make_unique<MetropolisChain>(std::move(setup));
                                   }});
              },
          .draws = DrawsInfo{.iterations = kMetropolisIterations, .evaluations = 0.5}};
}

}  // namespace mercer::training
