// The command line: a table of verbs, and what is the same for all of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/blas_setup.hpp"
#include "cli/console.hpp"
#include "cli/exit_code.hpp"
#include "cli/signals.hpp"
#include "cli/suggest.hpp"
#include "cli/verbs.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/stop.hpp"
#include "mercer/core/version.hpp"

namespace mercer::cli {
namespace {

struct Verb {
  std::string_view name;
  std::string_view arguments;
  std::string_view summary;
  int (*run)(const Words&);
};

constexpr std::array kVerbs = {
    Verb{"fit", "DATA --target y [-m model.mcr]", "learn; writes a model file", run_fit},
    Verb{"predict", "MODEL DATA [-o out.csv]", "mean, sd, quantiles, error bound; streams DATA",
         run_predict},
    Verb{"evaluate", "MODEL DATA", "scores on labelled data", run_evaluate},
    Verb{"sample", "DATA --target y [-o chains.csv]", "posterior over hyperparameters (chains)",
         run_sample},
    Verb{"cv", "DATA --target y [--folds 10]", "cross-validation: scores on rows left out", run_cv},
    Verb{"solve", "DATA --target y", "one linear system, fixed hyperparameters", run_solve},
    Verb{"compare", "DATA --target y", "solvers x preconditioners over lengthscale and noise",
         run_compare},
    Verb{"plan", "DATA [--target y]", "what a run would do, cost and need; runs nothing long",
         run_plan},
    Verb{"info", "MODEL", "what a model file holds", run_info},
    Verb{"generate", "NAME -n N [-d D] [--seed S]", "simulated data with known truth",
         run_generate},
    Verb{"split", "DATA --train-out a.csv --test-out b.csv", "a random share of the rows set apart",
         run_split},
    Verb{"demo", "", "the whole story on simulated data, in two minutes", run_demo},
};

std::string overview() {
  std::string text =
      "mercer learns from data with kernels, exactly, and says how good its answer is.\n\n"
      "Example:\n"
      "  mercer generate friedman -n 2000 --seed 1 -o data.csv\n"
      "  mercer fit data.csv --target y -m model.mcr\n"
      "  mercer predict model.mcr data.csv -o predictions.csv\n\n"
      "Usage: mercer VERB ...\n\n";
  for (const auto& verb : kVerbs)
    text += fmt::format("  mercer {:<9}{:<41} {}\n", verb.name, verb.arguments, verb.summary);
  return text +
         "\n`mercer VERB --help` shows an example and every option; `mercer --version` the "
         "version.\n"
         "DATA is a CSV file with a header (.csv, .csv.gz, or - for standard input).\n\n"
         "Exit codes: 0 ok; 1 internal error; 2 usage; 3 bad input data; 4 does not fit in "
         "memory;\n"
         "5 tolerance not reached; 6 model file unreadable or newer; 130 interrupted\n"
         "(Ctrl-C); 143 ended by SIGTERM, 129 by SIGHUP; 141 the reader of a pipe has gone.\n\n"
         "Ctrl-C while fit learns ends the learning, and the model of what was learned is made;\n"
         "a second one leaves at once. SIGTERM ends any verb within seconds; with --checkpoint\n"
         "the same command goes on from where it was.\n";
}

const Verb& find_verb(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& verb : kVerbs) {
    if (verb.name == name) return verb;
    names.emplace_back(verb.name);
  }
  throw InvalidArgument(fmt::format("there is no verb '{}'{}; the verbs are: {}", name,
                                    did_you_mean(name, names), fmt::join(names, ", ")));
}

int run(Words words) {
  if (words.empty()) {
    print_error(overview());
    return exit_usage;
  }
  const std::string first = words.front();
  if (first == "--help" || first == "-h" || first == "help") {
    if (first == "help" && words.size() > 1) return find_verb(words[1]).run({"--help"});
    print_out(overview());
    return exit_ok;
  }
  if (first == "--version") {
    print_out(fmt::format("mercer {}\n", version()));
    return exit_ok;
  }
  if (first == "options") return run_options(words);
  const Verb& verb = find_verb(first);
  words.erase(words.begin());
  return verb.run(words);
}

}  // namespace
}  // namespace mercer::cli

int main(int argc, char** argv) {
  using namespace mercer;
  cli::open_closed_standard_streams();
  cli::restart_with_better_kernels(argv);
  cli::catch_signals();
  const StopScope ended_by_signal([] { return cli::leaving() != 0; });
  const cli::Words words(argv + 1, argv + argc);
  const std::string name =
      words.empty() || words[0].starts_with("-") ? "mercer" : "mercer " + words[0];
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  return cli::exit_code_of(name, json, [&] { return cli::run(words); });
}
