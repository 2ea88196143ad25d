#include "mercer/models/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/inference/adaptive.hpp"
#include "mercer/krylov/registry.hpp"
#include "mercer/linalg/cholesky.hpp"
#include "mercer/operators/cost.hpp"
#include "mercer/operators/stored_operator.hpp"
#include "mercer/operators/tiled_operator.hpp"
#include "mercer/preconditioners/registry.hpp"

namespace mercer::models {
namespace {

using inference::OperatorKind;
using inference::Operators;
using inference::SolvePrecision;
using operators::Precision;

struct Entry {
  std::string solver;
  std::string preconditioner;
};

bool suits(const std::string& name, const kernels::Kernel& kernel, ConstMatrixView x) {
  const auto& info = preconditioners::preconditioner(name);
  return info.refusal == nullptr || info.refusal(kernel, x.rows(), x.cols()).empty();
}

std::string outer_solver(const std::string& asked, const std::string& preconditioner) {
  return asked == "auto" ? iterative_solver(asked, preconditioner) : asked;
}

// Plain CG first, then every pair that goes together.
std::vector<Entry> entries(const CompareOptions& options, const kernels::Kernel& kernel,
                           ConstMatrixView x) {
  auto names = options.preconditioners;
  if (names.empty()) {
    names.emplace_back("none");
    for (const auto& info : preconditioners::preconditioners())
      if (info.name != "none" && suits(std::string(info.name), kernel, x))
        names.emplace_back(info.name);
    names.emplace_back("auto");
  }
  std::vector<Entry> out = {{"cg", "none"}};
  const auto add = [&](const Entry& entry) {
    for (const auto& known : out)
      if (known.solver == entry.solver && known.preconditioner == entry.preconditioner) return;
    out.push_back(entry);
  };
  for (const auto& solver : options.solvers) {
    if (solver == "cholesky" || solver == "kcg") {  // these take no preconditioner
      add({solver, "none"});
      continue;
    }
    for (const auto& name : names) {
      const Entry entry{outer_solver(solver, name), name};
      add(entry);
    }
  }
  return out;
}

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
      : options_(options), progress_(progress), scaled_(scale(rows, options.standardize)) {
    const auto problem = start_problem(options.method, rows.schema, scaled_.data.x, scaled_.data.y);
    kernel_ = std::make_unique<kernels::Kernel>(problem.kernel);
    kernel_->set_all_variances(options.method.signal_variance.value_or(1.0));
    const auto scales = kernel_->is_lengthscale();
    result_.lengthscales = options.lengthscales;
    result_.noises = options.noises;
    if (std::none_of(scales.begin(), scales.end(), [](bool is) { return is; })) {
      result_.note = "the kernel has no lengthscale: one column only";
      result_.lengthscales = {1.0};
    }
    result_.n = scaled_.data.x.rows();
    result_.d = scaled_.data.x.cols();
    entries_ = entries(options, *kernel_, scaled_.data.x);
    for (const auto& e : entries_)
      result_.labels.push_back(
          CompareRun{.solver = e.solver, .preconditioner = e.preconditioner}.label());
    speeds_ = calibrate(*kernel_, scaled_.data.x);
    choose_operator();
  }

  CompareResult run() {
    const auto total =
        static_cast<double>(result_.lengthscales.size() * result_.noises.size() * entries_.size());
    for (const double lengthscale : result_.lengthscales) {
      kernel_->set_all_lengthscales(lengthscale);
      // Shared by all noise variances.
      const auto k = inference::make_operators(*kernel_, scaled_.data.x, op_, precision_);
      for (const double noise : result_.noises) {
        const std::size_t first = result_.runs.size();
        for (const auto& entry : entries_) {
          const double fraction = static_cast<double>(result_.runs.size()) / total;
          result_.runs.push_back(run_one(k, entry, lengthscale, noise, fraction));
          if (result_.interrupted) {
            result_.runs.pop_back();
            finish_cell(first, lengthscale, noise);
            return std::move(result_);
          }
        }
        finish_cell(first, lengthscale, noise);
      }
    }
    return std::move(result_);
  }

 private:
  void choose_operator() {
    const Index n = result_.n;
    const double base = base_bytes(n, result_.d);
    budget_ = memory_budget(options_.method, base);
    const auto stored = [&](Precision p) { return operators::StoredOperator::bytes(n, p); };
    const double room = std::min(kMostStored, 0.4 * (budget_ - base));
    const auto& m = options_.method;
    precision_ = m.precision == "single"                                 ? SolvePrecision::float32
                 : m.precision == "mixed"                                ? SolvePrecision::mixed
                 : m.precision == "double"                               ? SolvePrecision::float64
                 : stored(Precision::float64) <= room && m.op != "tiled" ? SolvePrecision::float64
                                                                         : SolvePrecision::mixed;
    const auto kept =
        precision_ == SolvePrecision::float64 ? Precision::float64 : Precision::float32;
    op_ = m.op == "stored" || (m.op == "auto" && stored(kept) <= room) ? OperatorKind::stored
                                                                       : OperatorKind::tiled;
    if (op_ == OperatorKind::stored && base + stored(kept) > budget_)
      throw DoesNotFit(fmt::format("--operator stored keeps {} for {} rows, but --memory leaves {}",
                                   format_bytes(stored(kept)), n, format_bytes(budget_ - base)));
    in_use_ =
        base + operators::tiled_bytes(n, result_.d, 1) + krylov::solver("cg").bytes(n, 1, true);
    if (precision_ != SolvePrecision::float64) in_use_ += operators::tiled_bytes(n, result_.d, 0);
    if (op_ == OperatorKind::stored) in_use_ += stored(kept);
    if (in_use_ > budget_)
      throw DoesNotFit(
          fmt::format("a comparison on {} rows needs {} at least, but --memory is {}; "
                      "allow more, or take fewer --rows",
                      n, format_bytes(in_use_), format_bytes(budget_)));
    result_.op = to_string(op_);
    result_.precision = to_string(precision_);
  }

  CompareRun run_one(const Operators& k, const Entry& entry, double lengthscale, double noise,
                     double fraction) {
    CompareRun run;
    run.lengthscale = lengthscale;
    run.noise = noise;
    run.solver = entry.solver;
    run.preconditioner = entry.preconditioner;
    if (!report(fraction, run, "")) return run;
    if (needs_flexible(entry.preconditioner) && !krylov::solver(entry.solver).flexible) {
      run.skipped = "P changes from step to step, which this solver does not allow";
      return run;
    }
    try {
      if (entry.solver == "cholesky")
        solve_directly(k, run);
      else if (entry.solver == "kcg")
        iterate_in_function_space(k, run, fraction);
      else
        iterate(k, run, fraction);
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
    if (seconds > options_.cell_seconds)
      return fmt::format("building it would take about {:.2g} s, more than --cell-seconds {:g}",
                         seconds, options_.cell_seconds);
    return "";
  }

  Index auto_rank(std::optional<Index> asked) const {
    return inference::affordable_rank(
        result_.n, result_.d, asked.value_or(inference::kAdaptiveMaxRank), budget_ - in_use_);
  }

  double residual_target() const {
    return options_.rms_tolerance
               ? *options_.rms_tolerance * std::sqrt(static_cast<double>(result_.n))
               : options_.method.tolerance * scaled_.data.y.norm();
  }

  void solve_directly(const Operators& k, CompareRun& run) const {
    run.skipped = too_much(linalg::cholesky_bytes(result_.n),
                           linalg::cholesky_flops(result_.n) / speeds_.flops);
    if (!run.skipped.empty()) return;
    const Timer build;
    Matrix h(result_.n, result_.n);
    operators::dense_matrix(*kernel_, scaled_.data.x, h);
    h.diagonal().array() += run.noise;
    const linalg::Cholesky factor(std::move(h));
    run.build_seconds = build.seconds();
    const Timer timer;
    Matrix x = scaled_.data.y;
    factor.solve_in_place(x);
    run.solve_seconds = timer.seconds();
    measure(k, run, x);
  }

  void iterate_in_function_space(const Operators& k, CompareRun& run, double fraction) {
    inference::SystemChoice choice;
    choice.solver = "kcg";
    choice.max_iterations = options_.method.max_iterations;
    const linalg::Diagonal noise(run.noise);
    const double tolerance = residual_target() / scaled_.data.y.norm();
    Matrix x = Matrix::Zero(result_.n, 1);
    const Timer timer;
    const auto solved = inference::solve_iteratively({k, noise, choice}, scaled_.data.y, x,
                                                     tolerance, watch(run, fraction, timer));
    run.solve_seconds = timer.seconds();
    run.stop = solved.stop;
    run.timed_out = run.timed_out && solved.stop == StopReason::interrupted;
    run.iterations = solved.iterations;
    run.matvecs = solved.matvecs;
    run.relative_residual = solved.relative_residual;
  }

  // Progress, and the limit on seconds. The run and the timer must outlive it.
  Observer watch(CompareRun& run, double fraction, const Timer& timer) {
    return [this, &run, fraction, &timer](const Iteration& it) {
      run.timed_out = timer.seconds() > options_.cell_seconds;
      const bool proceed = report(fraction, run, fmt::format(", iteration {}", it.number));
      return run.timed_out || !proceed ? Action::stop : Action::proceed;
    };
  }

  void iterate(const Operators& k, CompareRun& run, double fraction) {
    const preconditioners::Target target{*k.exact, run.noise, k.fast.get()};
    const auto preconditioning = preconditioning_for(run.preconditioner, options_.method);
    const linalg::ShiftedOperator high(*k.exact, run.noise);
    const linalg::ShiftedOperator low(k.fast ? *k.fast : *k.exact, run.noise);
    krylov::SolverOptions solver_options;
    solver_options.tolerance = options_.method.tolerance;
    solver_options.rms_tolerance = options_.rms_tolerance;
    solver_options.max_iterations = options_.method.max_iterations;
    // The limits on iterations and seconds end a hopeless run; until then its count is of interest.
    solver_options.stagnation_window = options_.method.max_iterations;
    krylov::SolverContext context;
    if (precision_ == SolvePrecision::mixed) context.low_precision = &low;
    const auto& a = precision_ == SolvePrecision::float32 ? low : high;
    const auto& solver = krylov::solver(run.solver);

    preconditioners::Built built;
    std::unique_ptr<inference::Adaptive> adaptive;
    if (run.preconditioner == "auto") {
      adaptive = std::make_unique<inference::Adaptive>(
          target,
          inference::AdaptiveOptions{.speeds = inference::nominal_speeds(*kernel_, result_.d),
                                     .op = op_,
                                     .precision = precision_,
                                     .max_rank = auto_rank(preconditioning.rank),
                                     .seed = options_.method.seed});
    } else if (run.preconditioner != "none") {
      const auto cost = preconditioners::preconditioner(run.preconditioner)
                            .cost(result_.n, result_.d, preconditioning);
      const double product = inference::product_seconds(speeds_, result_.n, op_, precision_, 1);
      run.skipped = too_much(cost.peak_bytes, inference::build_seconds(speeds_, cost, product));
      if (!run.skipped.empty()) return;
      built = preconditioners::make(run.preconditioner, target, preconditioning);
      context.preconditioner = built.preconditioner.get();
    }
    const Timer timer;
    context.observer = watch(run, fraction, timer);
    Matrix x = Matrix::Zero(result_.n, 1);
    const auto solved = adaptive
                            ? adaptive->solve(solver, a, scaled_.data.y, x, solver_options, context)
                            : solver.solve(a, scaled_.data.y, x, solver_options, context);
    const auto& what = adaptive ? adaptive->report() : built.report;
    run.build_seconds = adaptive ? adaptive->build_seconds() : built.report.build_seconds;
    run.solve_seconds = timer.seconds() - (adaptive ? run.build_seconds : 0);
    run.built = what.name;
    run.rank = what.rank;
    run.neighbours = what.neighbours;
    run.notes = what.notes;
    run.stop = solved.stop;
    run.timed_out = run.timed_out && solved.stop == StopReason::interrupted;
    run.iterations = solved.iterations;
    run.inner_iterations = static_cast<int>(solved.inner_iterations);
    run.matvecs = solved.total_matvecs();
    run.relative_residual = solved.relative_residual;
    if (precision_ == SolvePrecision::float32) measure(k, run, x);
  }

  // The true residual, in double: nothing is claimed that it does not confirm.
  void measure(const Operators& k, CompareRun& run, const Matrix& x) const {
    Matrix r(result_.n, 1);
    k.exact->apply(x, r);
    r = scaled_.data.y - r - run.noise * x;
    run.relative_residual = r.norm() / scaled_.data.y.norm();
    if (run.stop == StopReason::converged && r.norm() > residual_target())
      run.stop = StopReason::stagnation;
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
  ScaledData scaled_;
  std::unique_ptr<kernels::Kernel> kernel_;
  std::vector<Entry> entries_;
  inference::Speeds speeds_;
  double budget_ = 0;
  double in_use_ = 0;  // program, data, operators and plain CG
  OperatorKind op_ = OperatorKind::tiled;
  SolvePrecision precision_ = SolvePrecision::float64;
  CompareResult result_;
};

void check_positive(const char* flag, const std::vector<double>& values) {
  if (values.empty()) throw InvalidArgument(fmt::format("{} names no value", flag));
  for (const double v : values)
    if (!Positive::holds(v))
      throw InvalidArgument(fmt::format("{} has {}, but all must be positive", flag, v));
}

// An option that none of the preconditioners named takes would be ignored in silence.
void check_taken(const CompareOptions& options) {
  if (options.preconditioners.empty()) return;
  auto left = given_preconditioning(options.method);
  for (const auto& name : options.preconditioners)
    visit_options(left, taken_by(name), [](const char*, auto& value, bool taken) {
      if (taken) value.reset();
    });
  visit_options(left, {}, [](const char* flag, const auto& value, bool) {
    if (value)
      throw InvalidArgument(
          fmt::format("{} has no meaning for any of the preconditioners compared", flag));
  });
}

}  // namespace

std::string CompareRun::label() const {
  if (solver == "cholesky") return solver;
  if (preconditioner == "none") return solver;
  if (solver == outer_solver("auto", preconditioner)) return preconditioner;
  return fmt::format("{} + {}", solver, preconditioner);
}

void check(const CompareOptions& options) {
  check_positive("--lengthscales", options.lengthscales);
  check_positive("--noises", options.noises);
  auto method = options.method;
  // Options of single preconditioners are allowed when any of those compared takes them.
  method.preconditioning = {};
  method.landmarks = "auto";
  check(method);
  validate(options.method);
  given_preconditioning(options.method);  // landmarks that do not exist
  if (options.solvers.empty()) throw InvalidArgument("--solvers names no solver");
  for (const auto& name : options.solvers)
    if (name != "auto" && name != "cholesky" && name != "kcg") krylov::solver(name);
  for (const auto& name : options.preconditioners)
    if (name != "auto") preconditioners::preconditioner(name);
  check_taken(options);
  if (options.rms_tolerance && !Positive::holds(*options.rms_tolerance))
    throw InvalidArgument("--rms-tolerance must be positive");
  if (options.rows && *options.rows < 2) throw InvalidArgument("--rows must be at least 2");
  if (!Positive::holds(options.cell_seconds))
    throw InvalidArgument("--cell-seconds must be positive");
}

CompareResult compare(const data::Dataset& data, const CompareOptions& options,
                      const ProgressCallback& progress) {
  check(options);
  if (data.noise.variance.size() > 0 || data.noise.count.size() > 0)
    throw InvalidArgument("compare has a grid of equal noise; leave noise and counts out");
  return Comparison(some_rows(data, options), options, progress).run();
}

}  // namespace mercer::models
