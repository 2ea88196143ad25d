// Delayed acceptance: a proposal is the end of a random walk on the posterior of the Vecchia
// likelihood, which costs O(N), and only that end is judged by the exact evidence. The walk keeps
// its own posterior q, so what is left to judge is
//   min(1, p(to) q(from) / (p(from) q(to))),
// and the draws have p as their exact limit, however good or bad q is: a bad one costs acceptance.
// So q is made better in the warm-up, and only there: the difference of the two log densities at
// the ends of walks is fitted by a linear function of the log parameters, which is added to q.
//   Source: Christen & Fox (2005); several steps of the first stage between two judgements: Liu
//           (2001), surrogate transitions.
//   Cost:   one exact evidence an iteration, and `surrogate_steps` Vecchia likelihoods. By solves
//           log|H| is estimated from probes that are the same random numbers every time: p is then
//           that of the estimate, and what differs from the exact posterior is how much the error
//           of log|H| varies over it (docs/methods/sampling.md).
//   When not: other likelihoods than Gaussian noise, which have no Vecchia likelihood here; few
//           rows, where hmc takes fewer evidences for a draw.
#include <Eigen/Cholesky>

#include "mercer/training/sampling/adaptation.hpp"
#include "mercer/training/sampling/chain.hpp"
#include "mercer/training/trainers.hpp"

namespace mercer::training {
namespace {

// Of steps of the walk.
constexpr double kWalkAcceptance = 0.25;
constexpr Index kDelayedIterations = 2000;
// Up to so many rows the exact evidence is factored.
constexpr Index kFactoredRows = 2000;
// Of the solve for the quadratic form, whose error is of second order in it.
constexpr double kValueTolerance = 1e-4;

// Least squares of log p - log q on 1 and z = L^-1 (phi - mode), L L' = C, with the last
// differences counting most.
class Correction {
 public:
  explicit Correction(const PosteriorMode& mode)
      : mode_(mode.phi),
        root_(covariance_root(mode.covariance)),
        squares_(Matrix::Zero(mode_.size() + 1, mode_.size() + 1)),
        sums_(Vector::Zero(mode_.size() + 1)),
        slopes_(Vector::Zero(mode_.size())) {}

  double at(const Vector& phi) const { return slopes_.dot(whitened(phi)); }
  void learn(const Vector& phi, double difference) {
    if (!(std::abs(difference) < HUGE_VAL)) return;
    if (count_++ == 0) level_ = difference;
    Vector v(slopes_.size() + 1);
    v << 1, whitened(phi);
    squares_ = kMemory * squares_ + v * v.transpose();
    sums_ = kMemory * sums_ + (difference - level_) * v;
    Matrix ridged = squares_;
    ridged.diagonal().array() += kRidge;
    slopes_ = ridged.llt().solve(sums_).tail(slopes_.size());
  }
  void visit_state(Archive& archive) {
    archive.number("differences", count_);
    archive.number("difference_level", level_);
    archive.array("difference_squares", squares_);
    archive.array("difference_sums", sums_);
    archive.array("difference_slopes", slopes_);
  }

 private:
  static constexpr double kMemory = 0.98, kRidge = 0.1;
  Vector whitened(const Vector& phi) const {
    return root_.triangularView<Eigen::Lower>().solve(phi - mode_);
  }

  Vector mode_;
  Matrix root_;
  Matrix squares_;
  Vector sums_, slopes_;
  double level_ = 0;
  Index count_ = 0;
};

class DelayedChain final : public Chain {
 public:
  explicit DelayedChain(ChainSetup given)
      : Chain(std::move(given)),
        correction_(setup().mode),
        adaptation_({.covariance = setup().mode.covariance,
                     .warmup = setup().warmup,
                     .first_step = 2.38 / std::sqrt(static_cast<double>(phi().size())),
                     .rule = {.acceptance = kWalkAcceptance}}) {}

 protected:
  void step(Index iteration) override {
    const inference::Ask exact{.gradient = false, .tolerance = kValueTolerance};
    Levels here = here_;
    Index evaluations = 0;
    double error = 0;
    if (done() == 0) {
      const auto value = target().at(phi(), exact);
      here = {value.log_density, walked(phi())};
      error = value.error;
      ++evaluations;
    }
    Rng rng = stream("delayed", iteration);
    const auto end = walk(rng, here.surrogate, adaptation_.step(iteration));
    Levels there{-HUGE_VAL, end.surrogate};
    if (end.moved) {
      const auto value = target().at(end.phi, exact);
      there.exact = value.log_density;
      error = std::max(error, value.error);
      ++evaluations;
    }
    const double level = rng.uniform();
    const bool accepted =
        end.moved && level < judged(here, there, correction_.at(end.phi) - correction_.at(phi()));
    // All is known: from here on nothing throws.
    counts().evaluations += evaluations;
    counts().failed += end.moved && !(there.exact > -HUGE_VAL);
    counts().evidence_error = std::max(report().evidence_error, error);
    here_ = here;
    if (warming(iteration) && end.moved) correction_.learn(end.phi, there.exact - there.surrogate);
    if (accepted) {
      move_to(end.phi);
      here_ = there;
    }
    adaptation_.learn(iteration, phi(), end.acceptance);
    if (warming(iteration)) return;
    if (!keeps()) keep_from(iteration);
    const auto kept = static_cast<double>(iteration - report().first_kept + 1);
    // Of walks that led somewhere: the others proposed nothing.
    if (end.moved) {
      ++proposals_;
      counts().acceptance +=
          ((accepted ? 1.0 : 0.0) - report().acceptance) / static_cast<double>(proposals_);
    }
    counts().walk_acceptance += (end.acceptance - report().walk_acceptance) / kept;
    counts().step = adaptation_.step(iteration);
  }
  void visit_state(Archive& archive) override {
    archive.number("log_density", here_.exact);
    archive.number("surrogate", here_.surrogate);
    archive.number("proposals", proposals_);
    correction_.visit_state(archive);
    adaptation_.visit_state(archive);
  }

 private:
  /// Log densities of one place, the surrogate's without the correction.
  struct Levels {
    double exact = 0, surrogate = 0;
  };
  struct Walk {
    Vector phi;
    double surrogate = 0;   // log density there, without the correction
    double acceptance = 0;  // of its steps, on average
    bool moved = false;
  };

  double walked(const Vector& phi) {
    return setup().surrogate->at(phi, {.gradient = false}).log_density;
  }

  // Random-walk Metropolis on the surrogate.
  Walk walk(Rng& rng, double surrogate, double size) {
    const Index steps = setup().options.surrogate_steps;
    Walk out{phi(), surrogate};
    for (Index i = 0; i < steps; ++i) {
      Vector to = out.phi + size * (adaptation_.root() * normals(rng, out.phi.size()));
      const double below = rng.uniform();
      const double next = walked(to);
      const double gain = next - out.surrogate + correction_.at(to) - correction_.at(out.phi);
      const double acceptance = next > -HUGE_VAL ? std::min(1.0, std::exp(gain)) : 0.0;
      out.acceptance += acceptance / static_cast<double>(steps);
      if (!(below < acceptance)) continue;
      out.phi = std::move(to);
      out.surrogate = next;
      out.moved = true;
    }
    return out;
  }

  // A start that either finds impossible is left for any place that is not.
  static double judged(const Levels& from, const Levels& to, double correction) {
    if (!(to.exact > -HUGE_VAL)) return 0;
    if (!(from.exact > -HUGE_VAL) || !(from.surrogate > -HUGE_VAL)) return 1;
    return std::min(
        1.0, std::exp((to.exact - from.exact) - (to.surrogate - from.surrogate) - correction));
  }

  Correction correction_;
  Adaptation adaptation_;
  Levels here_;
  Index proposals_ = 0;  // after the warm-up
};

}  // namespace

TrainerInfo da_info() {
  return {.name = "da",
          .summary =
              "draws from the posterior: walks on the Vecchia likelihood, judged by the exact one",
          .by_solves = true,
          .from_start_values = true,
          .on_surrogate = false,
          .gradients = [](const inference::Problem&, const TrainOptions&) -> double {
            return kDelayedIterations;
          },
          .preference = [](const inference::Problem&) { return 0; },
          .refusal =
              [](const inference::Problem& problem) {
                return problem.gaussian()
                           ? std::string()
                           : std::string(
                                 "`sampler=da` walks on the Vecchia likelihood, which only "
                                 "Gaussian noise has; use sgld, or hmc on few rows");
              },
          .run =
              [](Search& search, const Vector&) {
                const bool few = search.choice().rows <= kFactoredRows;
                return run_chains(search,
                                  {.evidence = few ? inference::EvidenceBy::factorisation
                                                   : inference::EvidenceBy::solves,
                                   .iterations = kDelayedIterations,
                                   .warmup = 0.25,
                                   .make = [](ChainSetup setup) -> std::unique_ptr<Chain> {
                                     return std::make_unique<DelayedChain>(std::move(setup));
                                   },
                                   .values = true,
                                   .surrogate = inference::EvidenceBy::surrogate});
              },
          .draws = DrawsInfo{.iterations = kDelayedIterations,
                             .evaluations = 1,
                             .values = true,
                             .factored_rows = kFactoredRows,
                             .options = {"surrogate_steps"}}};
}

}  // namespace mercer::training
