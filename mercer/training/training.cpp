#include "mercer/training/training.hpp"

#include <fmt/format.h>

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/training/approximate_climb.hpp"
#include "mercer/training/full_rows.hpp"
#include "mercer/training/search.hpp"
#include "mercer/training/starts.hpp"
#include "mercer/training/surrogate.hpp"
#include "mercer/training/trainers.hpp"

namespace mercer::training {
namespace {

// Several starts are compared on this many rows of the surrogate, each after so many steps there.
constexpr Index kTrialRows = 3000;
constexpr int kTrialSteps = 25;
// Of the time of learning by solves, about, that climbs on few rows take before them.
constexpr double kShareOfClimbs = 0.3;

// What is best for few rows need not be for all: a start goes on for some steps on the Vecchia
// likelihood of more rows, and is judged by what it reaches there. Returns its negative log.
double try_on_more_rows(Search& search, Vector& theta) {
  const auto more = search.rows(std::min(search.choice().rows, kTrialRows));
  Surrogate surrogate(search, more, {.on_trial = true});
  theta = surrogate.maximise(theta, kTrialSteps);
  if (surrogate.stop() == StopReason::interrupted) search.interrupted();
  surrogate.renew(theta);
  return -surrogate.evaluate(theta, false).value;
}

// What few rows say to the climb on more: where their functions lie, and the Hessian where its
// differences cost less than they save.
Hint hint_from(Search& search, const inference::Observations& few, Index more,
               const Vector& theta) {
  Hint hint;
  if (!search.rules().uses_hessian) return hint;
  if (!search.start().gaussian()) hint.warm = search.warm_start(few, more, theta);
  if (hessian_pays(few.size(), more, theta.size())) hint.hessian = search.hessian(few, theta);
  return hint;
}

// How much of the climbing one climb is: by the cube of its rows.
double climb_weight(Index rows) { return std::pow(static_cast<double>(rows), 3); }

// Several starts on the rows of the first level, the best of them. `share`: of all learning.
optim::MinimizeResult best_start(Search& search, const inference::Observations& rows,
                                 bool on_surrogate, double share) {
  const int starts = 1 + search.options().restarts;
  const bool judged = on_surrogate && starts > 1;
  const bool judge = judged && search.trainer_state().empty();  // a resumed run has done so
  const bool alone = rows.size() == search.choice().rows;
  search.report.restarts = search.options().restarts;
  if (!judged && search.rules().coarse_gain > 0) return best_of_starts(search, rows, share);
  optim::MinimizeResult best;
  double best_rank = HUGE_VAL;
  for (int s = 0; s < starts; ++s) {
    const Vector start = s == 0 ? search.box().inside(search.start().log_parameters())
                                : random_start(search.start(), search.box(), search.seed(), s);
    search.part(share * s / starts, share * (s + 1) / starts);
    auto result = search.climb(rows, start, alone ? "learn" : "learn (start)");
    double rank = result.value;
    if (judge && std::isfinite(rank)) rank = try_on_more_rows(search, result.theta);
    if (s > 0 && !(rank < best_rank)) continue;
    best_rank = rank;
    best = std::move(result);
  }
  return best;
}

// The levels: exact evidences, by factorisations.
Climbed climb_levels(Search& search, bool on_surrogate, double share) {
  const auto& levels = search.choice().levels;
  auto rows = search.rows(levels.front());
  double done = (1 + search.options().restarts) * climb_weight(levels.front()), total = done;
  for (std::size_t i = 1; i < levels.size(); ++i) total += climb_weight(levels[i]);
  auto best = best_start(search, rows, on_surrogate, share * done / total);
  for (std::size_t i = 1; i < levels.size(); ++i) {
    const Hint hint = hint_from(search, rows, levels[i], best.theta);
    rows = search.rows(levels[i]);
    const double next = done + climb_weight(levels[i]);
    search.part(share * done / total, share * next / total);
    done = next;
    best = search.climb(rows, best.theta, "learn", hint);
  }
  if (!std::isfinite(best.value))
    throw ToleranceNotReached(fmt::format(
        "learning cannot begin: at no start value is the {} a number in double precision; begin "
        "with {}, or scale the data",
        search.start().gaussian() ? "likelihood" : "evidence",
        search.start().gaussian() ? "more `noise`, or another `lengthscale` or `signal_variance`"
                                  : "a smaller `signal_variance` or another `lengthscale`"));
  if (rows.size() == search.all().size())
    search.warm = search.last_warm_start();
  else
    search.reached(best.theta);
  auto value = search.value_of(best, rows);
  const bool all = value.rows == search.all().rows_before_merging();
  value.method = all ? "cholesky" : "cholesky-subset";
  return {best.theta, std::move(value)};
}

// The trainers that an approximation has: L-BFGS on its evidence, and those that begin at the start
// values with any gradient.
void check_approximation(const TrainingChoice& choice, const TrainerInfo& trainer) {
  if (choice.approximation.empty()) return;
  if (!trainer.draws && (!trainer.by_solves || trainer.from_start_values)) return;
  throw InvalidArgument(
      fmt::format("`train={}` does not climb the evidence of an approximation", trainer.name));
}

// Stopped in the middle, the values that were reached until then are kept.
Climbed learn(Search& search, const TrainerInfo& trainer) {
  Climbed reached{search.box().inside(search.start().log_parameters()), {}};
  try {
    search.tell(reached.theta);
    const bool approximates = !search.choice().approximation.empty();
    const double share = trainer.by_solves || approximates ? kShareOfClimbs : 1;
    if (!search.choice().levels.empty())
      reached = climb_levels(search, trainer.on_surrogate, share);
    if (approximates && !trainer.by_solves) {
      reached = climb_approximation(search, reached.theta, {share, 1});
    } else if (trainer.by_solves || trainer.draws) {
      search.part(search.choice().levels.empty() ? 0 : share, 1);
      reached.theta = trainer.run(search, reached.theta);
      reached.likelihood = {};
      reached.likelihood.method = "none";  // not of these values any more
    }
    if (search.report.stop != StopReason::interrupted) return reached;
  } catch (const Interrupted&) {
    search.report.stop = StopReason::interrupted;
    if (search.learned()) reached.theta = *search.learned();
    reached.likelihood = {};
    reached.likelihood.method = "none";
  }
  if (!search.learned()) search.interrupted();
  return reached;
}

}  // namespace

Learned train(const inference::Problem& start, const inference::Observations& rows,
              const TrainingChoice& choice, const LearnRequest& request) {
  const auto& trainer = trainers().find(choice.trainer);
  if (const auto why = trainer.refusal(start); !why.empty()) throw InvalidArgument(why);
  check_approximation(choice, trainer);
  Search search(start, rows, choice, request);
  auto reached = learn(search, trainer);
  std::shared_ptr<inference::Inference> streamed;
  if (request.full != nullptr) {
    auto full = climb_full_rows(search, *request.full, reached.theta);
    reached = {std::move(full.theta), std::move(full.likelihood)};
    streamed = std::move(full.method);
  }
  search.finish();
  auto problem = start;
  problem.set_log_parameters(reached.theta);
  const auto names = problem.parameter_names();
  for (Index i = 0; i < reached.theta.size(); ++i)
    if (search.box().hit(i, reached.theta(i)) != 0)
      search.report.bounds_hit.push_back(names[static_cast<std::size_t>(i)]);
  if (search.draws.size() == 0) {
    search.draws.phi = reached.theta.transpose();
    search.draws.chain = search.draws.iteration = {0};
  }
  return {std::move(problem),
          std::move(search.report),
          reached.likelihood,
          std::move(search.warm),
          std::move(search.approximation_state),
          std::move(streamed),
          std::move(search.draws)};
}

std::vector<std::string> train_names() {
  std::vector<std::string> names = {"auto", "none"};
  for (const auto& trainer : trainers())
    if (!trainer.draws) names.emplace_back(trainer.name);
  return names;
}

std::vector<std::string> probe_kind_names() {
  std::vector<std::string> names = {"auto"};
  for (const auto name : inference::probe_kinds()) names.emplace_back(name);
  return names;
}

Registry<TrainerInfo>& trainers() {
  static Registry<TrainerInfo> all("training method", {
                                                          exact_info(),
                                                          lbfgs_info(),
                                                          newton_info(),
                                                          adam_info(),
                                                          adagrad_info(),
                                                          vecchia_info(),
                                                          mh_info(),
                                                          hmc_info(),
                                                          sgld_info(),
                                                          da_info(),
                                                      });
  return all;
}

const TrainerInfo& exact_trainer() {
  for (const auto& trainer : trainers())
    if (!trainer.by_solves) return trainer;
  throw InvalidArgument("no training method goes by factorisations alone");
}

}  // namespace mercer::training
