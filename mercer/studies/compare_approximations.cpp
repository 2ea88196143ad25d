#include "mercer/studies/compare_approximations.hpp"

#include <fmt/format.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cmath>
#include <fstream>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/data/split.hpp"
#include "mercer/inference/inference.hpp"
#include "mercer/models/predictor.hpp"

namespace mercer::studies {
namespace {

constexpr const char* kExact = "exact";
constexpr const char* kOnce = "once";

// The peak of this process begins anew, without what earlier runs left in the heap; false where the
// system does not allow it.
bool reset_peak_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return static_cast<bool>(file);
}

const inference::InferenceInfo& entry_of(const std::string& method) {
  return inference::methods().find(method);
}

bool names_exact(const ApproximationsOptions& options) {
  return std::find(options.methods.begin(), options.methods.end(), kExact) != options.methods.end();
}

template <class T>
void require_once(const std::vector<T>& values, const char* option) {
  for (auto it = values.begin(); it != values.end(); ++it)
    if (std::find(values.begin(), it, *it) != it)
      throw InvalidArgument(
          fmt::format("`{}` names {} twice; a comparison has one line of each", option, *it));
}

class ApproximationsStudy {
 public:
  ApproximationsStudy(const data::Dataset& train, const TestRows& test,
                      const models::FitOptions& fit, const ApproximationsOptions& options,
                      const ProgressCallback& progress, const models::KernelMachine* exact)
      : train_(train),
        test_(test),
        fit_(fit),
        options_(options),
        progress_(progress),
        given_(exact) {
    result_.n = train.size();
    result_.d = train.dimension();
    result_.test_rows = test.inputs.rows();
    result_.check_rows = std::min(options.check_rows, result_.test_rows);
    const auto order =
        Rng(fit.method.seed, "compare approximations").permutation(result_.test_rows);
    checked_.assign(order.begin(), order.begin() + result_.check_rows);
    std::sort(checked_.begin(), checked_.end());
  }

  ApproximationsResult run() {
    const Timer timer;
    for (const auto& planned : planned_runs()) {
      try {
        add(planned);
      } catch (const Interrupted&) {
        result_.interrupted = true;
        break;
      }
    }
    in_order_of_options();
    result_.seconds = timer.seconds();
    return std::move(result_);
  }

 private:
  // The exact one first: the others are compared with it.
  std::vector<ApproximationRun> planned_runs() const {
    std::vector<ApproximationRun> out;
    const auto& methods = options_.methods;
    if (names_exact(options_)) {
      out.emplace_back();
      out.back().method = kExact;
    }
    for (const auto& method : methods) {
      if (method == kExact) continue;
      const bool has_base = entry_of(method).abilities.base;
      for (const Index rank : options_.ranks) {
        out.emplace_back();
        out.back().method = method;
        if (!has_base) break;
        out.back().rank = rank;
      }
    }
    return out;
  }

  void in_order_of_options() {
    const auto place = [&](const ApproximationRun& run) {
      return std::find(options_.methods.begin(), options_.methods.end(), run.method);
    };
    std::stable_sort(result_.runs.begin(), result_.runs.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
  }

  models::FitOptions options_of(const ApproximationRun& run) const {
    auto out = fit_;
    out.approximation.check_rows.reset();
    out.method.preconditioning.rank = run.rank;
    if (run.method == kExact) {
      out.approximation = {};
      out.method = planning::without_base(out.method);
      return out;
    }
    const auto& can = entry_of(run.method).abilities;
    out.approximation.method = run.method;
    if (!can.blocks) {
      out.method.preconditioning.blocks.reset();
      out.approximation.blocks_by = models::ApproximationOptions().blocks_by;
    }
    if (!can.base) {
      out.approximation.base = models::ApproximationOptions().base;
      out.approximation.points = {};
    }
    if (!can.optimizes_base) out.approximation.optimize_base = false;
    if (out.approximation.points.size() > 0) out.method.preconditioning.rank.reset();
    return out;
  }

  ProgressCallback progress_of(const ApproximationRun& run) {
    if (!progress_) return {};
    const auto name = run.rank ? fmt::format("{} {}", run.method, *run.rank) : run.method;
    return [this, name](Progress now) {
      now.detail = now.detail.empty() ? name : fmt::format("{}: {}", name, now.detail);
      now.fraction = -1;
      now.ends_stage = now.learned = false;
      return progress_(now);
    };
  }

  void add(ApproximationRun run) {
    try {
      measure(run);
    } catch (const InvalidArgument& error) {
      run.skipped = error.what();
    } catch (const DoesNotFit& error) {
      run.skipped = error.what();
    } catch (const NotPositiveDefinite& error) {
      run.skipped = error.what();
    } catch (const ToleranceNotReached& error) {
      run.skipped = error.what();
    }
    result_.runs.push_back(std::move(run));
  }

  // Methods of one evidence learn the same hyperparameters, base points and blocks.
  struct Learned {
    std::string_view evidence;
    std::optional<Index> rank;
    std::string method;
    models::KernelMachine model;
    inference::State approximation;
    double seconds = 0;
  };
  static std::string_view evidence_name(const std::string& method) {
    const auto& entry = entry_of(method);
    return entry.abilities.evidence_of.empty() ? entry.name : entry.abilities.evidence_of;
  }
  const Learned* learned_before(const ApproximationRun& run) const {
    if (run.method == kExact) return nullptr;
    for (const auto& known : learned_)
      if (known.evidence == evidence_name(run.method) && known.rank == run.rank) return &known;
    return nullptr;
  }
  // Kept only where another method of the comparison has the same evidence.
  void remember(const ApproximationRun& run, const models::FitResult& fit) {
    if (run.method == kExact || !fit.plan.trains || fit.interrupted()) return;
    const auto evidence = evidence_name(run.method);
    const auto& methods = options_.methods;
    if (std::any_of(methods.begin(), methods.end(), [&](const std::string& other) {
          return other != kExact && other != run.method && evidence_name(other) == evidence;
        }))
      learned_.push_back(
          {evidence, run.rank, run.method, fit.model, fit.approximation, fit.training.seconds});
  }

  models::FitResult fitted(ApproximationRun& run, const ProgressCallback& progress) {
    const auto options = options_of(run);
    const Timer timer;
    double before = 0;
    models::FitResult out;
    if (run.method != kExact && options_.learn == kOnce) {
      out = models::refit(*exact_, train_, options, progress);
    } else if (const auto* known = learned_before(run)) {
      run.learned_with = known->method;
      before = known->seconds;
      out = models::refit(known->model, train_, options, progress, known->approximation);
    } else {
      out = models::fit(train_, options, progress);
      remember(run, out);
    }
    run.fit_seconds = before + timer.seconds();
    return out;
  }

  void take_given(ApproximationRun& run) {
    const auto progress = progress_of(run);
    run.given = true;
    run.evidence_kind = to_string(inference::EvidenceKind::exact);
    exact_ = *given_;
    predict(*exact_, run, progress);
    compare_with_exact(*exact_, run, progress);
  }

  void measure(ApproximationRun& run) {
    if (run.method != kExact && options_.learn == kOnce && !exact_) {
      run.skipped = "the exact fit that its hyperparameters were to come from was not run";
      return;
    }
    if (run.method == kExact && given_ != nullptr) return take_given(run);
    const bool resets = reset_peak_memory();
    const auto progress = progress_of(run);
    auto fit = fitted(run, progress);
    if (fit.interrupted()) throw Interrupted("interrupted while a method of the comparison learns");
    run.planned_bytes = fit.plan.peak_bytes;
    run.likelihood = std::move(fit.likelihood);
    run.evidence_kind = to_string(entry_of(fit.plan.inference).abilities.kind);
    run.stop = fit.solve.stop;
    for (const auto& warning : fit.warnings)
      result_.warnings.push_back(fmt::format("{}: {}", run.method, warning));
    if (fit.model.sparse) {
      run.base_points = fit.model.sparse->base.rows();
      run.blocks = fit.model.sparse->blocks_learned;
    }
    predict(fit.model, run, progress);
    if (resets) run.peak_bytes = static_cast<double>(peak_rss_bytes());
    compare_with_exact(fit.model, run, progress);
    if (run.method == kExact) exact_ = std::move(fit.model);
  }

  models::PredictOptions predict_options(Index rows) const {
    models::PredictOptions out;
    out.memory = fit_.method.memory;
    out.variance.rows = rows;
    return out;
  }

  void predict(const models::KernelMachine& model, ApproximationRun& run,
               const ProgressCallback& progress) {
    const Timer timer;
    auto options = predict_options(result_.test_rows);
    options.variance.check_rows = 0;
    const models::Predictor predictor(model, options);
    auto predictions = predictor.predict(test_.inputs, progress, test_.noise);
    run.predict_seconds = timer.seconds();
    run.variance = predictor.plan().variance;
    models::PredictionScores scores(predictor);
    scores.add(predictions, test_.target, test_.name);
    run.scores = scores.scores();
    if (run.method == kExact)
      exact_mean_ = predictions.latent_mean;
    else if (exact_mean_.size() > 0)
      add_mean_distance(predictions.latent_mean - exact_mean_, run);
  }

  static void add_mean_distance(const Matrix& apart, ApproximationRun& run) {
    run.mean_rms = std::sqrt(apart.squaredNorm() / static_cast<double>(apart.size()));
    run.mean_max = apart.cwiseAbs().maxCoeff();
  }

  // Standard deviations and KL on the check rows.
  void compare_with_exact(const models::KernelMachine& model, ApproximationRun& run,
                          const ProgressCallback& progress) {
    if (checked_.empty() || (run.method != kExact && exact_checked_.of_f.rows() == 0)) return;
    const Matrix inputs = data::take_rows(ConstMatrixView(test_.inputs), checked_);
    auto options = predict_options(inputs.rows());
    if (run.method == kExact) options.variance.method = kExact;
    models::NoisyPredictions predictions{
        models::Predictor(model, options).predict(inputs, progress),
        models::noise_in_target_units(model, data::take_rows(test_.noise, checked_),
                                      inputs.rows())};
    if (run.method == kExact) {
      exact_checked_ = std::move(predictions);
      return;
    }
    run.check = models::distance_from_exact(exact_checked_, predictions);
  }

  const data::Dataset& train_;
  const TestRows& test_;
  const models::FitOptions& fit_;
  const ApproximationsOptions& options_;
  const ProgressCallback& progress_;
  const models::KernelMachine* given_;  // the exact model; or null
  std::vector<Learned> learned_;
  std::vector<Index> checked_;  // test rows, ascending
  std::optional<models::KernelMachine> exact_;
  Matrix exact_mean_;                       // latent, at all test rows
  models::NoisyPredictions exact_checked_;  // at the check rows, with exact variances
  ApproximationsResult result_;
};

}  // namespace

std::vector<std::string> compared_names() {
  std::vector<std::string> names = {kExact};
  for (auto& name : planning::approximation_names()) names.push_back(std::move(name));
  return names;
}

void check(const ApproximationsOptions& options, const models::FitOptions& fit) {
  validate(options);
  if (options.methods.empty()) throw InvalidArgument("`methods` names no method");
  if (options.ranks.empty()) throw InvalidArgument("`ranks` names no number of base points");
  require_once(options.methods, "methods");
  require_once(options.ranks, "ranks");
  if (options.learn == kOnce && !names_exact(options))
    throw InvalidArgument(
        "`learn=once` takes the hyperparameters of the exact fit; name exact among `methods`");
  if (options.learn == kOnce && fit.approximation.optimize_base)
    throw InvalidArgument(
        "`optimize_base` learns base points with hyperparameters, and `learn=once` learns neither; "
        "leave one out");
  if (fit.mean_only)
    throw InvalidArgument(
        "approximations are compared with a Gaussian process, not with krr or klr");
  planning::check(planning::without_base(fit.method));
  planning::check(fit.train);
}

ApproximationsResult compare_approximations(const data::Dataset& train, const TestRows& test,
                                            const models::FitOptions& fit,
                                            const ApproximationsOptions& options,
                                            const ProgressCallback& progress,
                                            const models::KernelMachine* exact) {
  check(options, fit);
  if (exact != nullptr && !names_exact(options))
    throw InvalidArgument(
        "`exact` is the model that the others are compared with; name exact among `methods`");
  const ObservedCall call(progress);
  return ApproximationsStudy(train, test, fit, options, call.progress(), exact).run();
}

}  // namespace mercer::studies
