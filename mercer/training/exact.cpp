// L-BFGS on exact evidences, by factorisations: what the levels of every search do, and all there
// is to do where a factorisation of the rows is affordable.
#include "mercer/training/search.hpp"
#include "mercer/training/trainers.hpp"

namespace mercer::training {

TrainerInfo exact_info() {
  return {.name = "exact",
          .summary = "L-BFGS on exact evidences by factorisations",
          .by_solves = false,
          .from_start_values = false,
          .on_surrogate = false,
          .also_exact = true,
          .preference = [](const inference::Problem&) { return 0; },
          .refusal = [](const inference::Problem&) { return std::string(); },
          // The levels have done it.
          .run = [](Search&, const Vector& start) { return start; }};
}

}  // namespace mercer::training
