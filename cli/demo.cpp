// mercer demo: what mercer claims, shown on simulated data whose truth is known. Every number that
// it prints was computed in this run; the parts are in cli/demo/.
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/demo/parts.hpp"
#include "cli/exit_code.hpp"
#include "cli/format.hpp"
#include "cli/shared_options.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/core/timer.hpp"

namespace mercer::cli {
namespace demo {

void Setting::section(const std::string& title, const std::string& text) const {
  clear_progress_line();
  ++sections_;
  if (!silent_) print_exactly(fmt::format("{}. {}\n", sections_, title));
  paragraph(text);
}

void Setting::paragraph(const std::string& text) const {
  clear_progress_line();
  if (!silent_) print_exactly(fmt::format("   {}\n\n", wrapped(text, 3)));
}

void Setting::table(const std::string& text) const {
  clear_progress_line();
  if (!silent_) print_exactly(text + "\n");
}

}  // namespace demo

int run_demo(const Words& words) {
  Arguments arguments("demo",
                      "  mercer demo\n"
                      "  mercer demo --quick --json",
                      "Simulates data whose truth is known and shows on them what mercer claims:\n"
                      "a plan, an exact fit of 60,000 rows whose matrix would take 27 GiB,\n"
                      "calibrated predictions, error bounds beside true errors, what the\n"
                      "preconditioner saves, and three classes. About two minutes on two cores.");
  RunOptions run;
  DemoCommand command;
  arguments.add(command);
  add_run_options(arguments, run);
  if (!arguments.parse(words)) return exit_ok;
  apply(run);

  const Timer timer;
  const Console console("demo", run.quiet);
  const demo::Setting setting(demo::size_of(command.quick), command.seed, run.json, console);
  Json json = {{"quick", command.quick}, {"seed", command.seed}};
  const auto field = demo::simulate_field(setting);
  json["n"] = field.train.size();
  json["d"] = field.train.dimension();
  demo::show_plan(setting, field, json);
  const auto fit = demo::fit_field(setting, field, json);
  demo::predict_field(setting, field, fit, json);
  const bool kept = demo::check_certificate(setting, field, fit, json);
  demo::compare_iterations(setting, field, fit, json);
  demo::learn_classes(setting, json);

  const auto peak = peak_rss_bytes();
  setting.section("Next",
                  fmt::format("All this took {} and at most {} of memory. With your own table:",
                              duration(timer.seconds()), format_bytes(static_cast<double>(peak))));
  setting.table(
      "   mercer plan data.csv --target y                 what a run would need\n"
      "   mercer fit data.csv --target y -m model.mcr     learn, with scores: --test-fraction 0.2\n"
      "   mercer predict model.mcr new.csv -o out.csv     means, intervals, error bounds\n"
      "   mercer compare data.csv --target y              which preconditioner helps where\n");
  put(json, "seconds", timer.seconds());
  json["peak_rss_bytes"] = peak;
  if (run.json) print_json(json);
  return kept ? exit_ok : exit_internal;
}

}  // namespace mercer::cli
