// What a user may ask of draws from the posterior of the hyperparameters. `auto` (or unset) leaves
// the choice to the plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mercer/core/options.hpp"
#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::training {

struct SampleOptions {
  std::string sampler = "auto";
  Index chains = 4;
  std::optional<Index> iterations;  // of every chain, warm-up included; unset: the sampler's own
  std::optional<Index> warmup;      // of these, thrown away; unset: the sampler's own
  std::vector<std::string> prior;   // parts of NAME=FAMILY(..)
  // sgld only:
  double first_step = 0.1;  // in squared standard deviations of the posterior, about
  double last_step = 0.01;  // reached after half of the iterations, unless it is frozen before
  double phase_ratio =
      0.02;           // of the noise of gradients to the noise injected: below it is Langevin
  Index redraw = 20;  // iterations between two draws of the probes
  std::optional<Index> half_steps;  // iterations that are also made in half steps
  std::string unbiased = "auto";    // solves that stop at random and are right on average
  // da only:
  Index surrogate_steps = 20;  // on the Vecchia likelihood between two exact evidences
};

/// auto and the trainers of the registry that return draws.
std::vector<std::string> sampler_names();

template <class Visitor>
void visit_fields(SampleOptions& o, Visitor&& field) {
  field({"sampler", "NAME",
         "how draws are made; auto is hmc where exact evidences are affordable, else sgld"},
        o.sampler, OneOf{sampler_names()});
  field({"chains", "C", "chains, from starts that are further apart than the posterior is wide"},
        o.chains, Positive{});
  field(
      {"iterations", "n", "of every chain, warm-up included", "hmc and da 2000, mh and sgld 20000"},
      o.iterations, Positive{});
  field({"warmup", "w",
         "iterations before any draw is kept, in which mh, hmc and da adapt; sgld keeps draws from "
         "the "
         "Langevin phase on, and not before this",
         "half of the iterations; da a quarter, sgld 0"},
        o.warmup, NonNegative{});
  field({"prior", "NAME=P",
         "prior of a parameter, as lengthscale=gamma(2,2); a name without its [..] is all of them; "
         "may be repeated, or several with commas",
         "gamma(2,2) for every parameter"},
        o.prior, Any{});
  field({"first_step", "E", "sgld: step of the first iteration"}, o.first_step, Positive{});
  field({"last_step", "E", "sgld: step after half of the iterations, if not frozen before"},
        o.last_step, Positive{});
  field({"phase_ratio", "R",
         "sgld: the Langevin phase begins, and the step is frozen, where the noise of gradients is "
         "below this share of the noise injected"},
        o.phase_ratio, BelowOne{});
  field({"redraw", "R", "sgld: iterations between two draws of the probes"}, o.redraw, Positive{});
  field({"half_steps", "n",
         "sgld: iterations of the phase that a second path makes in half steps, which shows the "
         "bias of the step; 0: none",
         "a tenth of the iterations"},
        o.half_steps, NonNegative{});
  field({"unbiased", "HOW",
         "sgld: solves stop early at random and are right on average; no: they end at 1e-4; auto "
         "is yes with Gaussian noise, cg and a preconditioner that does not change"},
        o.unbiased, OneOf{{"auto", "yes", "no"}});
  field({"surrogate_steps", "S", "da: steps on the Vecchia likelihood before each exact evidence"},
        o.surrogate_steps, Positive{});
}

}  // namespace mercer::training
MERCER_API_END
