#include "cli/sample_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/format.hpp"
#include "cli/model_text.hpp"
#include "cli/option_list.hpp"
#include "mercer/core/atomic_file.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/data/csv_writer.hpp"
#include "mercer/data/text.hpp"
#include "mercer/diagnostics/autocorrelation.hpp"
#include "mercer/report/chain_picture.hpp"
#include "mercer/training/sampling/summary.hpp"

namespace mercer::cli {
namespace {

// Chains whose R-hat is above this are not yet draws of one distribution (Vehtari et al. 2021 ask
// for 1.01 before any use).
constexpr double kAgreeing = 1.01, kLeastEffective = 100;
// Of a picture.
constexpr Index kMostLags = 50;

using training::ChainReport;

template <class Get>
double mean_over_chains(const models::SampleResult& result, const Get& get) {
  double sum = 0;
  for (const auto& chain : result.draws.chains) sum += get(chain);
  return sum / static_cast<double>(result.draws.chains.size());
}

template <class Get>
Index sum_over_chains(const models::SampleResult& result, const Get& get) {
  Index sum = 0;
  for (const auto& chain : result.draws.chains) sum += get(chain);
  return sum;
}

bool langevin(const models::SampleResult& result) {
  return !result.draws.chains.front().ratios.empty();
}

void put_optional(Json& json, const std::string& key, const std::optional<double>& value,
                  const char* reason) {
  if (value) {
    put(json, key, *value);
    return;
  }
  json[key] = nullptr;
  json[key + "_reason"] = reason;
}

Json step_bias_json(const training::StepBias& bias) {
  Json json;
  put(json, "mean", bias.mean);
  put(json, "sd", bias.sd);
  put_optional(json, "mean_error", bias.mean_error, "there is one chain only");
  put_optional(json, "sd_error", bias.sd_error, "there is one chain only");
  return json;
}

Json parameters_json(const models::SampleResult& result) {
  Json all = Json::object();
  const auto step_bias = training::step_bias(result.draws);
  const bool one_chain = result.draws.chains.size() == 1;
  for (std::size_t i = 0; i < result.names.size(); ++i) {
    const auto& s = result.parameters[i];
    const auto& p = result.priors[i];
    Json entry;
    put(entry, "mean", s.mean);
    put(entry, "sd", s.sd);
    put(entry, "q05", s.q05);
    put(entry, "q95", s.q95);
    const char* reason = s.chain_stands ? "all draws of a chain are equal" : "too few draws";
    put_optional(entry, "rhat", s.rhat, one_chain ? "there is one chain only" : reason);
    put_optional(entry, "ess", s.ess, reason);
    put_optional(entry, "mcse", s.mcse, reason);
    Json prior = {{"text", p.text()}};
    put_optional(prior, "mean", p.mean(), "it does not exist");
    put_optional(prior, "sd", p.sd(), "it does not exist");
    put(prior, "q05", p.quantile(0.05));
    put(prior, "q95", p.quantile(0.95));
    entry["prior"] = std::move(prior);
    if (!step_bias.empty()) entry["step_bias"] = step_bias_json(step_bias[i]);
    all[result.names[i]] = std::move(entry);
  }
  return all;
}

// Delayed acceptance: proposals are walks on a surrogate.
bool delayed(const models::SampleResult& result) {
  return result.draws.chains.front().walk_acceptance > 0;
}

double evidence_error(const models::SampleResult& result) {
  double worst = 0;
  for (const auto& chain : result.draws.chains) worst = std::max(worst, chain.evidence_error);
  return worst;
}

void put_delayed(Json& json, const models::SampleResult& result) {
  put(json, "walk_acceptance",
      mean_over_chains(result, [](const ChainReport& c) { return c.walk_acceptance; }));
  put(json, "evidence_error", evidence_error(result));
}

// Where the kept draws begin: after the warm-up, or in the Langevin phase.
Json phase_json(const models::SampleResult& result) {
  Json json = {{"kept_from", result.draws.iteration.front()},
               {"kept_draws", result.draws.size()},
               {"warmup", result.draws.warmup}};
  if (!langevin(result)) return json;
  json["langevin_from"] = Json::array();
  json["ratio"] = Json::array();
  json["scale"] = Json::array();
  json["half_steps"] =
      sum_over_chains(result, [](const ChainReport& c) { return c.half_steps.iterations; });
  for (const auto& chain : result.draws.chains) {
    json["langevin_from"].push_back(chain.frozen_at);
    json["ratio"].push_back(chain.ratios);
    json["scale"].push_back(chain.least_scale);
  }
  return json;
}

training::ChainSolves all_solves(const models::SampleResult& result) {
  training::ChainSolves sum;
  for (const auto& chain : result.draws.chains) {
    sum.gradients += chain.solves.gradients;
    sum.iterations += chain.solves.iterations;
    sum.unsolved += chain.solves.unsolved;
    sum.unbiased += chain.solves.unbiased;
    sum.random_stops += chain.solves.random_stops;
    sum.continued += chain.solves.continued;
    sum.extra_iterations += chain.solves.extra_iterations;
    sum.variance += chain.solves.variance;
    sum.float32_passes += chain.solves.float32_passes;
    sum.pass_error = std::max(sum.pass_error, chain.solves.pass_error);
  }
  return sum;
}

double share(double part, Index whole) { return whole > 0 ? part / static_cast<double>(whole) : 0; }

// The solves of gradients, and how those that stop at random did.
Json solves_json(const models::SampleResult& result) {
  const auto solves = all_solves(result);
  Json json = {{"gradients", solves.gradients}};
  put(json, "iterations_per_gradient",
      share(static_cast<double>(solves.iterations), solves.gradients));
  json["unconverged_gradients"] = solves.unsolved;
  json["unbiased"] = solves.unbiased > 0 && solves.unbiased == solves.gradients;
  json["unbiased_gradients"] = solves.unbiased;
  if (solves.unbiased == 0) return json;
  put(json, "continued_share", share(static_cast<double>(solves.continued), solves.random_stops));
  put(json, "extra_iterations",
      share(static_cast<double>(solves.extra_iterations), solves.random_stops));
  put(json, "relative_sd", std::sqrt(share(solves.variance, solves.unbiased)));
  json["float32_passes"] = solves.float32_passes;
  json["pass_error"] = solves.float32_passes > 0 ? Json(solves.pass_error) : Json(nullptr);
  return json;
}

std::string solves_text(const models::SampleResult& result) {
  const auto solves = all_solves(result);
  if (solves.gradients == 0) return "";
  std::string how;
  if (solves.unbiased > 0 && solves.unbiased < solves.gradients)
    how = fmt::format(
        ", of which {} of {} stop at random; the others met their limit, and are not "
        "right on average",
        count(solves.unbiased), count(solves.gradients));
  else if (solves.unbiased > 0)
    how = ", which stop at random and are right on average";
  if (solves.unbiased > 0 &&
      result.plan.train_system.precision == inference::SolvePrecision::float32)
    how += ", but for the rounding of float32 products";
  return fmt::format("; solves of {} iterations a gradient{}",
                     number(share(static_cast<double>(solves.iterations), solves.gradients), 3),
                     how);
}

std::string optional_number(const std::optional<double>& value, int digits) {
  return value ? number(*value, digits) : "-";
}

// Prior and posterior side by side.
std::string parameters_text(const models::SampleResult& result) {
  Table table("llrrrrrrrr", {"parameter", "prior", "mean", "5 %", "95 %", "posterior mean", "sd",
                             "5 %", "95 %", "R-hat"});
  for (std::size_t i = 0; i < result.names.size(); ++i) {
    const auto& s = result.parameters[i];
    const auto& p = result.priors[i];
    table.row({result.names[i], p.text(), optional_number(p.mean(), 3), number(p.quantile(0.05), 3),
               number(p.quantile(0.95), 3), number(s.mean), number(s.sd, 3), number(s.q05, 3),
               number(s.q95, 3), s.rhat ? fmt::format("{:.3f}", *s.rhat) : "-"});
  }
  return table.text(13);
}

std::string sampling_text(const models::SampleResult& result) {
  const auto& draws = result.draws;
  auto text = fmt::format("{}: {} of {}", result.plan.train_method,
                          plural(static_cast<Index>(draws.chains.size()), "chain"),
                          plural(draws.iterations, "iteration"));
  const double step = mean_over_chains(result, [](const ChainReport& c) { return c.step; });
  if (langevin(result)) {
    Index first = draws.iterations, last = 0;
    for (const auto& chain : draws.chains) {
      first = std::min(first, chain.frozen_at);
      last = std::max(last, chain.frozen_at);
    }
    text += fmt::format(
        ", Langevin phase from iteration {} on, step {}",
        first == last ? count(first) : fmt::format("{} to {}", count(first), count(last)),
        number(step, 3));
    text += solves_text(result);
  } else {
    text += fmt::format(
        ", {} of warm-up; acceptance {}, step {}", count(draws.warmup),
        number(mean_over_chains(result, [](const ChainReport& c) { return c.acceptance; }), 2),
        number(step, 3));
  }
  if (delayed(result))
    text += fmt::format(
        " (walks on the Vecchia likelihood: {})",
        number(mean_over_chains(result, [](const ChainReport& c) { return c.walk_acceptance; }),
               2));
  if (const double error = evidence_error(result); error > 0)
    text += fmt::format(", standard error of an evidence {} at most", number(error, 2));
  return text;
}

std::string effective_text(const models::SampleResult& result) {
  std::optional<double> least;
  for (const auto& s : result.parameters)
    if (s.ess) least = std::min(least.value_or(*s.ess), *s.ess);
  return least ? fmt::format(", worth {} independent ones at least", count(std::llround(*least)))
               : "";
}

// The largest over parameters, in standard deviations of the posterior.
std::string step_bias_text(const models::SampleResult& result) {
  double mean = 0, sd = 0, error = 0;
  bool known = true;
  const auto all = training::step_bias(result.draws);
  for (const auto& bias : all) {
    mean = std::max(mean, std::abs(bias.mean));
    sd = std::max(sd, std::abs(bias.sd));
    error = std::max({error, bias.mean_error.value_or(0), bias.sd_error.value_or(0)});
    known = known && bias.mean_error && bias.sd_error;
  }
  if (all.empty()) return "";
  return fmt::format(
      "Step bias    {}\n",
      wrapped(fmt::format("at most {} standard deviations in means and {} in "
                          "standard deviations of log parameters, by half steps{}",
                          number(mean, 2), number(sd, 2),
                          known ? fmt::format(" (standard error {})", number(error, 2)) : ""),
              13));
}

}  // namespace

Json sample_json(const SampleCommand& command, const Arguments& arguments,
                 const data::Dataset& data, const SampleRun& run) {
  const auto& result = run.result;
  Json json = {{"n", data.size()}, {"d", data.dimension()}};
  json["merged_rows"] = result.merged_rows;
  put_model(json, result.model);
  json["plan"] = plan_json(result.plan);
  json["sampler"] = result.plan.train_method;
  json["chains"] = result.draws.chains.size();
  json["iterations"] = result.draws.iterations;
  json["parameters"] = parameters_json(result);
  if (langevin(result)) {
    json["acceptance"] = nullptr;
    json["acceptance_reason"] = "Langevin dynamics have no proposals to accept";
  } else {
    put(json, "acceptance",
        mean_over_chains(result, [](const ChainReport& c) { return c.acceptance; }));
  }
  if (delayed(result)) put_delayed(json, result);
  put(json, "step", mean_over_chains(result, [](const ChainReport& c) { return c.step; }));
  json["phase"] = phase_json(result);
  if (langevin(result)) json["solves"] = solves_json(result);
  json["divergent"] = sum_over_chains(result, [](const ChainReport& c) { return c.divergent; });
  json["failed_evaluations"] =
      sum_over_chains(result, [](const ChainReport& c) { return c.failed; });
  json["evaluations"] = sum_over_chains(result, [](const ChainReport& c) { return c.evaluations; });
  json["mode_rows"] = result.draws.mode_rows;
  json["interrupted"] = result.interrupted();
  json["certificate"] = certificate_json(result.model);
  json["draws"] = result.model.num_draws();
  json["stop"] = std::string(to_string(result.solve_stop));
  Json seconds;
  put(seconds, "total", run.seconds);
  put(seconds, "sample", result.sample_seconds);
  put(seconds, "solve", result.solve_seconds);
  json["seconds"] = std::move(seconds);
  json["peak_rss_bytes"] = peak_rss_bytes();
  json["data"] = data_json(data, command.fit.data.path);
  json["warnings"] = result.warnings;
  json["options"] = arguments.record();
  json["output"] = command.output;
  json["model"] = run.model_path.empty() ? Json(nullptr) : Json(run.model_path);
  return json;
}

std::string sample_text(const SampleCommand& command, const data::Dataset& data,
                        const SampleRun& run) {
  const auto& result = run.result;
  const auto& model = result.model;
  std::string text = fmt::format("Data         {}: {}, {}, target {}\n", command.fit.data.path,
                                 plural(data.size(), "row"), plural(data.dimension(), "input"),
                                 data::printable(model.schema.target));
  for (const auto& message : data.messages) text += fmt::format("             {}\n", message);
  if (!model.problem.gaussian())
    text += fmt::format("Likelihood   {}\n", wrapped(likelihood_text(model), 13));
  text += fmt::format("Model        {}\n", model_text(model));
  text += fmt::format("Plan         {}\n", wrapped(result.plan.reason, 13));
  text += fmt::format("Sampling     {}\n", wrapped(sampling_text(result), 13));
  text += fmt::format("Starts       {}\n",
                      wrapped(fmt::format("around the mode of {}, with twice the standard "
                                          "deviations that its Hessian says",
                                          plural(result.draws.mode_rows, "row")),
                              13));
  text +=
      fmt::format("Draws        {} kept{}\n", count(result.draws.size()), effective_text(result));
  text += step_bias_text(result);
  text += fmt::format("Parameters   {}, prior and posterior\n{}",
                      command.fit.fit.standardize ? "of the standardised data" : "in their units",
                      parameters_text(result));
  text += certificate_text(model);
  text += fmt::format("Time         {} (draws {}, their weights {}); peak memory {}\n",
                      duration(run.seconds), duration(result.sample_seconds),
                      duration(result.solve_seconds),
                      format_bytes(static_cast<double>(peak_rss_bytes())));
  text += fmt::format("Written      {}", command.output);
  if (!command.picture.empty()) text += fmt::format(", {}", command.picture);
  if (run.model_path.empty()) return text + "\n";
  return text + fmt::format(", {0}\n\nNext: mercer predict {0} NEW.csv -o predictions.csv\n",
                            run.model_path);
}

void write_chains(const std::string& path, const models::SampleResult& result) {
  std::vector<std::string> header = {"chain", "iteration"};
  header.insert(header.end(), result.names.begin(), result.names.end());
  data::CsvWriter writer(path, header);
  const auto& draws = result.draws;
  for (Index i = 0; i < draws.size(); ++i) {
    writer.integer(draws.chain[static_cast<std::size_t>(i)])
        .integer(draws.iteration[static_cast<std::size_t>(i)]);
    for (const double phi : draws.phi.row(i)) writer.number(std::exp(phi));
    writer.end_row();
  }
  writer.close();
}

void draw_chains(const std::string& path, const models::SampleResult& result) {
  const auto& draws = result.draws;
  const Index n = draws.per_chain();
  const auto chains = static_cast<Index>(draws.chains.size());
  report::ChainPicture picture;
  picture.title = fmt::format("Posterior of the hyperparameters, {}", result.plan.train_method);
  picture.subtitle = fmt::format("{} of {} kept draws", plural(chains, "chain"), count(n));
  for (std::size_t i = 0; i < result.names.size(); ++i) {
    const auto& s = result.parameters[i];
    const Vector values = draws.phi.col(static_cast<Index>(i)).array().exp();
    report::ChainPanels panels;
    panels.name = result.names[i];
    panels.draws = Eigen::Map<const Matrix>(values.data(), n, chains);
    panels.note = fmt::format("R-hat {}, {} effective draws",
                              s.rhat ? fmt::format("{:.3f}", *s.rhat) : "not known",
                              s.ess ? count(std::llround(*s.ess)) : "few");
    panels.autocorrelation.resize(std::min(kMostLags, n - 1) + 1, chains);
    panels.running_mean.resize(n, chains);
    panels.running_sd.resize(n, chains);
    for (Index c = 0; c < chains; ++c) {
      panels.autocorrelation.col(c) =
          diagnostics::autocorrelation(panels.draws.col(c), std::min(kMostLags, n - 1));
      const auto running = diagnostics::running_mean(panels.draws.col(c));
      panels.running_mean.col(c) = running.mean;
      panels.running_sd.col(c) = running.sd;
    }
    picture.parameters.push_back(std::move(panels));
  }
  AtomicFile file(path);
  file.write(report::svg(picture));
  file.commit();
}

void tell_draws(const models::SampleResult& result, const Console& console) {
  for (const auto& warning : result.warnings) console.warn(with_dashes(warning));
  std::optional<double> rhat, ess;
  for (const auto& s : result.parameters) {
    if (s.rhat) rhat = std::max(rhat.value_or(0), *s.rhat);
    if (s.ess) ess = std::min(ess.value_or(*s.ess), *s.ess);
  }
  if (rhat && *rhat > kAgreeing)
    console.warn(fmt::format(
        "the chains do not agree yet: R-hat is {:.3f}, above {}; give more --iterations", *rhat,
        kAgreeing));
  else if (ess && *ess < kLeastEffective)
    console.warn(fmt::format("there are about {} independent draws only; give more --iterations",
                             std::llround(*ess)));
  const auto divergent = sum_over_chains(result, [](const ChainReport& c) { return c.divergent; });
  if (divergent > 0)
    console.warn(
        fmt::format("{} lost their energy: the posterior has corners that the step is too long "
                    "for; other priors, or --sampler mh, may help",
                    divergent == 1 ? "1 trajectory" : count(divergent) + " trajectories"));
  if (result.interrupted())
    console.warn(fmt::format("interrupted: the {} kept so far are used",
                             plural(result.draws.size(), "draw")));
}

}  // namespace mercer::cli
