// What a user may ask of learning. `auto` (or unset) leaves the choice to the plan.
#pragma once

#include <optional>
#include <string>

#include "mercer/core/options.hpp"
#include "mercer/core/types.hpp"

namespace mercer::training {

struct TrainOptions {
  std::string train = "auto";       // auto | none | the trainers' registry
  std::optional<int> steps;         // of the optimiser at most, per start; unset: its own limit
  int restarts = 2;                 // random starts beside the first
  int probes = 8;                   // right-hand sides that a trace is estimated from
  std::string probe_kind = "auto";  // auto | inference::probe_kinds()
  std::optional<Index> subset;      // rows to learn hyperparameters on; unset: the plan decides
  std::string checkpoint;           // file to resume from and write to; empty: none
};

template <class Visitor>
void visit_fields(TrainOptions& o, Visitor&& field) {
  field("--steps", o.steps, Positive{});
  field("--restarts", o.restarts, NonNegative{});
  field("--probes", o.probes, Positive{});
  field("--subset", o.subset, Positive{});
}

}  // namespace mercer::training
