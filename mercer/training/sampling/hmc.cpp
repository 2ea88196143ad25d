// Hamiltonian Monte Carlo in the metric of the posterior's covariance. A trajectory lasts a random
// time between 0 and pi: half a period on average of every direction of a normal posterior, after
// which a draw is independent of the last one, and no direction can resonate. (The No-U-Turn
// sampler finds such a length by itself, with about twice the gradients; in this metric it is
// known.)
//   Source: Duane et al. (1987); Neal (2011); the step by dual averaging as in Hoffman & Gelman
//           (2014), to an acceptance of 0.8.
//   Cost:   two to four exact gradients an iteration; about one independent draw each.
//   When not: where a factorisation of all rows is too long: sgld.
#include <numbers>

#include "mercer/training/sampling/adaptation.hpp"
#include "mercer/training/sampling/chain.hpp"
#include "mercer/training/trainers.hpp"

namespace mercer::training {
namespace {

constexpr double kTrajectoryAcceptance = 0.8, kLongestTrajectory = std::numbers::pi;
// Of dual averaging, as Hoffman & Gelman recommend for trajectories.
constexpr double kStepShrinkage = 0.05, kStepReach = 10;
// Gradients of one trajectory at most: a step so small has not settled yet.
constexpr int kMostLeaps = 64;
// A trajectory that loses so much energy has left what its step can follow.
constexpr double kLostEnergy = 1000;
constexpr Index kHmcIterations = 2000;
constexpr double kUsualLeaps = 3;

class HmcChain final : public Chain {
 public:
  explicit HmcChain(ChainSetup given)
      : Chain(std::move(given)),
        adaptation_({.covariance = setup().mode.covariance,
                     .warmup = setup().warmup,
                     .first_step = 0.5,
                     .rule = {.acceptance = kTrajectoryAcceptance,
                              .shrinkage = kStepShrinkage,
                              .reach = kStepReach}}) {}

 protected:
  void step(Index iteration) override {
    Place here = here_;
    Leaps leaps;
    if (done() == 0) {
      const auto value = target().at(phi(), {});
      here = {phi(), value.log_density, value.gradient};
      ++leaps.evaluations;
    }
    Rng rng = stream("hmc", iteration);
    const Vector momentum = normals(rng, phi().size());
    const double size = adaptation_.step(iteration);
    const int count = std::clamp(
        static_cast<int>(std::ceil(rng.uniform() * kLongestTrajectory / size)), 1, kMostLeaps);
    const double level = rng.uniform();
    follow(here, momentum, size, count, leaps);
    const double acceptance = leaps.arrived ? std::min(1.0, std::exp(-leaps.energy_error)) : 0.0;
    // All is known: from here on nothing throws.
    counts().evaluations += leaps.evaluations;
    counts().failed += leaps.failed;
    here_ = level < acceptance ? std::move(leaps.end) : std::move(here);
    move_to(here_.phi);
    adaptation_.learn(iteration, phi(), acceptance);
    if (warming(iteration)) return;
    if (!keeps()) keep_from(iteration);
    const auto kept = static_cast<double>(iteration - report().first_kept + 1);
    counts().acceptance += (acceptance - report().acceptance) / kept;
    counts().step = size;
    counts().divergent += leaps.arrived && leaps.energy_error > kLostEnergy;
  }
  void visit_state(Archive& archive) override {
    archive.array("here", here_.phi);
    archive.number("log_density", here_.log_density);
    archive.array("gradient", here_.gradient);
    adaptation_.visit_state(archive);
  }

 private:
  struct Place {
    Vector phi;
    double log_density = 0;
    Vector gradient;
  };
  struct Leaps {
    Place end;
    bool arrived = false;     // false: it came where there is no density
    double energy_error = 0;  // at the end
    Index evaluations = 0, failed = 0;
  };

  // Leapfrog steps with phi = L q: momentum r has the unit matrix as its mass.
  void follow(const Place& here, const Vector& momentum, double size, int count, Leaps& out) {
    const Matrix& root = adaptation_.root();
    out.end = here;
    Vector r = momentum;
    const double before = 0.5 * r.squaredNorm() - here.log_density;
    for (int i = 0; i < count; ++i) {
      r += 0.5 * size * (root.transpose() * out.end.gradient);
      out.end.phi += size * (root * r);
      const bool possible = target().inside(out.end.phi);
      const auto value = target().at(out.end.phi, {});
      out.evaluations += possible;
      out.failed += possible && !value.possible();
      if (!value.possible()) return;
      out.end.log_density = value.log_density;
      out.end.gradient = value.gradient;
      r += 0.5 * size * (root.transpose() * out.end.gradient);
      out.energy_error = 0.5 * r.squaredNorm() - out.end.log_density - before;
      if (!(out.energy_error <= kLostEnergy)) {
        out.energy_error = HUGE_VAL;
        break;
      }
    }
    out.arrived = true;
  }

  Adaptation adaptation_;
  Place here_;
};

}  // namespace

TrainerInfo hmc_info() {
  return {
      .name = "hmc",
      .summary = "draws from the posterior by Hamiltonian Monte Carlo on exact gradients",
      .by_solves = false,
      .from_start_values = true,
      .on_surrogate = false,
      .preference = [](const inference::Problem&) { return 0; },
      .refusal = [](const inference::Problem&) { return std::string(); },
      .run =
          [](Search& search, const Vector&) {
            return run_chains(search, {.evidence = inference::EvidenceBy::factorisation,
                                       .iterations = kHmcIterations,
                                       .warmup = 0.5,
                                       .make = [](ChainSetup setup) -> std::unique_ptr<Chain> {
                                         return std::make_unique<HmcChain>(std::move(setup));
                                       }});
          },
      .draws =
          DrawsInfo{.iterations = kHmcIterations, .evaluations = kUsualLeaps, .preferred = true}};
}

}  // namespace mercer::training
