// mercer generate: simulated data whose truth is known, as CSV.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/format.hpp"
#include "cli/record.hpp"
#include "cli/suggest.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/stop.hpp"
#include "mercer/core/threads.hpp"
#include "mercer/data/csv_writer.hpp"
#include "mercer/data/simulate.hpp"
#include "mercer/likelihoods/likelihood.hpp"

namespace mercer::cli {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 4> kNames = {{
    {"gp", "a draw from a Gaussian process at uniform points of the unit cube"},
    {"friedman", "10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 on the unit cube, d >= 5"},
    {"field", "Franke's surface at scattered points of the unit square"},
    {"grid", "Franke's surface on a grid of about N cells with holes in it"},
}};

constexpr std::array<std::string_view, 7> kOnlyForGp = {
    "kernel", "lengthscale", "signal_variance", "likelihood", "draw", "neighbours", "memory"};

std::vector<std::string> names() {
  std::vector<std::string> out;
  out.reserve(std::size(kNames));
  for (const auto& [name, what] : kNames) out.emplace_back(name);
  return out;
}

studies::DrawOptions draw_options(const GenerateCommand& command) {
  const double free = 0.8 * static_cast<double>(available_memory_bytes());
  return {
      .seed = command.method.seed,
      .memory_bytes = command.method.memory ? static_cast<double>(*command.method.memory) : free,
      .method = studies::draw_method(command.draw),
      .neighbours = command.neighbours};
}

/// Rows that are made some at a time, and written before the next.
bool in_pieces(const GenerateCommand& command) {
  return command.name == "friedman" || command.name == "field";
}

constexpr Index kPieceRows = 16384;
// Characters of a number, about.
constexpr double kCellBytes = 18;

/// Of a file that is written piece by piece the disk is the limit, unless it is packed.
void check_disk(const GenerateCommand& command) {
  if (command.output == "-" || command.output.ends_with(".gz")) return;
  const auto folder = std::filesystem::absolute(command.output).parent_path();
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error) return;
  const Index d = command.name == "field" ? 2 : command.d.value_or(10);
  const double row = kCellBytes * static_cast<double>(d + 1),
               free = static_cast<double>(space.available);
  if (row * static_cast<double>(*command.n) <= free) return;
  throw DoesNotFit(
      fmt::format("{} rows of {} inputs take about {} of disk, but {} are free there; up to {} "
                  "rows fit: give a "
                  "smaller -n",
                  count(*command.n), d, format_bytes(row * static_cast<double>(*command.n)),
                  format_bytes(free), count(static_cast<Index>(free / row))));
}

/// Says before the first allocation what does not fit and how many rows would.
void check_memory(const GenerateCommand& command) {
  if (in_pieces(command)) return check_disk(command);
  auto draw = draw_options(command);
  const bool gp = command.name == "gp";
  const Index d = command.d.value_or(2);
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
  Rng rng(command.method.seed, "likelihood");
  for (Index i = 0; i < data.target.size(); ++i) data.target[i] = rng.uniform();
  constexpr Index rows = 1024;
  parallel_for((data.target.size() + rows - 1) / rows, [&](Index task, int) {
    stop_if_requested("drawing the target");
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
  auto kernel = kernels::Kernel::parse(command.method.kernel, input_names);
  // Typical distances in the unit cube grow like sqrt(d).
  kernel.set_unwritten_lengthscales(0.3 * std::sqrt(static_cast<double>(d)));
  kernel.set_given(command.lengthscale, command.signal_variance);
  const inference::Problem problem{kernel, command.noise.value_or(0.01), inference::MeanKind::zero};
  Rng rng(command.method.seed, "gp-points");
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

double noise_of(const GenerateCommand& command) {
  return command.noise.value_or(command.name == "friedman" ? 1.0 : 0.0025);
}

std::string surface_truth(const GenerateCommand& command) {
  return fmt::format("{} function, noise variance {:.6g}",
                     command.name == "friedman" ? "Friedman's" : "Franke's", noise_of(command));
}

data::SimulatedRows rows_of(const GenerateCommand& command) {
  const double sd = std::sqrt(noise_of(command));
  const auto seed = command.method.seed;
  if (command.name == "friedman")
    return data::friedman_rows(*command.n, {command.d.value_or(10), sd, seed});
  return data::field_rows(*command.n, sd, seed);
}

Generated generate_grid(const GenerateCommand& command) {
  Generated out;
  data::GridOptions grid;
  grid.rows = static_cast<Index>(std::sqrt(static_cast<double>(*command.n)));
  grid.columns = *command.n / grid.rows;
  grid.seed = command.method.seed;
  out.data = data::grid_field(grid, std::sqrt(noise_of(command)));
  out.truth = surface_truth(command);
  return out;
}

void check(const GenerateCommand& command, const RunOptions& run, const Arguments& arguments) {
  require_choice("NAME", command.name, names());
  if (!command.n) throw InvalidArgument("-n is missing: say how many rows, for example -n 1000");
  validate(command);
  const bool flat = command.name == "field" || command.name == "grid";
  if (flat && command.d.value_or(2) != 2)
    throw InvalidArgument(fmt::format("{} lies in the plane: -d can only be 2", command.name));
  if (command.name != "gp")
    for (const auto& name : kOnlyForGp)
      if (arguments.given(name))
        throw InvalidArgument(fmt::format("`{}` is for gp, not for {}", name, command.name));
  if (command.neighbours && command.draw == "exact")
    throw InvalidArgument("`neighbours` is for `draw=vecchia`; an exact draw is given all points");
  if (!command.likelihood.empty()) {
    const auto likelihood = likelihoods::make(command.likelihood);  // throws, listing the names
    if (likelihood->coupled() != nullptr)
      throw InvalidArgument(fmt::format(
          "--likelihood {} needs a function for every class, and generate draws one; give another",
          likelihood->text()));
    if (command.noise)
      throw InvalidArgument("--noise is Gaussian noise; with --likelihood leave it out");
  }
  planning::check(command.method);
  if (run.json && command.output == "-")
    throw InvalidArgument("--json and the data both want standard output; name a file with -o");
  check_output("--output", command.output, {});
}

std::vector<std::string> header_of(const GenerateCommand& command, std::vector<std::string> names) {
  if (command.truth) names.emplace_back("f");
  names.emplace_back("y");
  return names;
}

void write_simulated(const GenerateCommand& command, const data::Simulated& data,
                     data::CsvWriter& writer) {
  for (Index i = 0; i < data.target.size(); ++i) {
    if (i % 65536 == 0) stop_if_requested("writing the data");
    for (Index j = 0; j < data.inputs.cols(); ++j) writer.number(data.inputs(i, j));
    if (command.truth) writer.number(data.truth[i]);
    writer.number(data.target[i]);
    writer.end_row();
  }
}

void write(const GenerateCommand& command, const data::Simulated& data,
           const std::string& comment) {
  data::CsvWriter writer(command.output, header_of(command, data.names), comment);
  write_simulated(command, data, writer);
  writer.close();
}

// In the memory of one piece, whatever the number of rows.
void write_in_pieces(const GenerateCommand& command, const Console& console) {
  auto rows = rows_of(command);
  data::CsvWriter writer(command.output, header_of(command, rows.names()));
  const auto progress = console.progress();
  Index done = 0;
  for (data::Simulated piece; rows.next(piece, kPieceRows);) {
    write_simulated(command, piece, writer);
    done += piece.target.size();
    if (progress({.stage = "write",
                  .fraction = static_cast<double>(done) / static_cast<double>(rows.rows()),
                  .detail = fmt::format("{} rows", count(done))}) == Action::stop)
      throw Interrupted("interrupted while writing the data");
  }
  clear_progress_line();
  writer.close();
}

void add_options(Arguments& arguments, GenerateCommand& command) {
  arguments.positional("NAME", command.name,
                       fmt::format("{} (see below)", fmt::join(names(), " | ")));
  arguments.add(command, without({kOnlyForGp.begin(), kOnlyForGp.end()}));
  arguments.add(command.method, only({"seed"}));
  arguments.group("Only for gp");
  arguments.add(command.method, only({"kernel", "memory"}));
  arguments.add(command);
  std::string lines;
  for (const auto& [name, what] : kNames) lines += fmt::format("  {:<12}{}\n", name, what);
  arguments.appendix("Names", lines);
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
  RunOptions run;
  add_options(arguments, command);
  add_run_options(arguments, run);
  if (!arguments.parse(words)) return exit_ok;

  check(command, run, arguments);
  check_memory(command);
  apply(run);
  const Console console("generate", run.quiet);
  Generated generated;
  Index n = *command.n, d = command.name == "friedman" ? command.d.value_or(10) : 2;
  if (in_pieces(command)) {
    generated.truth = surface_truth(command);
    write_in_pieces(command, console);
  } else {
    generated = command.name == "gp" ? generate_gp(command, console) : generate_grid(command);
    write(command, generated.data, generated.comment);
    n = generated.data.target.size();
    d = generated.data.inputs.cols();
  }
  console.note(fmt::format("{} rows; {}; seed {}", count(n), generated.truth, command.method.seed));
  if (!generated.comment.empty()) console.note(generated.comment);
  if (run.json) {
    Json json = {{"n", n},
                 {"d", d},
                 {"name", command.name},
                 {"truth", generated.truth},
                 {"seed", command.method.seed},
                 {"output", command.output}};
    if (command.name == "gp") json["draw"] = generated.draw;
    print_json(json);
  }
  return exit_ok;
}

}  // namespace mercer::cli
