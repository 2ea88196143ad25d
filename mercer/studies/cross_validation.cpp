#include "mercer/studies/cross_validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/rng.hpp"
#include "mercer/core/timer.hpp"
#include "mercer/data/split.hpp"
#include "mercer/data/text.hpp"
#include "mercer/inference/exact/leave_one_out.hpp"
#include "mercer/models/log_normal.hpp"
#include "mercer/models/scaled_data.hpp"
#include "mercer/planning/plan.hpp"

namespace mercer::studies {
namespace {

using models::Predictions;

// Standard normal quantile of 0.95.
constexpr double kZ90 = 1.6448536269514722;

bool classifies(const CvOptions& options) { return options.fit.classes.count() > 0; }

// The folds of a run: those of the data, or random ones.
struct Folds {
  std::vector<Index> of_row;
  std::vector<std::string> names;
};

Folds folds_of(const data::Dataset& data, const CvOptions& options, Index asked) {
  Folds out;
  if (!data.fold.empty()) {
    if (data.fold_names.size() < 2)
      throw DataError(
          fmt::format("the fold column holds the value {} only; two folds or more are needed",
                      data::shown(data.fold_names.empty() ? "" : data.fold_names[0])));
    // Rows may have been left out, and a fold with them.
    std::vector<Index> place(data.fold_names.size(), -1);
    for (const Index f : data.fold) place[static_cast<std::size_t>(f)] = 0;
    for (std::size_t f = 0; f < place.size(); ++f) {
      if (place[f] < 0) continue;
      place[f] = static_cast<Index>(out.names.size());
      out.names.push_back(data.fold_names[f]);
    }
    for (const Index f : data.fold) out.of_row.push_back(place[static_cast<std::size_t>(f)]);
    return out;
  }
  if (asked > data.size())
    throw DataError(fmt::format(
        "{} folds of {} rows: there must be a row for each; use at most `folds={}`, or `folds=loo`",
        asked, data.size(), data.size()));
  out.of_row = random_folds(data, asked, classifies(options), options.fit.method.seed);
  for (Index f = 1; f <= asked; ++f) out.names.push_back(std::to_string(f));
  return out;
}

// Tells how far all folds are; what one of them does is a detail.
ProgressCallback fold_progress(const ProgressCallback& progress, std::string name, double done) {
  if (!progress) return {};
  return [progress, name = std::move(name), done](const Progress& now) {
    Progress out = now;
    out.stage = "cross-validation";
    out.fraction = done;
    out.detail = fmt::format("{}{}{}{}", name, now.stage.empty() ? "" : ": ", now.stage,
                             now.detail.empty() ? "" : ", " + now.detail);
    out.ends_stage = out.learned = false;
    out.seconds_after = -1;
    return progress(out);
  };
}

models::PredictOptions predict_options(const CvOptions& options, Index rows) {
  models::PredictOptions out;
  out.memory = options.fit.method.memory;
  out.variance.rows = rows;
  return out;
}

// Room for what is predicted of every row.
void prepare(const data::Dataset& data, const CvOptions& options, CvResult& result) {
  result.n = data.size();
  result.d = data.dimension();
  auto& rows = result.rows;
  rows.fold.assign(static_cast<std::size_t>(data.size()), -1);
  rows.mean = Vector::Zero(data.size());
  if (classifies(options)) {
    rows.probabilities = Matrix::Zero(data.size(), options.fit.classes.count());
  } else if (!options.fit.mean_only) {
    for (Vector* column : {&rows.latent_sd, &rows.sd_obs, &rows.q05, &rows.q95})
      *column = Vector::Zero(data.size());
  }
}

void put_rows(const Predictions& p, const std::vector<Index>& places, Index fold, OutOfFold& rows) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Index to = places[i], from = static_cast<Index>(i);
    rows.fold[static_cast<std::size_t>(to)] = fold;
    if (rows.probabilities.size() > 0) {
      rows.probabilities.row(to) = p.probabilities.row(from);
      continue;
    }
    rows.mean(to) = p.mean(from);
    if (rows.sd_obs.size() == 0) continue;
    rows.latent_sd(to) = p.noise_free_sd.size() > 0 ? p.noise_free_sd(from) : p.latent_sd(from, 0);
    rows.sd_obs(to) = p.sd_obs(from);
    rows.q05(to) = p.q05(from);
    rows.q95(to) = p.q95(from);
  }
}

// Predicts these rows with the model of others, and scores them.
models::PredictionScores predict_rows(const models::Predictor& predictor, const data::Dataset& data,
                                      const std::vector<Index>& places, Index fold,
                                      const ProgressCallback& progress, OutOfFold& rows) {
  const Matrix inputs = data::take_rows(ConstMatrixView(data.inputs), places);
  const Vector target = data::take_rows(ConstVectorView(data.target), places);
  const auto predictions = predictor.predict(inputs, progress, data::take_rows(data.noise, places));
  models::PredictionScores scores(predictor);
  scores.add(predictions, target, [&](Index row) {
    return fmt::format("row {} of those used", places[static_cast<std::size_t>(row)] + 1);
  });
  put_rows(predictions, places, fold, rows);
  return scores;
}

void pool(const models::PredictionScores& part, std::optional<models::PredictionScores>& all) {
  if (all)
    all->add(part);
  else
    all.emplace(part);
}

std::optional<double> standard_error(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  if (values.size() < 2) return {};
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / n;
  for (const double value : values) squares += std::pow(value - mean, 2);
  return std::sqrt(squares / (n - 1) / n);
}

// Pooled scores, with the standard errors of their means over `parts`.
std::vector<ScoreSummary> summarise(const models::Scores& pooled,
                                    const std::vector<models::Scores>& parts, bool one_row_each) {
  auto out = score_values(pooled);
  std::vector<std::vector<double>> values(out.size());
  for (const auto& part : parts) {
    const auto of_part = score_values(part);
    for (std::size_t s = 0; s < out.size() && s < of_part.size(); ++s)
      if (of_part[s].value) values[s].push_back(*of_part[s].value);
  }
  for (std::size_t s = 0; s < out.size(); ++s) {
    if (one_row_each && out[s].name == "rmse") {
      // Of one row it is |error|: the mean of its square, and from there by the delta method.
      for (double& value : values[s]) value *= value;
      const auto of_square = standard_error(values[s]);
      if (of_square && *out[s].value > 0) out[s].standard_error = *of_square / (2 * *out[s].value);
      continue;
    }
    // Of one row there is neither a variance nor a ranking, and its calibration says nothing.
    if (one_row_each && (out[s].name == "calibration_error" || out[s].name == "auc")) continue;
    out[s].standard_error = standard_error(values[s]);
  }
  return out;
}

// Runs `body`; what cannot be learned from is said of the fold.
template <class Body>
void in_fold(const std::string& name, const Body& body) {
  try {
    body();
  } catch (const DataError& error) {
    throw DataError(fmt::format("fold {}: {}", name, error.what()));
  } catch (const NotPositiveDefinite& error) {
    throw NotPositiveDefinite(fmt::format("fold {}: {}", name, error.what()), error.pivot);
  }
}

void run_folds(const data::Dataset& data, const CvOptions& options, const Folds& folds,
               const ProgressCallback& progress, CvResult& result) {
  const auto count = static_cast<Index>(folds.names.size());
  result.folds_asked = count;
  std::optional<models::PredictionScores> pooled;
  for (Index f = 0; f < count; ++f) {
    const auto& name = folds.names[static_cast<std::size_t>(f)];
    const auto here = fold_progress(progress, fmt::format("fold {} of {}", f + 1, count),
                                    static_cast<double>(f) / static_cast<double>(count));
    in_fold(name, [&] {
      const Timer timer;
      const auto split = data::fold_split(folds.of_row, f);
      const auto train = data::take_rows(data, split.train, options.fit.standardize);
      auto fit = models::fit(train, options.fit, here);
      if (fit.interrupted()) throw Interrupted("interrupted in a fold");
      CvFold fold{.name = name, .rows = static_cast<Index>(split.test.size())};
      fold.problem = fit.model.problem;
      fold.scaling = fit.model.scaling;
      fold.system = fit.plan.system;
      fold.stop = fit.solve.stop;
      fold.warnings = std::move(fit.warnings);
      const models::Predictor predictor(std::move(fit.model), predict_options(options, fold.rows));
      fold.variance = predictor.plan().variance;
      const auto scores = predict_rows(predictor, data, split.test, f, here, result.rows);
      fold.scores = scores.scores();
      pool(scores, pooled);
      fold.seconds = timer.seconds();
      result.rows_done += fold.rows;
      result.folds.push_back(std::move(fold));
      result.scores = pooled->scores();
    });
  }
}

// Too many rows are refused before anything is learned.
void check_leave_one_out(const data::Dataset& data, const CvOptions& options, bool gaussian) {
  const Index n = data.size();
  if (!gaussian && n > kMostRefits)
    throw InvalidArgument(fmt::format(
        "leave-one-out has a closed form with Gaussian noise only; with the likelihood {} it is a "
        "refit for each of {} rows, and more than {} are refused; use `folds=10`",
        options.fit.likelihood, n, kMostRefits));
  const double base = planning::base_bytes(n, data.dimension());
  const double needed = base + inference::leave_one_out_bytes(n);
  const double budget = planning::memory_budget(options.fit.method, base);
  if (gaussian && needed > budget)
    throw DoesNotFit(fmt::format(
        "leave-one-out of {} rows factors a matrix of {} in all, but {} are there; use `folds=10`, "
        "which solves without it, or give more `memory`",
        n, format_bytes(needed), format_bytes(budget)));
}

// What leaving out each row says of it, in the units of the target.
void put_closed_form(const models::KernelMachine& model, const inference::LeaveOneOut& found,
                     bool with_sd, OutOfFold& rows) {
  const auto& scaling = model.scaling;
  Vector mean = found.mean;
  scaling.unscale_target(mean);
  const Vector latent_sd = scaling.target_sd * found.latent_variance.cwiseSqrt();
  const Vector sd = scaling.target_sd * found.variance.cwiseSqrt();
  for (Index i = 0; i < mean.size(); ++i) {
    rows.fold[static_cast<std::size_t>(i)] = i;
    const models::LogNormal y{mean(i), with_sd ? sd(i) : 0.0};
    const bool log = model.schema.log_target;
    rows.mean(i) = log ? y.mean() : mean(i);
    if (!with_sd) continue;
    rows.latent_sd(i) = log ? models::LogNormal{mean(i), latent_sd(i)}.sd() : latent_sd(i);
    rows.sd_obs(i) = log ? y.sd() : sd(i);
    rows.q05(i) = log ? y.at(-kZ90) : mean(i) - kZ90 * sd(i);
    rows.q95(i) = log ? y.at(kZ90) : mean(i) + kZ90 * sd(i);
  }
}

void closed_form(const data::Dataset& data, const CvOptions& options, CvResult& result) {
  const auto& model = result.all_rows->model;
  const bool with_sd = !options.fit.mean_only;
  const auto found =
      inference::leave_one_out(model.problem, models::scale(data, model.scaling).data);
  auto& rows = result.rows;
  put_closed_form(model, found, with_sd, rows);
  models::ScoreKeeper all;
  std::vector<models::Scores> each;
  for (Index i = 0; i < data.size(); ++i) {
    models::ScoreKeeper one;
    const auto target = data.target.segment(i, 1);
    if (with_sd && model.schema.log_target) {
      const models::LogNormal y{model.scaling.unscale_target(found.mean(i)),
                                model.scaling.unscale_width(std::sqrt(found.variance(i)))};
      one.add_log_normal(target, {&y, 1});
    } else {
      one.add(target, rows.mean.segment(i, 1),
              with_sd ? Vector(rows.sd_obs.segment(i, 1)) : Vector());
    }
    all.add(one);
    each.push_back({one.scores(), {}});
  }
  result.scores.numbers = all.scores();
  result.summary = summarise(result.scores, each, true);
  result.rows_done = data.size();
  result.closed_form = true;
}

void one_refit_each(const data::Dataset& data, const CvOptions& options,
                    const ProgressCallback& progress, CvResult& result) {
  std::optional<models::PredictionScores> pooled;
  std::vector<models::Scores> each;
  const auto finish = [&] {
    if (!pooled) return;
    result.scores = pooled->scores();
    result.summary = summarise(result.scores, each, true);
  };
  try {
    for (Index i = 0; i < data.size(); ++i) {
      const auto here = fold_progress(progress, fmt::format("row {} of {}", i + 1, data.size()),
                                      static_cast<double>(i) / static_cast<double>(data.size()));
      in_fold(fmt::format("of row {}", i + 1), [&] {
        std::vector<Index> others;
        for (Index j = 0; j < data.size(); ++j)
          if (j != i) others.push_back(j);
        auto fit = models::refit(result.all_rows->model,
                                 data::take_rows(data, others, options.fit.standardize),
                                 options.fit, here);
        const models::Predictor predictor(std::move(fit.model), predict_options(options, 1));
        const auto scores = predict_rows(predictor, data, {i}, i, here, result.rows);
        each.push_back(scores.scores());
        pool(scores, pooled);
        ++result.rows_done;
      });
    }
  } catch (const Interrupted&) {
    finish();
    throw;
  }
  finish();
}

void leave_one_out(const data::Dataset& data, const CvOptions& options,
                   const ProgressCallback& progress, CvResult& result) {
  const bool gaussian = likelihoods::make(options.fit.likelihood)->gaussian_noise().has_value();
  check_leave_one_out(data, options, gaussian);
  result.leave_one_out = true;
  result.folds_asked = data.size();
  result.all_rows = models::fit(data, options.fit, fold_progress(progress, "all rows", -1));
  if (result.all_rows->interrupted()) throw Interrupted("interrupted while all rows are learned");
  if (!gaussian) return one_refit_each(data, options, progress, result);
  if (progress && progress({"cross-validation", -1, "the closed form"}) == Action::stop)
    throw Interrupted("interrupted before the closed form");
  closed_form(data, options, result);
}

}  // namespace

bool CvResult::converged() const {
  return (!all_rows || all_rows->solve.stop == StopReason::converged) &&
         std::all_of(folds.begin(), folds.end(), [](const CvFold& f) { return f.converged(); });
}

Index number_of_folds(const std::string& folds) {
  if (folds == "loo") return 0;
  Index number = 0;
  const char* end = folds.data() + folds.size();
  const auto [rest, error] = std::from_chars(folds.data(), end, number);
  if (error != std::errc{} || rest != end || number < 2)
    throw InvalidArgument(fmt::format(
        "`folds` is {}, but must be a whole number of 2 or more, or loo", data::shown(folds)));
  return number;
}

std::vector<Index> random_folds(const data::Dataset& data, Index folds, bool classes,
                                std::uint64_t seed) {
  if (!classes) return data::fold_of_rows(data.size(), folds, seed);
  // Dealt out class after class, each in random order: shares and sizes differ by one at most.
  auto order = Rng(seed, "folds").permutation(data.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return data.target(a) < data.target(b); });
  std::vector<Index> out(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    out[static_cast<std::size_t>(order[i])] = static_cast<Index>(i) % folds;
  return out;
}

std::vector<ScoreSummary> score_values(const models::Scores& scores) {
  if (scores.classes) {
    const auto& s = *scores.classes;
    return {{"error_rate", s.error_rate, {}},
            {"nll", s.nll, {}},
            {"brier", s.brier, {}},
            {"auc", s.auc, {}},
            {"calibration_error", s.calibration_error, {}}};
  }
  if (!scores.numbers) return {};
  const auto& s = *scores.numbers;
  std::vector<ScoreSummary> out = {{"rmse", s.rmse, {}}, {"mae", s.mae, {}}, {"smse", s.smse, {}}};
  if (!s.has_sd) return out;
  out.push_back({"nll", s.nll, {}});
  out.push_back({"crps", std::isfinite(s.crps) ? std::optional(s.crps) : std::nullopt, {}});
  out.push_back({"coverage90", s.coverage90, {}});
  out.push_back({"coverage95", s.coverage95, {}});
  return out;
}

CvResult cross_validate(const data::Dataset& data, const CvOptions& asked,
                        const ProgressCallback& callback) {
  const Timer timer;
  const Index folds = data.fold.empty() ? number_of_folds(asked.folds) : 1;
  CvOptions options = asked;
  options.fit.evidence = false;  // no prediction needs it
  CvResult result;
  prepare(data, options, result);
  try {
    if (folds == 0)
      leave_one_out(data, options, callback, result);
    else
      run_folds(data, options, folds_of(data, options, folds), callback, result);
  } catch (const Interrupted&) {
    result.interrupted = true;
  }
  if (!result.leave_one_out) {
    std::vector<models::Scores> parts;
    for (const auto& fold : result.folds) parts.push_back(fold.scores);
    result.summary = summarise(result.scores, parts, false);
  }
  result.seconds = timer.seconds();
  return result;
}

}  // namespace mercer::studies
