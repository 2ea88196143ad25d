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
#include "mercer/core/interrupt.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/data/csv_writer.hpp"
#include "mercer/data/simulate.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "mercer/models/options.hpp"
#include "mercer/studies/simulate.hpp"

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
  std::string draw = "auto";
  std::optional<Index> neighbours;
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

studies::DrawOptions draw_options(const GenerateCommand& command) {
  const double free = 0.8 * static_cast<double>(available_memory_bytes());
  return {.seed = command.seed,
          .memory_bytes = command.memory ? static_cast<double>(*command.memory) : free,
          .method = studies::draw_method(command.draw),
          .neighbours = command.neighbours};
}

/// Says before the first allocation what does not fit and how many rows would.
void check_memory(const GenerateCommand& command) {
  auto draw = draw_options(command);
  const bool gp = command.name == "gp";
  const bool plane = command.name == "field" || command.name == "grid";
  const Index d = plane ? 2 : command.d.value_or(gp ? 2 : 10);
  if (gp) draw.method = studies::resolve(draw, *command.n);
  // Inputs, truth, target and noise; the cells of a grid once more.
  const double row = 8.0 * ((command.name == "grid" ? 2 : 1) * static_cast<double>(d) + 4);
  const auto bytes = [&](Index n) {
    return row * static_cast<double>(n) + (gp ? studies::draw_bytes(draw, n, d) : 0.0);
  };
  if (bytes(*command.n) <= draw.memory_bytes) return;
  Index fits = 0, too_many = *command.n;
  while (too_many - fits > 1) {
    const Index middle = fits + (too_many - fits) / 2;
    (bytes(middle) <= draw.memory_bytes ? fits : too_many) = middle;
  }
  const bool exact = gp && draw.method == studies::DrawMethod::exact;
  throw DoesNotFit(fmt::format(
      "{} rows of {} inputs{} need {}, but {} may be used; up to {} rows fit: give a smaller -n{}",
      count(*command.n), d, exact ? " and their covariance" : "", format_bytes(bytes(*command.n)),
      format_bytes(draw.memory_bytes), count(fits), exact ? ", or --draw vecchia" : ""));
}

struct Generated {
  data::Simulated data;
  std::string truth;           // a sentence
  std::string comment;         // of the file; none when empty
  Json draw = Json::object();  // gp: how f was drawn, for the record
};

// Draws y given f, by inverting P(Y <= y | f); returns the sentence about it.
std::string observe(const GenerateCommand& command, data::Simulated& data) {
  const auto likelihood = likelihoods::make(command.likelihood);
  Rng rng(command.seed, "likelihood");
  for (Index i = 0; i < data.target.size(); ++i) data.target[i] = rng.uniform();
  constexpr Index rows = 1024;
  parallel_for((data.target.size() + rows - 1) / rows, [&](Index task, int) {
    stop_if_interrupted("drawing the target");
    for (Index i = task * rows; i < std::min(data.target.size(), (task + 1) * rows); ++i) {
      const double p = std::clamp(data.target[i], 1e-15, 1 - 1e-15);
      data.target[i] = likelihood->predictive_quantile(p, data.truth[i], 0);
    }
  });
  std::string text = fmt::format("likelihood {}", likelihood->text());
  const auto names = likelihood->parameter_names();
  const Vector logs = likelihood->log_parameters();
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format(", {} {:.6g}", names[i], std::exp(logs[static_cast<Index>(i)]));
  return text;
}

// How f was drawn: a comment of the file when the law is an approximation, and the record.
void describe_draw(const studies::Draw& draw, Generated& out) {
  out.draw = {{"method", to_string(draw.method)}};
  if (draw.method != studies::DrawMethod::vecchia) return;
  out.draw["neighbours"] = draw.neighbours;
  out.draw["raised"] = draw.raised;
  out.comment = fmt::format(
      "f was drawn by a Vecchia factor with m = {} neighbours: each point given its m most "
      "correlated earlier ones",
      draw.neighbours);
}

Generated generate_gp(const GenerateCommand& command, const Console& console) {
  const Index d = command.d.value_or(2);
  Generated out;
  kernels::InputNames input_names{d, {}};
  for (Index c = 0; c < d; ++c) {
    out.data.names.push_back(fmt::format("x{}", c + 1));
    input_names.entries.push_back({out.data.names.back(), c, 1});
  }
  auto kernel =
      kernels::Kernel::parse(command.kernel.empty() ? "matern52" : command.kernel, input_names);
  // Typical distances in the unit cube grow like sqrt(d).
  std::vector<double> lengthscale = command.lengthscale;
  if (lengthscale.empty()) lengthscale = {0.3 * std::sqrt(static_cast<double>(d))};
  if (lengthscale.size() == 1)
    kernel.set_all_lengthscales(lengthscale[0]);
  else
    kernel.set_lengthscales(lengthscale);
  if (command.signal_variance) kernel.set_all_variances(*command.signal_variance);
  const inference::Problem problem{kernel, command.noise.value_or(0.01), inference::MeanKind::zero};
  Rng rng(command.seed, "gp-points");
  out.data.inputs = data::uniform_points(*command.n, d, rng);
  auto draw =
      studies::draw_from_gp(problem, out.data.inputs, draw_options(command), console.progress());
  clear_progress_line();
  describe_draw(draw, out);
  out.data.truth = std::move(draw.latent);
  out.data.target = std::move(draw.target);
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
  if (command.name != "gp" && (!command.kernel.empty() || !command.lengthscale.empty() ||
                               command.signal_variance || !command.likelihood.empty() ||
                               command.draw != "auto" || command.neighbours || command.memory))
    throw InvalidArgument(fmt::format(
        "--kernel, --lengthscale, --signal-variance, --likelihood, --draw, --neighbours "
        "and --memory are for gp, not for {}",
        command.name));
  require_choice("--draw", command.draw, studies::draw_method_names());
  if (command.neighbours && !Positive::holds(*command.neighbours))
    throw InvalidArgument(
        fmt::format("--neighbours is {}, but must be positive", *command.neighbours));
  if (command.neighbours && command.draw == "exact")
    throw InvalidArgument("--neighbours is for --draw vecchia; an exact draw is given all points");
  if (!command.likelihood.empty()) {
    const auto likelihood = likelihoods::make(command.likelihood);  // throws, listing the names
    if (likelihood->coupled() != nullptr)
      throw InvalidArgument(fmt::format(
          "--likelihood {} needs a function for every class, and generate draws one; give another",
          likelihood->text()));
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

void write(const GenerateCommand& command, const data::Simulated& data,
           const std::string& comment) {
  auto header = data.names;
  if (command.truth) header.emplace_back("f");
  header.emplace_back("y");
  data::CsvWriter writer(command.output, std::move(header), comment);
  for (Index i = 0; i < data.target.size(); ++i) {
    if (i % 65536 == 0) stop_if_interrupted("writing the data");
    for (Index j = 0; j < data.inputs.cols(); ++j) writer.number(data.inputs(i, j));
    if (command.truth) writer.number(data.truth[i]);
    writer.number(data.target[i]);
    writer.end_row();
  }
  writer.close();
}

void add_options(Arguments& arguments, GenerateCommand& command) {
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
  arguments.option("--draw", "NAME", command.draw,
                   "auto | exact | vecchia: exact factors the covariance; vecchia draws\n"
                   "each point given its M most correlated earlier ones, which is an\n"
                   "approximation and said in a comment of the file. auto is exact up to\n" +
                       count(studies::kMostExactDraw) + " rows");
  arguments.option("--neighbours", "M", command.neighbours,
                   fmt::format("M of vecchia; giving it means --draw vecchia [default: {}]",
                               studies::kDrawNeighbours));
  arguments.bytes("--memory", command.memory,
                  "memory to stay inside [default: 80 % of what is free]");
  add_run_options(arguments, command.run);
  arguments.appendix("Names", kNames);
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
  add_options(arguments, command);
  if (!arguments.parse(words)) return exit_ok;

  check(command);
  check_memory(command);
  apply(command.run);
  const Console console("generate", command.run.quiet);
  const Generated generated =
      command.name == "gp" ? generate_gp(command, console) : generate_surface(command);
  const auto& data = generated.data;
  write(command, data, generated.comment);
  console.note(fmt::format("{} rows; {}; seed {}", count(data.target.size()), generated.truth,
                           command.seed));
  if (!generated.comment.empty()) console.note(generated.comment);
  if (command.run.json) {
    Json json = {{"n", data.target.size()},  {"d", data.inputs.cols()}, {"name", command.name},
                 {"truth", generated.truth}, {"seed", command.seed},    {"output", command.output}};
    if (command.name == "gp") json["draw"] = generated.draw;
    print_json(json);
  }
  return exit_ok;
}

}  // namespace mercer::cli
