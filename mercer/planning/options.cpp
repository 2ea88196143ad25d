#include "mercer/planning/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "mercer/inference/choice.hpp"
#include "mercer/inference/exact/evidence_gradient.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/inference/mean_function.hpp"
#include "mercer/kernels/registry.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/operators/registry.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/training/training.hpp"

namespace mercer::planning {
namespace {

using Names = std::vector<std::string>;

// "auto", then the names of these enumerators.
template <class Kind>
Names auto_and(std::initializer_list<Kind> kinds) {
  Names names = {"auto"};
  for (const auto kind : kinds) names.emplace_back(to_string(kind));
  return names;
}

struct Choice {
  std::string_view name, summary;
};

std::vector<Choice> solver_choices() {
  std::vector<Choice> all = {{"auto", "what the plan finds quickest"}};
  for (const auto& entry : inference::solvers()) all.push_back({entry.name, entry.summary});
  return all;
}

std::vector<Choice> operator_choices() {
  std::vector<Choice> all = {{"auto", "what the plan finds quickest"}};
  for (const auto& entry : operators::operators()) all.push_back({entry.name, entry.summary});
  return all;
}

std::vector<Choice> preconditioner_choices() {
  std::vector<Choice> all = {{"auto", "none, then rpcholesky or hybrid of the rank that pays"},
                             {"none", "plain iterations"}};
  for (const auto& entry : preconditioners::preconditioners())
    if (entry.name != "none") all.push_back({entry.name, entry.summary});
  return all;
}

Names names_of(const std::vector<Choice>& choices) {
  Names names;
  for (const auto& choice : choices) names.emplace_back(choice.name);
  return names;
}

std::string line(std::string_view name, std::string_view summary) {
  return fmt::format("  {:<18}{}\n", name, summary);
}

std::string lines_of(const std::vector<Choice>& choices) {
  std::string text;
  for (const auto& choice : choices) text += line(choice.name, choice.summary);
  return text;
}

}  // namespace

preconditioners::PreconditionerOptions given_preconditioning(const MethodOptions& options) {
  auto given = options.preconditioning;
  given.seed = options.seed;
  if (options.landmarks != "auto") given.landmarks = preconditioners::landmarks(options.landmarks);
  return given;
}

preconditioners::Takes taken_by(const std::string& preconditioner) {
  if (preconditioner == "auto") return {.rank = true};  // the largest
  return preconditioners::preconditioner(preconditioner).takes;
}

preconditioners::PreconditionerOptions preconditioning_for(const std::string& preconditioner,
                                                           const MethodOptions& options) {
  auto out = given_preconditioning(options);
  visit_options(out, taken_by(preconditioner), [](const char*, auto& value, bool taken) {
    if (!taken) value.reset();
  });
  return out;
}

bool needs_flexible(const std::string& preconditioner) {
  return preconditioner != "auto" && !preconditioners::preconditioner(preconditioner).fixed;
}

std::string iterative_solver(const std::string& asked, const std::string& preconditioner) {
  if (krylov::solvers().contains(asked)) return asked;
  return std::string(needs_flexible(preconditioner) ? krylov::flexible_solver().name
                                                    : krylov::default_solver().name);
}

Names mean_names() {
  Names names;
  for (const auto name : inference::mean_kinds()) names.emplace_back(name);
  return names;
}

Names precision_names() {
  using inference::SolvePrecision;
  return auto_and({SolvePrecision::float64, SolvePrecision::mixed, SolvePrecision::float32});
}

Names solver_names() { return names_of(solver_choices()); }

Names preconditioner_names() { return names_of(preconditioner_choices()); }

Names continuation_names() {
  Names names = {"auto"};
  for (const auto rule : krylov::kContinuations) names.emplace_back(to_string(rule));
  return names;
}

std::optional<krylov::RandomStopOptions> random_stop_for(const std::string& solver,
                                                         const MethodOptions& options) {
  if (!inference::solver(solver).unbiased) return {};
  krylov::RandomStopOptions out;
  out.early_tolerance = options.early_tolerance.value_or(out.early_tolerance);
  for (const auto rule : krylov::kContinuations)
    if (options.continuation == to_string(rule)) out.continuation = rule;
  out.beta = options.beta.value_or(out.beta);
  out.seed = options.seed;
  return out;
}

void refuse_unbiased(const MethodOptions& options, const char* purpose) {
  if (options.solver == "auto" || !inference::solver(options.solver).unbiased) return;
  throw InvalidArgument(fmt::format(
      "`solver={}` gives random solutions that are right on average, and {} one that is "
      "certified; take {}, or leave `solver` out",
      options.solver, purpose, krylov::default_solver().name));
}

Names operator_names() { return names_of(operator_choices()); }

Names landmark_names() {
  Names names = {"auto"};
  for (const auto name : approximations::landmark_names()) names.emplace_back(name);
  return names;
}

Names variance_names() { return {"auto", "exact", "vecchia", "samples", "none"}; }

namespace {

// "`solver=fcg` or fgmres".
std::string flexible_solvers() {
  std::vector<std::string_view> names;
  for (const auto& entry : krylov::solvers())
    if (entry.flexible) names.push_back(entry.name);
  return fmt::format("`solver={}` or {}", names.front(),
                     fmt::join(names.begin() + 1, names.end(), " or "));
}

// What does not go with the solver that was asked for. What a factorisation does not go with is
// said by the plan.
void check_solver(const inference::SystemSolver& solver, const MethodOptions& options) {
  if (solver.unbiased && options.preconditioner == "auto" && options.preconditioning.rank)
    throw InvalidArgument(
        fmt::format("`rank` is of a preconditioner, and `preconditioner=auto` is none with {}, "
                    "whose P must not change; name one",
                    solver.name));
  if (!solver.takes_preconditioner && options.preconditioning.rank)
    throw InvalidArgument(
        fmt::format("`rank` is of a preconditioner, which {} does not have", solver.name));
  if (solver.direct) return;
  if (!solver.takes_preconditioner && options.preconditioner != "auto" &&
      options.preconditioner != "none")
    throw InvalidArgument(
        fmt::format("`solver={}` takes no preconditioner; leave it out, or take {}", solver.name,
                    krylov::default_solver().name));
  if (solver.double_only && options.precision != "auto" && options.precision != "double")
    throw InvalidArgument(
        fmt::format("`solver={}` works in double precision; leave `precision` out", solver.name));
  if (solver.takes_preconditioner && needs_flexible(options.preconditioner) && !solver.flexible)
    throw InvalidArgument(
        fmt::format("the preconditioner '{}' changes from step to step, which '{}' does not allow; "
                    "take {}, or leave `solver` out",
                    options.preconditioner, solver.name, flexible_solvers()));
}

// Options of a random stop belong to a solver that has one, and beta to a rule that has it.
void check_random_stop(const MethodOptions& options) {
  const bool unbiased = options.solver != "auto" && inference::solver(options.solver).unbiased;
  const auto only_for = [&](const char* option, bool given) {
    if (!given || unbiased) return;
    std::vector<std::string_view> names;
    for (const auto& entry : krylov::solvers())
      if (entry.unbiased) names.push_back(entry.name);
    throw InvalidArgument(fmt::format("`{}` is of solvers that stop by a draw: `solver={}`", option,
                                      fmt::join(names, " or ")));
  };
  only_for("early_tolerance", options.early_tolerance.has_value());
  only_for("continuation", options.continuation != "auto");
  only_for("beta", options.beta.has_value());
  if (!unbiased) return;
  const auto rule = random_stop_for(options.solver, options);
  if (options.beta && rule->continuation == krylov::Continuation::residual)
    throw InvalidArgument(
        fmt::format("`beta` means nothing for `continuation={}`; it is for the other rules",
                    to_string(rule->continuation)));
  if (rule->early_tolerance <= options.tolerance)
    throw InvalidArgument(
        fmt::format("`early_tolerance` is {:g}, but must be above `tolerance`, {:g}",
                    rule->early_tolerance, options.tolerance));
}

}  // namespace

void check(const MethodOptions& options) {
  validate(options);
  auto given = given_preconditioning(options);
  if (options.preconditioner != "auto")
    preconditioners::check(preconditioners::preconditioner(options.preconditioner), given);
  visit_options(
      given, taken_by(options.preconditioner), [](const char* name, const auto& value, bool taken) {
        if (value && !taken)
          throw InvalidArgument(
              fmt::format("`{}` belongs to a preconditioner; name it with `preconditioner`", name));
      });
  check_random_stop(options);
  if (options.solver != "auto") check_solver(inference::solver(options.solver), options);
}

void check(const VarianceOptions& options) {
  validate(options);
  const auto only_for = [&](const char* option, bool given,
                            std::initializer_list<const char*> methods) {
    if (!given || options.method == "auto") return;
    if (std::find(methods.begin(), methods.end(), options.method) == methods.end())
      throw InvalidArgument(fmt::format("`{}` means nothing for `variance={}`; it is for {}",
                                        option, options.method, fmt::join(methods, " and ")));
  };
  only_for("neighbours", options.neighbours.has_value(), {"vecchia"});
  only_for("check_rows", options.check_rows.has_value(), {"vecchia", "samples"});
}

void check(const TrainOptions& options) {
  validate(options);
  if (options.probes < 2)
    throw InvalidArgument("`probes` must be at least 2: their spread is the error of a gradient");
  if (options.subset && *options.subset < 2)
    throw InvalidArgument("`subset` must be at least 2 rows");
}

std::string describe_solvers() { return lines_of(solver_choices()); }

std::string describe_operators() { return lines_of(operator_choices()); }
std::string describe_preconditioners() { return lines_of(preconditioner_choices()); }
std::string describe_trainers() {
  std::vector<Choice> all = {{"auto", "what suits the likelihood and the number of rows"},
                             {"none", "keep the hyperparameters that are given"}};
  for (const auto& entry : training::trainers())
    if (!entry.draws) all.push_back({entry.name, entry.summary});
  return lines_of(all);
}
std::string describe_inference() {
  std::vector<Choice> all;
  for (const auto& entry : inference::methods()) all.push_back({entry.name, entry.summary});
  return lines_of(all);
}

std::string describe_kernels() {
  std::string text;
  for (const auto& info : kernels::kernels_registry()) text += line(info.name, info.summary());
  return text;
}

}  // namespace mercer::planning
