#include "cli/compare_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/format.hpp"
#include "mercer/core/memory.hpp"

namespace mercer::cli {
namespace {

using studies::CompareResult;
using studies::CompareRun;

std::string stop_name(const CompareRun& run) {
  if (!run.skipped.empty()) return "skipped";
  if (run.timed_out) return "time_limit";
  return std::string(to_string(run.stop));
}

Json run_json(const CompareRun& run) {
  Json json = {
      {"label", run.label()}, {"solver", run.solver}, {"preconditioner", run.preconditioner}};
  put(json, "lengthscale", run.lengthscale);
  put(json, "noise", run.noise);
  json["stop"] = stop_name(run);
  if (!run.skipped.empty()) {
    json["reason"] = run.skipped;
    return json;
  }
  json["iterations"] = run.iterations;
  json["inner_iterations"] = run.inner_iterations;
  json["matvecs"] = run.matvecs;
  put(json, "build_seconds", run.build_seconds);
  put(json, "solve_seconds", run.solve_seconds);
  put(json, "relative_residual", run.relative_residual);
  json["built"] = run.built.empty() ? "none" : run.built;
  json["rank"] = run.rank;
  json["neighbours"] = run.neighbours;
  json["improvement"] = run.improvement ? Json(*run.improvement) : Json(nullptr);
  if (!run.notes.empty()) json["notes"] = run.notes;
  return json;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

const CompareRun* find(const CompareResult& result, const std::string& label, double lengthscale,
                       double noise) {
  for (const auto& run : result.runs)
    if (run.lengthscale == lengthscale && run.noise == noise && run.label() == label) return &run;
  return nullptr;
}

// Iterations as in "246", ">1000" when a limit stopped it, "-" when it was not run.
std::string iterations_text(const CompareRun* run) {
  if (run == nullptr || !run->skipped.empty()) return "-";
  if (run->solver == "cholesky") return "direct";
  const auto total = run->iterations + run->inner_iterations;
  if (run->converged()) return count(total);
  if (run->stop == StopReason::random_stop) return "~" + count(total);
  const bool limited = run->timed_out || run->stop == StopReason::iteration_limit;
  return fmt::format("{}{}", limited ? ">" : "!", count(total));
}

// Seconds of building and solving; of one that did not converge, those that were spent.
std::string seconds_text(const CompareRun* run) {
  if (run == nullptr || !run->skipped.empty()) return "-";
  const char* mark = run->converged() ? "" : run->stop == StopReason::random_stop ? "~" : ">";
  return fmt::format("{}{:.2g}", mark, run->seconds());
}

// The improvement; where plain CG was stopped by a limit, a bound on it, as "<-2.10".
void fill_gain(const CompareRun* run, const CompareRun* plain, report::HeatMapCell& cell) {
  if (run == nullptr || plain == nullptr || !run->converged() || plain->iterations == 0) return;
  const bool bound = !plain->converged();
  if (!run->improvement && !bound) return;
  const double effort = run->iterations + run->inner_iterations;
  const double gain = run->improvement.value_or(std::log10(effort / plain->iterations));
  if (bound && gain > 0) return;  // says nothing then
  cell.value = gain;
  cell.text = fmt::format("{}{:.2f}", bound ? "<" : "", std::abs(gain) < 0.005 ? 0.0 : gain);
}

std::string one_cell(const CompareResult& result) {
  Table table("llrrrrrl", {"", "method", "iterations", "products", "build", "solve", "log10 vs cg",
                           "residual"});
  for (const auto& run : result.runs) {
    const bool wins = !result.winners.empty() && result.winners.front().by_seconds == run.label();
    if (!run.skipped.empty()) {
      table.row({"", run.label(), "-", "-", "-", "-", "-", "skipped"});
      continue;
    }
    table.row({wins ? "*" : "", run.label(), iterations_text(&run), count(run.matvecs),
               duration(run.build_seconds), duration(run.solve_seconds),
               run.improvement ? fmt::format("{:+.2f}", *run.improvement) : "-",
               fmt::format("{:.1e}{}", run.relative_residual,
                           run.converged() ? "" : " " + as_words(stop_name(run)))});
  }
  const bool won = !result.winners.empty() && !result.winners.front().by_seconds.empty();
  return table.text() + (won ? "\n  * least time, building included\n" : "");
}

// A row for each method, a column for each lengthscale.
Table grid_table(const CompareResult& result, double noise,
                 std::string (*cell)(const CompareRun*)) {
  std::vector<std::string> headings = {"lengthscale"};
  for (const double l : result.lengthscales) headings.push_back(fmt::format("{:g}", l));
  Table table("l" + std::string(result.lengthscales.size(), 'r'), headings);
  for (const auto& label : result.labels) {
    std::vector<std::string> cells = {label};
    for (const double l : result.lengthscales) cells.push_back(cell(find(result, label, l, noise)));
    table.row(cells);
  }
  return table;
}

std::string whole_grid(const CompareResult& result) {
  std::string out;
  for (const double noise : result.noises) {
    out += fmt::format("Noise variance {:g}: iterations (inner ones included)\n", noise);
    auto table = grid_table(result, noise, iterations_text);
    std::vector<std::string> quickest = {"least time"};
    for (const double l : result.lengthscales) {
      const auto found =
          std::find_if(result.winners.begin(), result.winners.end(),
                       [&](const auto& w) { return w.lengthscale == l && w.noise == noise; });
      quickest.push_back(
          found == result.winners.end() || found->by_seconds.empty() ? "-" : found->by_seconds);
    }
    table.row(quickest);
    out += table.text();
    out += fmt::format("\nNoise variance {:g}: seconds to build and solve\n", noise);
    out += grid_table(result, noise, seconds_text).text() + "\n";
  }
  return out +
         "  >  stopped by --max-iterations or --cell-seconds;  !  stagnation or breakdown;  "
         "~  stopped by a draw;  -  not run\n";
}

// Why methods were left out, each reason once.
std::string skipped_text(const CompareResult& result) {
  std::vector<std::string> said;
  std::string out;
  for (const auto& run : result.runs) {
    if (run.skipped.empty()) continue;
    const auto line = fmt::format("{}: {}", run.label(), run.skipped);
    if (std::find(said.begin(), said.end(), line) != said.end()) continue;
    said.push_back(line);
    out += "  " + wrapped("not run: " + line, 4) + "\n";
  }
  return out;
}

}  // namespace

Json compare_json(const CompareResult& result, const studies::CompareOptions& options,
                  const Json& given, const data::Dataset& data, const std::string& path) {
  Json json = {{"n", result.n},
               {"d", result.d},
               {"kernel", options.method.kernel},
               {"operator", result.op},
               {"precision", result.precision}};
  if (options.rms_tolerance)
    put(json, "rms_tolerance", *options.rms_tolerance);
  else
    put(json, "tolerance", options.method.tolerance);
  json["max_iterations"] = options.method.max_iterations;
  put(json, "cell_seconds", result.cell_seconds);
  put(json, "seconds", result.seconds);
  json["lengthscales"] = result.lengthscales;
  json["noises"] = result.noises;
  json["methods"] = result.labels;
  json["runs"] = Json::array();
  for (const auto& run : result.runs) json["runs"].push_back(run_json(run));
  json["winners"] = Json::array();
  for (const auto& w : result.winners) {
    Json cell;
    put(cell, "lengthscale", w.lengthscale);
    put(cell, "noise", w.noise);
    cell["by_seconds"] = w.by_seconds.empty() ? Json(nullptr) : Json(w.by_seconds);
    cell["by_iterations"] = w.by_iterations.empty() ? Json(nullptr) : Json(w.by_iterations);
    json["winners"].push_back(cell);
  }
  json["interrupted"] = result.interrupted;
  json["options"] = given;
  json["peak_rss_bytes"] = peak_rss_bytes();
  json["data"] = data_json(data, path);
  return json;
}

std::string compare_csv(const CompareResult& result) {
  std::string out =
      "lengthscale,noise,solver,preconditioner,stop,iterations,inner_iterations,matvecs,"
      "build_seconds,solve_seconds,relative_residual,rank,neighbours,improvement,notes\n";
  for (const auto& run : result.runs) {
    out += fmt::format("{:.17g},{:.17g},{},{},{},", run.lengthscale, run.noise, run.solver,
                       run.preconditioner, stop_name(run));
    if (run.skipped.empty())
      out += fmt::format("{},{},{},{:.6g},{:.6g},{:.6g},{},{},", run.iterations,
                         run.inner_iterations, run.matvecs, run.build_seconds, run.solve_seconds,
                         run.relative_residual, run.rank, run.neighbours);
    else
      out += ",,,,,,,,";
    out += run.improvement ? fmt::format("{:.4f},", *run.improvement) : ",";
    out += quoted(run.skipped.empty() ? run.notes : run.skipped) + "\n";
  }
  return out;
}

report::HeatMap compare_picture(const CompareResult& result, const std::string& name,
                                const std::string& kernel) {
  report::HeatMap map;
  map.title = fmt::format("Preconditioners on {}", name);
  map.subtitle = fmt::format("{} rows, {}, kernel {}; log10 of iterations over those of plain CG",
                             count(result.n), plural(result.d, "input"), kernel);
  map.column_title = "lengthscale";
  map.row_title = "noise variance";
  map.legend = "log10(iterations / plain CG): blue needs fewer; inner products count";
  for (const double l : result.lengthscales) map.columns.push_back(fmt::format("{:g}", l));
  for (const double s : result.noises) map.rows.push_back(fmt::format("{:g}", s));
  for (const auto& label : result.labels) {
    if (label == "cholesky") continue;
    report::HeatMapPanel panel;
    const bool plain = label == result.labels.front();
    panel.title = plain ? "plain CG: iterations" : label;
    panel.diverging = !plain;
    for (const double s : result.noises) {
      auto& row = panel.cells.emplace_back();
      for (const double l : result.lengthscales) {
        const auto* run = find(result, label, l, s);
        report::HeatMapCell cell;
        cell.text = iterations_text(run);
        if (plain && run != nullptr && run->iterations > 0)
          cell.value = std::log10(static_cast<double>(run->iterations));
        if (!plain) fill_gain(run, find(result, result.labels.front(), l, s), cell);
        row.push_back(std::move(cell));
      }
    }
    map.panels.push_back(std::move(panel));
  }
  return map;
}

std::string compare_text(const CompareResult& result, const studies::CompareOptions& options) {
  std::string out = fmt::format(
      "{} rows, {}, kernel {}, {} operator, {} precision; stop at {}\n\n", count(result.n),
      plural(result.d, "input"), options.method.kernel, result.op, result.precision,
      options.rms_tolerance ? fmt::format("|r| <= {:g} sqrt(N)", *options.rms_tolerance)
                            : fmt::format("|r| <= {:g} |y|", options.method.tolerance));
  const bool single = result.lengthscales.size() * result.noises.size() == 1;
  out += single ? one_cell(result) : whole_grid(result);
  out += skipped_text(result);
  return out + fmt::format("\n  {} in {}; a solve may take {} (--cell-seconds)\n",
                           plural(static_cast<Index>(result.runs.size()), "run"),
                           duration(result.seconds), duration(result.cell_seconds));
}

}  // namespace mercer::cli
