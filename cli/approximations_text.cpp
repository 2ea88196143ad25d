#include "cli/approximations_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/format.hpp"
#include "cli/score_text.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/studies/cross_validation.hpp"

namespace mercer::cli {
namespace {

using studies::ApproximationRun;
using studies::ApproximationsResult;

std::optional<double> score_of(const ApproximationRun& run, const std::string& name) {
  for (const auto& score : studies::score_values(run.scores))
    if (score.name == name) return score.value;
  return {};
}

// The scores that a table has room for.
std::vector<std::string> shown_scores(const ApproximationsResult& result) {
  for (const auto& run : result.runs)
    if (run.skipped.empty() && run.scores.classes) return {"error_rate", "nll", "brier"};
  return {"rmse", "nll", "coverage90"};
}

std::string or_dash(const std::optional<double>& value, int digits = 3) {
  return value && std::isfinite(*value) ? number(*value, digits) : "-";
}

double memory_of(const ApproximationRun& run) { return run.peak_bytes.value_or(run.planned_bytes); }

// Reasons why methods were left out, each once.
std::string not_run_text(const ApproximationsResult& result) {
  std::string out;
  for (const auto& run : result.runs)
    if (!run.skipped.empty())
      out += "  " +
             wrapped(fmt::format("not run: {}{}: {}", run.method,
                                 run.rank ? fmt::format(" {}", *run.rank) : "", run.skipped),
                     4) +
             "\n";
  return out;
}

// Methods whose hyperparameters another one of the same evidence has learned.
std::string learned_with_text(const ApproximationsResult& result) {
  std::vector<std::string> pairs;
  for (const auto& run : result.runs)
    if (!run.learned_with.empty()) {
      auto text = fmt::format("{} with {}", run.method, run.learned_with);
      if (std::find(pairs.begin(), pairs.end(), text) == pairs.end())
        pairs.push_back(std::move(text));
    }
  if (pairs.empty()) return "";
  return "  " +
         wrapped(fmt::format("learned together, because the evidence is the same, and counted in "
                             "the seconds of both: {}",
                             fmt::join(pairs, ", ")),
                 4) +
         "\n";
}

Json approximation_run_json(const ApproximationRun& run) {
  Json json = {{"method", run.method}, {"rank", run.rank ? Json(*run.rank) : Json(nullptr)}};
  if (!run.skipped.empty()) {
    json["skipped"] = run.skipped;
    return json;
  }
  json["base_points"] = run.base_points;
  json["blocks"] = run.blocks;
  if (run.given) {
    json["fit_seconds"] = nullptr;
    json["fit_seconds_reason"] = "the model was given";
  } else {
    put(json, "fit_seconds", run.fit_seconds);
  }
  json["learned_with"] = run.learned_with.empty() ? Json(nullptr) : Json(run.learned_with);
  put(json, "predict_seconds", run.predict_seconds);
  if (run.given)
    json["planned_bytes"] = nullptr;
  else
    put(json, "planned_bytes", run.planned_bytes);
  json["peak_rss_bytes"] = run.peak_bytes ? Json(*run.peak_bytes) : Json(nullptr);
  json["log_marginal_likelihood"] =
      run.likelihood.known ? Json(run.likelihood.value) : Json(nullptr);
  json["evidence_kind"] = run.evidence_kind;
  json["variance"] = run.variance;
  json["stop"] = std::string(to_string(run.stop));
  json["scores"] = scores_json(run.scores);
  Json distance = nullptr;
  if (run.mean_rms) {
    distance = Json::object();
    put(distance, "mean_rms", *run.mean_rms);
    put(distance, "mean_max", *run.mean_max);
    distance["checked_rows"] = run.check ? run.check->rows : 0;
    for (const auto& [name, value] : {std::pair("sd_rms", run.check ? run.check->sd_rms : 0.0),
                                      {"sd_max", run.check ? run.check->sd_max : 0.0},
                                      {"kl", run.check ? run.check->kl : 0.0}}) {
      if (run.check)
        put(distance, name, value);
      else
        distance[name] = nullptr;
    }
  }
  json["distance"] = std::move(distance);
  return json;
}

}  // namespace

std::string approximations_text(const ApproximationsResult& result, const std::string& learn) {
  std::string out =
      fmt::format("{} rows learned from, {}, {} predicted; hyperparameters {}\n\n", count(result.n),
                  plural(result.d, "input"), plural(result.test_rows, "row"),
                  learn == "once" ? "of the exact fit for all" : "learned by each method");
  const auto scores = shown_scores(result);
  std::vector<std::string> head = {"method", "base", "fit", "predict", "memory"};
  for (const auto& name : scores) head.push_back(as_words(name));
  for (const char* name : {"mean apart", "largest", "sd apart", "KL"}) head.emplace_back(name);
  Table table("lr" + std::string(head.size() - 2, 'r'), head);
  for (const auto& run : result.runs) {
    if (!run.skipped.empty()) continue;
    // bcm has the rows that are asked for together in their place.
    const Index points = run.base_points > 0 ? run.base_points : run.rank.value_or(0);
    std::vector<std::string> cells = {
        run.method, points > 0 ? count(points) : "-", run.given ? "-" : duration(run.fit_seconds),
        duration(run.predict_seconds), run.given ? "-" : format_bytes(memory_of(run))};
    for (const auto& name : scores) cells.push_back(or_dash(score_of(run, name), 4));
    cells.push_back(or_dash(run.mean_rms));
    cells.push_back(or_dash(run.mean_max));
    cells.push_back(or_dash(run.check ? std::optional(run.check->sd_rms) : std::nullopt));
    cells.push_back(or_dash(run.check ? std::optional(run.check->kl) : std::nullopt));
    table.row(std::move(cells));
  }
  out += table.text() + "\n" + not_run_text(result) + learned_with_text(result);
  out += "  " +
         wrapped(fmt::format(
                     "apart: distance from the exact posterior, root mean square and largest, of "
                     "the latent mean on all {} and of its standard deviation on {} of them; KL: "
                     "of the exact prediction from the approximate one, nats a row",
                     plural(result.test_rows, "row"), count(result.check_rows)),
                 2) +
         "\n";
  return out + fmt::format("  {} in {}\n", plural(static_cast<Index>(result.runs.size()), "run"),
                           duration(result.seconds));
}

Json approximations_json(const ApproximationsResult& result) {
  Json json = {{"n", result.n},
               {"d", result.d},
               {"test_rows", result.test_rows},
               {"check_rows", result.check_rows}};
  put(json, "seconds", result.seconds);
  json["runs"] = Json::array();
  for (const auto& run : result.runs) json["runs"].push_back(approximation_run_json(run));
  json["warnings"] = result.warnings;
  json["interrupted"] = result.interrupted;
  return json;
}

std::string approximations_csv(const ApproximationsResult& result) {
  std::vector<std::string> names;
  for (const auto& run : result.runs) {
    if (!run.skipped.empty()) continue;
    for (const auto& score : studies::score_values(run.scores)) names.push_back(score.name);
    break;
  }
  std::string out =
      "method,rank,base_points,blocks,fit_seconds,predict_seconds,bytes,log_marginal_likelihood,"
      "evidence_kind";
  for (const auto& name : names) out += "," + name;
  out += ",mean_rms,mean_max,sd_rms,sd_max,kl,skipped\n";
  const auto known = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) ? fmt::format("{:.10g}", *value) : "";
  };
  for (const auto& run : result.runs) {
    out += fmt::format("{},{},", run.method, run.rank ? std::to_string(*run.rank) : "");
    const bool done = run.skipped.empty();
    if (done)
      out +=
          fmt::format("{},{},{},{:.6g},{},{},{}", run.base_points, run.blocks,
                      run.given ? "" : fmt::format("{:.6g}", run.fit_seconds), run.predict_seconds,
                      run.given ? "" : fmt::format("{:.0f}", memory_of(run)),
                      run.likelihood.known ? fmt::format("{:.10g}", run.likelihood.value) : "",
                      run.evidence_kind);
    else
      out += ",,,,,,";
    for (const auto& name : names) out += "," + (done ? known(score_of(run, name)) : "");
    const auto& check = run.check;
    const auto part = [&](double models::ApproximationCheck::*field) {
      return known(check ? std::optional((*check).*field) : std::nullopt);
    };
    out += fmt::format(",{},{},{},{},{},", known(run.mean_rms), known(run.mean_max),
                       part(&models::ApproximationCheck::sd_rms),
                       part(&models::ApproximationCheck::sd_max),
                       part(&models::ApproximationCheck::kl));
    std::string reason = run.skipped;
    for (auto at = reason.find('"'); at != std::string::npos; at = reason.find('"', at + 2))
      reason.insert(at, 1, '"');
    out += reason.empty() ? "\n" : "\"" + reason + "\"\n";
  }
  return out;
}

report::LineChart approximations_picture(const ApproximationsResult& result,
                                         const std::string& name) {
  report::LineChart chart;
  const bool apart = std::any_of(result.runs.begin(), result.runs.end(),
                                 [](const auto& run) { return run.mean_rms.has_value(); });
  const auto score = shown_scores(result).front();
  chart.title = fmt::format("Approximations on {}", name);
  chart.subtitle = fmt::format("{} rows learned from, {} predicted; points have their base points",
                               count(result.n), count(result.test_rows));
  chart.x_title = "seconds to fit and predict";
  chart.y_title = apart ? "distance of the mean from the exact one (rms)" : as_words(score);
  for (const auto& run : result.runs) {
    if (!run.skipped.empty()) continue;
    if (run.given) continue;
    if (apart && !run.mean_rms) {  // what the others are measured from
      chart.mark = run.fit_seconds + run.predict_seconds;
      chart.mark_label = run.method;
    }
    const auto y = apart ? run.mean_rms : score_of(run, score);
    if (!y) continue;
    const Index points = run.base_points > 0 ? run.base_points : run.rank.value_or(0);
    if (chart.lines.empty() || chart.lines.back().name != run.method)
      chart.lines.push_back({run.method, {}});
    chart.lines.back().points.push_back(
        {run.fit_seconds + run.predict_seconds, *y, points > 0 ? count(points) : std::string()});
  }
  return chart;
}

}  // namespace mercer::cli
