#include "mercer/inference/exact/unbiased_solve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/krylov/ulisse.hpp"
#include "mercer/preconditioners/registry.hpp"

namespace mercer::inference {

double early_tolerance(Index n) {
  return std::min(0.01, 1 / std::sqrt(static_cast<double>(std::max<Index>(1, n))));
}

std::string unbiased_refusal(const SystemChoice& choice) {
  if (choice.preconditioner != "auto" &&
      !preconditioners::preconditioner(choice.preconditioner).fixed)
    return fmt::format(
        "solves that are right on average need a preconditioner that stays the same, which "
        "`preconditioner={}` does not",
        choice.preconditioner);
  const auto plain = krylov::default_solver().name;
  if (!choice.direct() && choice.solver != plain)
    return fmt::format("solves that are right on average are those of {}, and `solver={}` is given",
                       plain, choice.solver);
  return {};
}

UnbiasedSolutions solve_unbiased(const IterativeSystem& system, ConstMatrixView b, Matrix start,
                                 const UnbiasedRequest& request, const Observer& observer) {
  const auto& choice = system.choice;
  if (const auto why = unbiased_refusal(choice); !why.empty()) throw InvalidArgument(why);
  auto options = solver_options(choice, request.tolerance);
  options.random_stop = request.stop;
  UnbiasedSolutions out;
  out.first = std::move(start);
  const linalg::ShiftedOperator high(*system.k.exact, system.noise);
  const linalg::ShiftedOperator low(system.k.fast ? *system.k.fast : *system.k.exact, system.noise);
  krylov::SolverContext context;
  context.preconditioner = system.preconditioner;
  context.observer = observer;
  context.last_iterate = &out.last_iterate;
  if (choice.precision == SolvePrecision::mixed) context.low_precision = &low;
  out.report =
      report_of(krylov::ulisse_pair(choice.precision == SolvePrecision::float32 ? low : high, b,
                                    out.first, out.second, options, context));
  return out;
}

}  // namespace mercer::inference
