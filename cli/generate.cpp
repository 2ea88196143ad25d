// mercer generate: simulated data whose truth is known, as CSV.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/format.hpp"
#include "cli/record.hpp"
#include "cli/shared_options.hpp"
#include "cli/suggest.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/data/csv_writer.hpp"
#include "mercer/data/simulate.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "mercer/models/options.hpp"
#include "mercer/models/simulate.hpp"

namespace mercer::cli {
namespace {

struct GenerateCommand {
  std::string name;
  std::optional<Index> n;
  std::optional<Index> d;
  std::uint64_t seed = 0;
  std::string kernel;
  std::vector<double> lengthscale;
  std::optional<double> signal_variance;
  std::optional<double> noise;
  std::string likelihood;
  std::optional<std::uint64_t> memory;
  std::string output = "-";
  bool truth = false;
  RunOptions run;
};

constexpr const char* kNames =
    "  gp          a draw from a Gaussian process at uniform points of the unit cube\n"
    "  friedman    10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 on the unit cube, d >= 5\n"
    "  field       Franke's surface at scattered points of the unit square\n"
    "  grid        Franke's surface on a grid of about N cells with holes in it\n";

/// Says before the first allocation what does not fit and how many rows would.
void check_memory(const GenerateCommand& command) {
  const auto budget = command.memory ? static_cast<double>(*command.memory)
                                     : 0.8 * static_cast<double>(available_memory_bytes());
  const double n = static_cast<double>(*command.n);
  const bool plane = command.name == "field" || command.name == "grid";
  const double d =
      plane ? 2 : static_cast<double>(command.d.value_or(command.name == "gp" ? 2 : 10));
  // Inputs, truth, target and noise; the cells of a grid once more.
  const double row = 8 * ((command.name == "grid" ? 2 : 1) * d + 4);
  const double square = command.name == "gp" ? 8 : 0;  // a draw factors the covariance
  if (row * n + square * n * n <= budget) return;
  const double most =
      square > 0 ? 2 * budget / (row + std::sqrt(row * row + 4 * square * budget)) : budget / row;
  throw DoesNotFit(fmt::format(
      "{} rows of {} inputs{} need {}, but {} may be used; up to {} rows fit: give a smaller -n",
      count(*command.n), d, square > 0 ? " and their covariance" : "",
      format_bytes(row * n + square * n * n), format_bytes(budget),
      count(static_cast<Index>(most))));
}

struct Generated {
  data::Simulated data;
  std::string truth;  // a sentence
};

// Draws y given f, by inverting P(Y <= y | f); returns the sentence about it.
std::string observe(const GenerateCommand& command, data::Simulated& data) {
  const auto likelihood = likelihoods::make(command.likelihood);
  Rng rng(command.seed, "likelihood");
  for (Index i = 0; i < data.target.size(); ++i) {
    const double p = std::clamp(rng.uniform(), 1e-15, 1 - 1e-15);
    data.target[i] = likelihood->predictive_quantile(p, data.truth[i], 0);
  }
  std::string text = fmt::format("likelihood {}", likelihood->text());
  const auto names = likelihood->parameter_names();
  const Vector logs = likelihood->log_parameters();
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format(", {} {:.6g}", names[i], std::exp(logs[static_cast<Index>(i)]));
  return text;
}

Generated generate_gp(const GenerateCommand& command) {
  const Index d = command.d.value_or(2);
  auto kernel = kernels::Kernel::parse(command.kernel.empty() ? "matern52" : command.kernel, d);
  // Typical distances in the unit cube grow like sqrt(d).
  std::vector<double> lengthscale = command.lengthscale;
  if (lengthscale.empty()) lengthscale = {0.3 * std::sqrt(static_cast<double>(d))};
  if (lengthscale.size() == 1)
    kernel.set_all_lengthscales(lengthscale[0]);
  else
    kernel.set_lengthscales(lengthscale);
  if (command.signal_variance) kernel.set_all_variances(*command.signal_variance);
  const inference::Problem problem{kernel, command.noise.value_or(0.01), inference::MeanKind::zero};
  Generated out;
  Rng rng(command.seed, "gp-points");
  out.data.inputs = data::uniform_points(*command.n, d, rng);
  const auto memory = command.memory.value_or(
      static_cast<std::uint64_t>(0.8 * static_cast<double>(available_memory_bytes())));
  auto draw = models::draw_from_gp(problem, out.data.inputs, command.seed, memory);
  out.data.truth = std::move(draw.latent);
  out.data.target = std::move(draw.target);
  for (Index c = 1; c <= d; ++c) out.data.names.push_back(fmt::format("x{}", c));
  std::string values;
  const auto names = kernel.parameter_names();
  const Vector logs = kernel.log_parameters();
  for (std::size_t i = 0; i < names.size(); ++i)
    values += fmt::format("{} {:.6g}, ", names[i], std::exp(logs[static_cast<Index>(i)]));
  out.truth =
      fmt::format("kernel {}: {}{}", kernel.text(), values,
                  command.likelihood.empty() ? fmt::format("noise variance {:.6g}", problem.noise())
                                             : observe(command, out.data));
  return out;
}

Generated generate_surface(const GenerateCommand& command) {
  Generated out;
  if (command.name == "friedman") {
    const double noise = command.noise.value_or(1.0);
    out.data = data::friedman(*command.n, {command.d.value_or(10), std::sqrt(noise), command.seed});
    out.truth = fmt::format("Friedman's function, noise variance {:.6g}", noise);
    return out;
  }
  const double noise = command.noise.value_or(0.0025);
  if (command.name == "field") {
    out.data = data::scattered_field(*command.n, std::sqrt(noise), command.seed);
  } else {
    data::GridOptions grid;
    grid.rows = static_cast<Index>(std::sqrt(static_cast<double>(*command.n)));
    grid.columns = *command.n / grid.rows;
    grid.seed = command.seed;
    out.data = data::grid_field(grid, std::sqrt(noise));
  }
  out.truth = fmt::format("Franke's function, noise variance {:.6g}", noise);
  return out;
}

void check(const GenerateCommand& command) {
  require_choice("NAME", command.name, {"gp", "friedman", "field", "grid"});
  if (!command.n) throw InvalidArgument("-n is missing: say how many rows, for example -n 1000");
  if (*command.n < 1)
    throw InvalidArgument(fmt::format("-n is {}, but must be positive", *command.n));
  if (command.d && *command.d < 1)
    throw InvalidArgument(fmt::format("-d is {}, but must be positive", *command.d));
  const bool flat = command.name == "field" || command.name == "grid";
  if (flat && command.d.value_or(2) != 2)
    throw InvalidArgument(fmt::format("{} lies in the plane: -d can only be 2", command.name));
  if (command.name != "gp" &&
      (!command.kernel.empty() || !command.lengthscale.empty() || command.signal_variance ||
       !command.likelihood.empty() || command.memory))
    throw InvalidArgument(
        fmt::format("--kernel, --lengthscale, --signal-variance, --likelihood and --memory are for "
                    "gp, not for {}",
                    command.name));
  if (!command.likelihood.empty()) {
    likelihoods::make(command.likelihood);  // throws, listing the names
    if (command.noise)
      throw InvalidArgument("--noise is Gaussian noise; with --likelihood leave it out");
  }
  models::MethodOptions numbers;
  numbers.lengthscale = command.lengthscale;
  numbers.signal_variance = command.signal_variance;
  models::check(numbers);
  if (command.noise && !NonNegative::holds(*command.noise))
    throw InvalidArgument(
        fmt::format("--noise is {}, but must be {}", *command.noise, NonNegative::text));
  if (command.run.json && command.output == "-")
    throw InvalidArgument("--json and the data both want standard output; name a file with -o");
  check_output("--output", command.output, {});
}

void write(const GenerateCommand& command, const data::Simulated& data) {
  auto header = data.names;
  if (command.truth) header.emplace_back("f");
  header.emplace_back("y");
  data::CsvWriter writer(command.output, std::move(header));
  for (Index i = 0; i < data.target.size(); ++i) {
    for (Index j = 0; j < data.inputs.cols(); ++j) writer.number(data.inputs(i, j));
    if (command.truth) writer.number(data.truth[i]);
    writer.number(data.target[i]);
    writer.end_row();
  }
  writer.close();
}

}  // namespace

int run_generate(const Words& words) {
  Arguments arguments(
      "generate",
      "  mercer generate gp -n 1000 -d 2 --lengthscale 0.2 --noise 0.01 --seed 1 "
      "-o gp.csv",
      "Writes simulated data as CSV, the target y in the last column. The truth is\n"
      "told on standard error.");
  GenerateCommand command;
  arguments.positional("NAME", command.name, "gp | friedman | field | grid (see below)");
  arguments.option("-n", "N", command.n, "rows (grid: cells, of which some are missing)");
  arguments.option("-d", "D", command.d, "inputs [default: gp 2, friedman 10]");
  arguments.option("--noise", "V", command.noise,
                   "variance of the noise\n[default: gp 0.01, friedman 1, field and grid 0.0025]");
  arguments.option("--seed", "S", command.seed, "same seed, same bits");
  arguments.option("-o,--output", "FILE", command.output,
                   "CSV to write; - is standard output; .gz packs it");
  arguments.flag("--truth", command.truth,
                 "a column f, the target without noise (or the latent function),\nbefore y");
  arguments.group("Only for gp");
  arguments.option("--kernel", "SPEC", command.kernel, "as for mercer fit [default: matern52]");
  arguments.list("--lengthscale", "L", command.lengthscale,
                 "one, or one per input [default: 0.3 sqrt(D)]");
  arguments.option("--signal-variance", "V", command.signal_variance, "[default: 1]");
  arguments.option("--likelihood", "NAME", command.likelihood,
                   "y given f, as for mercer fit: bernoulli-logit, poisson and others\n"
                   "[default: f plus Gaussian noise]");
  arguments.bytes("--memory", command.memory,
                  "memory to stay inside [default: 80 % of what is free]");
  add_run_options(arguments, command.run);
  arguments.appendix("Names", kNames);
  if (!arguments.parse(words)) return exit_ok;

  check(command);
  check_memory(command);
  apply(command.run);
  const Generated generated =
      command.name == "gp" ? generate_gp(command) : generate_surface(command);
  const auto& data = generated.data;
  write(command, data);
  Console("generate", command.run.quiet)
      .note(fmt::format("{} rows; {}; seed {}", count(data.target.size()), generated.truth,
                        command.seed));
  if (command.run.json)
    print_json({{"n", data.target.size()},
                {"d", data.inputs.cols()},
                {"name", command.name},
                {"truth", generated.truth},
                {"seed", command.seed},
                {"output", command.output}});
  return exit_ok;
}

}  // namespace mercer::cli
