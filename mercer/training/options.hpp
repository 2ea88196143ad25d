// What a user may ask of learning. `auto` (or unset) leaves the choice to the plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mercer/core/options.hpp"
#include "mercer/core/types.hpp"

MERCER_API_BEGIN
namespace mercer::training {

struct TrainOptions {
  std::string train = "auto";
  std::optional<int> steps;  // of the optimiser at most, per start; unset: its own limit
  int restarts = 2;          // random starts beside the first
  int probes = 8;            // right-hand sides that a trace is estimated from
  std::string probe_kind = "auto";
  std::optional<Index> subset;  // rows to learn hyperparameters on; unset: the plan decides
  std::optional<Index> budget;  // products of all rows that gradients by solves may take
  std::string checkpoint;       // file to resume from and write to; empty: none
};

/// auto, none and the trainers of the registry; auto and the kinds of probes.
std::vector<std::string> train_names();
std::vector<std::string> probe_kind_names();

template <class Visitor>
void visit_fields(TrainOptions& o, Visitor&& field) {
  field({"train", "HOW", "how hyperparameters are learned; none keeps the given ones"}, o.train,
        OneOf{train_names()});
  field({"steps", "I", "steps at most, per start",
         "100; 40 of adam and adagrad with a likelihood that is not Gaussian"},
        o.steps, Positive{});
  field({"restarts", "R", "random starts beside the first"}, o.restarts, NonNegative{});
  field({"subset", "M", "rows to learn hyperparameters on", "planned"}, o.subset, Positive{});
  field({"probes", "T", "by solves: right-hand sides that traces are estimated from"}, o.probes,
        Positive{});
  field({"probe_kind", "NAME", "how they are drawn; auto is control"}, o.probe_kind,
        OneOf{probe_kind_names()});
  field(
      {"budget", "P",
       "by solves: products with the kernel matrix of all rows that gradients may take, by count; "
       "of Q rows a product counts (Q/N)^2",
       "about half an hour of them for lbfgs, else none"},
      o.budget, Positive{});
  field({"checkpoint", "FILE",
         "keep what was learned so far in this file; the same command goes on from it", "none",
         Affects::nothing},
        o.checkpoint, Any{});
}

}  // namespace mercer::training
MERCER_API_END
