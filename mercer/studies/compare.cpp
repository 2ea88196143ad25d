#include "mercer/studies/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "mercer/core/count_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/inference/adaptive.hpp"
#include "mercer/inference/solvers.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/preconditioners/registry.hpp"
#include "mercer/studies/compare_methods.hpp"

namespace mercer::studies {
namespace {

// A default limit for one solve: enough to see who wins, short enough to wait for the whole grid.
constexpr double kProductsOfACell = 300, kLeastCellSeconds = 1, kMostCellSeconds = 60;

using inference::Operators;
using inference::SolvePrecision;
using inference::SystemChoice;
using operators::Precision;

// All rows, or as many random ones as were asked for.
data::Dataset some_rows(const data::Dataset& data, const CompareOptions& options) {
  if (!options.rows || *options.rows >= data.size()) return data;
  auto rows = Rng(options.method.seed, "compare rows").permutation(data.size());
  rows.resize(static_cast<std::size_t>(*options.rows));
  std::sort(rows.begin(), rows.end());
  return data::take_rows(data, rows, options.standardize);
}

class Comparison {
 public:
  Comparison(const data::Dataset& rows, const CompareOptions& options,
             const ProgressCallback& progress)
      : options_(options),
        progress_(progress),
        scaled_(models::scale(rows, options.standardize, options.method.isotropic)) {
    const auto problem =
        models::start_problem(options.method, rows.schema, scaled_.data.x, scaled_.data.target());
    kernel_ = std::make_unique<kernels::Kernel>(problem.kernel);
    if (!options.method.signal_variance) kernel_->set_unwritten_variances(1.0);
    if (kernel_->writes_lengthscale())
      throw InvalidArgument(fmt::format(
          "the grid sets the lengthscales, and the kernel '{}' is written with one of its own; "
          "leave that out, or name it with `lengthscales`",
          options.method.kernel));
    const auto scales = kernel_->is_lengthscale();
    result_.lengthscales = options.lengthscales;
    result_.noises = options.noises;
    if (std::none_of(scales.begin(), scales.end(), [](bool is) { return is; })) {
      result_.note = "the kernel has no lengthscale: one column only";
      result_.lengthscales = {1.0};
    }
    result_.n = scaled_.data.x.rows();
    result_.d = scaled_.data.x.cols();
    methods_ = compare_methods(options, *kernel_, scaled_.data.x);
    for (const auto& m : methods_)
      result_.labels.push_back(
          CompareRun{.solver = m.solver, .preconditioner = m.preconditioner}.label());
    speeds_ = planning::calibrate(*kernel_, scaled_.data.x);
    choose_operator();
  }

  /// What is done so far when it is cancelled in the middle of a run.
  CompareResult run() {
    const Timer timer;
    try {
      run_grid();
    } catch (const Interrupted&) {
      result_.interrupted = true;
    }
    result_.seconds = timer.seconds();
    return std::move(result_);
  }

 private:
  void run_grid() {
    const auto total =
        static_cast<double>(result_.lengthscales.size() * result_.noises.size() * methods_.size());
    for (const double lengthscale : result_.lengthscales) {
      kernel_->set_all_lengthscales(lengthscale);
      // Shared by all noise variances and methods.
      const auto k = std::make_shared<const Operators>(
          inference::make_operators(*kernel_, scaled_.data.x, op_, precision_));
      for (const double noise : result_.noises) {
        const std::size_t first = result_.runs.size();
        for (const auto& method : methods_) {
          const double fraction = static_cast<double>(result_.runs.size()) / total;
          result_.runs.push_back(run_one(k, method, lengthscale, noise, fraction));
          if (result_.interrupted) {
            result_.runs.pop_back();
            finish_cell(first, lengthscale, noise);
            return;
          }
        }
        finish_cell(first, lengthscale, noise);
      }
    }
  }

  // K is kept, within the limits of the operator and without taking most of the memory.
  bool keeps_within(const operators::OperatorInfo& op, Precision precision, double room) const {
    return op.keeps_matrix &&
           op.bytes(result_.n, result_.d, 0, precision) <= std::min(op.automatic.most_bytes, room);
  }

  // All methods share one K and multiply with it again and again, so `auto` takes an operator that
  // keeps K if there is room for one.
  const operators::OperatorInfo& shared_operator(Precision precision, double room) const {
    if (options_.method.op != "auto") return operators::operators().find(options_.method.op);
    for (const auto& op : operators::operators())
      if (op.automatic.allowed && keeps_within(op, precision, room) &&
          operators::refusal(op, *kernel_, result_.n, result_.d).empty())
        return op;
    return operators::default_operator();
  }

  // Unless asked otherwise: double when K is kept in double, else mixed.
  SolvePrecision shared_precision(double room) const {
    const auto& asked = options_.method.precision;
    if (asked == "single") return SolvePrecision::float32;
    if (asked == "mixed") return SolvePrecision::mixed;
    if (asked == "double") return SolvePrecision::float64;
    return keeps_within(shared_operator(Precision::float64, room), Precision::float64, room)
               ? SolvePrecision::float64
               : SolvePrecision::mixed;
  }

  void choose_operator() {
    const Index n = result_.n;
    const double base = planning::base_bytes(n, result_.d);
    budget_ = planning::memory_budget(options_.method, base);
    const double room = 0.4 * (budget_ - base);
    precision_ = shared_precision(room);
    const auto& op = shared_operator(inference::product_precision(precision_), room);
    const auto reason = operators::refusal(op, *kernel_, n, result_.d);
    if (!reason.empty()) throw InvalidArgument(fmt::format("`operator={}`: {}", op.name, reason));
    op_ = op.name;
    const double bytes = inference::operator_bytes(n, result_.d, 1, op_, precision_);
    if (base + bytes > budget_ && op_ != operators::default_operator().name)
      throw DoesNotFit(fmt::format("`operator={}` takes {} for {} rows, but `memory` leaves {}",
                                   op_, format_bytes(bytes), count_text(n),
                                   format_bytes(budget_ - base)));
    in_use_ = base + bytes + krylov::default_solver().bytes(n, 1, true);
    if (in_use_ > budget_)
      throw DoesNotFit(
          fmt::format("a comparison on {} rows needs {} at least, but `memory` is {}; "
                      "allow more, or take fewer `rows`",
                      count_text(n), format_bytes(in_use_), format_bytes(budget_)));
    result_.op = op_;
    result_.precision = to_string(precision_);
    const double product = inference::product_seconds(speeds_, n, op_, precision_, 1);
    result_.cell_seconds = options_.cell_seconds.value_or(
        std::clamp(kProductsOfACell * product, kLeastCellSeconds, kMostCellSeconds));
  }

  CompareRun run_one(const std::shared_ptr<const Operators>& k, const CompareMethod& method,
                     double lengthscale, double noise, double fraction) {
    CompareRun run;
    run.lengthscale = lengthscale;
    run.noise = noise;
    run.solver = method.solver;
    run.preconditioner = method.preconditioner;
    if (!report(fraction, run, "")) return run;
    if (planning::needs_flexible(method.preconditioner) &&
        !krylov::solver(method.solver).flexible) {
      run.skipped = "P changes from step to step, which this solver does not allow";
      return run;
    }
    if (method.preconditioner == "auto" && inference::solver(method.solver).unbiased) {
      run.skipped = "auto changes P on the way, which would bias this solver";
      return run;
    }
    try {
      solve(k, run, fraction);
    } catch (const Interrupted&) {  // in the middle of a product or a build
      result_.interrupted = true;
    } catch (const NotPositiveDefinite& error) {
      run.skipped = error.what();
    } catch (const InvalidArgument& error) {
      run.skipped = error.what();
    }
    return run;
  }

  // False when the user wants to stop.
  bool report(double fraction, const CompareRun& run, const std::string& detail) {
    if (!progress_) return true;
    const auto text = fmt::format("lengthscale {:.3g}, noise {:.3g}, {}{}", run.lengthscale,
                                  run.noise, run.label(), detail);
    if (progress_({"compare", fraction, text}) == Action::stop) result_.interrupted = true;
    return !result_.interrupted;
  }

  // Says why a method of this cost cannot run; empty when it can.
  std::string too_much(double bytes, double seconds) const {
    if (in_use_ + bytes > budget_)
      return fmt::format("needs {} more memory, {} are left", format_bytes(bytes),
                         format_bytes(budget_ - in_use_));
    if (seconds > result_.cell_seconds)
      return fmt::format("building it would take about {:.2g} s, more than `cell_seconds={:g}`",
                         seconds, result_.cell_seconds);
    return "";
  }

  // Of |y|: what both stopping rules ask for.
  double relative_tolerance() const {
    return options_.rms_tolerance
               ? *options_.rms_tolerance * std::sqrt(static_cast<double>(result_.n)) /
                     scaled_.data.y.norm()
               : options_.method.tolerance;
  }

  // Progress, and the limit on seconds. The run and the timer must outlive it.
  Observer watch(CompareRun& run, double fraction, const Timer& timer) {
    return [this, &run, fraction, &timer](const Iteration& it) {
      run.timed_out = timer.seconds() > result_.cell_seconds;
      const bool proceed = report(fraction, run, fmt::format(", iteration {}", it.number));
      return run.timed_out || !proceed ? Action::stop : Action::proceed;
    };
  }

  // The choice that fit would hand to the same system: one operator and precision for all methods,
  // so that their products cost the same.
  SystemChoice choice_for(const CompareRun& run) const {
    SystemChoice choice;
    choice.solver = run.solver;
    choice.preconditioner = run.preconditioner;
    choice.preconditioning = planning::preconditioning_for(run.preconditioner, options_.method);
    if (run.preconditioner == "auto")
      choice.preconditioning.rank = inference::affordable_rank(
          result_.n, result_.d, choice.preconditioning.rank.value_or(inference::kAdaptiveMaxRank),
          budget_ - in_use_);
    choice.op = op_;
    choice.precision = precision_;
    choice.tolerance = relative_tolerance();
    choice.max_iterations = options_.method.max_iterations;
    choice.random_stop = planning::random_stop_for(run.solver, options_.method);
    // The limits on iterations and seconds end a hopeless run; until then its count is of interest.
    choice.stagnation_window = choice.max_iterations;
    return choice;
  }

  // Why this system is not built; empty when it is.
  std::string refusal(const SystemChoice& choice) const {
    if (choice.direct())
      return too_much(linalg::cholesky_bytes(result_.n),
                      linalg::cholesky_flops(result_.n) / speeds_.flops);
    if (choice.preconditioner == "none" || choice.preconditioner == "auto") return "";
    const auto cost = preconditioners::preconditioner(choice.preconditioner)
                          .cost(result_.n, result_.d, choice.preconditioning);
    const double product = inference::product_seconds(speeds_, result_.n, op_, precision_, 1);
    return too_much(cost.peak_bytes, inference::build_seconds(speeds_, cost, product));
  }

  void solve(const std::shared_ptr<const Operators>& k, CompareRun& run, double fraction) {
    const auto choice = choice_for(run);
    run.skipped = refusal(choice);
    if (!run.skipped.empty()) return;
    const inference::RegularizedSystem system(k, scaled_.data.noise.at(run.noise), choice);
    Matrix x = Matrix::Zero(result_.n, 1);
    const Timer timer;
    const auto solved = system.solve(scaled_.data.y, x, watch(run, fraction, timer));
    const auto& built = system.preconditioner_report();
    run.build_seconds = system.build_seconds();
    run.solve_seconds = solved.seconds;
    run.built = built.name;
    run.rank = built.rank;
    run.neighbours = built.neighbours;
    run.notes = built.notes;
    if (system.jitter() > 0)
      run.notes =
          fmt::format("H was not positive definite to rounding; {:.1e} was added to its noise",
                      system.jitter());
    run.stop = solved.stop;
    run.timed_out = run.timed_out && solved.stop == StopReason::interrupted;
    run.iterations = solved.iterations;
    run.inner_iterations = solved.inner_iterations;
    run.matvecs = solved.matvecs;
    run.relative_residual = solved.relative_residual;
  }

  // Improvements over plain CG, which is the first run of the cell, and the winners.
  void finish_cell(std::size_t first, double lengthscale, double noise) {
    if (first == result_.runs.size()) return;
    const CompareRun plain = result_.runs[first];
    CompareWinner winner{lengthscale, noise, "", ""};
    const auto effort = [](const CompareRun& run) {
      return static_cast<double>(run.iterations + run.inner_iterations);
    };
    double best_seconds = HUGE_VAL, best_effort = HUGE_VAL;
    for (std::size_t i = first; i < result_.runs.size(); ++i) {
      auto& run = result_.runs[i];
      if (!run.converged()) continue;
      if (plain.converged() && run.iterations > 0 && plain.iterations > 0)
        run.improvement = std::log10(effort(run) / effort(plain));
      if (run.seconds() < best_seconds) {
        best_seconds = run.seconds();
        winner.by_seconds = run.label();
      }
      if (run.iterations > 0 && effort(run) < best_effort) {
        best_effort = effort(run);
        winner.by_iterations = run.label();
      }
    }
    result_.winners.push_back(std::move(winner));
  }

  const CompareOptions& options_;
  const ProgressCallback& progress_;
  models::ScaledData scaled_;
  std::unique_ptr<kernels::Kernel> kernel_;
  std::vector<CompareMethod> methods_;
  inference::Speeds speeds_;
  double budget_ = 0;
  double in_use_ = 0;  // program, data, operators and plain CG
  std::string op_;
  SolvePrecision precision_ = SolvePrecision::float64;
  CompareResult result_;
};

}  // namespace

CompareResult compare(const data::Dataset& data, const CompareOptions& options,
                      const ProgressCallback& progress) {
  check(options);
  const ObservedCall call(progress);
  return Comparison(some_rows(data, options), options, call.progress()).run();
}

}  // namespace mercer::studies
