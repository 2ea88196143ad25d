#include "cli/option_list.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>

#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/cv_text.hpp"
#include "cli/exit_code.hpp"
#include "cli/fit_command.hpp"
#include "cli/predict_command.hpp"
#include "cli/sample_text.hpp"
#include "cli/verbs.hpp"
#include "mercer/studies/compare_approximations.hpp"

namespace mercer::cli {
namespace {

struct OptionTable {
  std::string title;
  std::string verbs;
  std::vector<Option> options;
  std::shared_ptr<void> values;  // what the options refer to
};

template <class Options>
OptionTable table(std::string title, std::string verbs) {
  auto values = std::make_shared<Options>();
  auto options = list_options(*values);
  options.erase(std::remove_if(options.begin(), options.end(),
                               [](const Option& option) { return !option.for_users; }),
                options.end());
  return {std::move(title), std::move(verbs), std::move(options), std::move(values)};
}

// A struct that contains others repeats their fields; `others` are listed before.
template <class Options>
OptionTable table_without(std::string title, std::string verbs,
                          std::initializer_list<const OptionTable*> others) {
  auto out = table<Options>(std::move(title), std::move(verbs));
  for (const auto* other : others)
    for (const auto& known : other->options)
      out.options.erase(
          std::remove_if(out.options.begin(), out.options.end(),
                         [&](const Option& option) { return option.name == known.name; }),
          out.options.end());
  return out;
}

const std::vector<OptionTable>& option_tables() {
  static const std::vector<OptionTable> all = [] {
    const auto method =
        table<models::MethodOptions>("Model and method",
                                     "`fit`, `cv`, `solve`, `plan`; `compare` but for what its "
                                     "grid sets; hyperparameters are on "
                                     "standardised data unless `--no-standardize`");
    const auto train = table<models::TrainOptions>("Learning", "`fit`, `cv`, `plan`");
    const auto approximation = table<models::ApproximationOptions>(
        "Approximation",
        "`fit`, `cv`, `plan` with the name of an approximation as `--method`; `--check-rows` of "
        "`fit` only, `--stream` and `--reservoir` of `fit` and `plan`; base points and blocks are "
        "as many as `--rank` and `--blocks` say");
    return std::vector<OptionTable>{
        table<data::DataOptions>("Data",
                                 "`fit`, `cv`, `solve`, `compare`, `plan`; `--drop-missing` and "
                                 "`--delimiter` also `predict` and `evaluate`, `--delimiter` also "
                                 "`split`; a name with a comma stands in quotes: "
                                 "`--inputs '\"a,b\",c'`"),
        method,
        train,
        approximation,
        table_without<models::FitOptions>("Preparation", "`fit`, `cv`, `plan`",
                                          {&method, &train, &approximation}),
        table<FitCommand>("fit",
                          "`fit`; `--task`, `--method` and `--likelihood` also `cv` and `plan`"),
        table<models::PredictOptions>(
            "Predictions",
            "`predict`; but for solver, tolerance, samples and quantiles also `evaluate`"),
        table<PredictCommand>("predict", "`predict`; `--seed` also `evaluate`"),
        table<training::SampleOptions>(
            "Sampling",
            "`sample`, which also takes `--probes`, `--probe-kind`, `--restarts` and "
            "`--checkpoint`, and the options of data, model and method"),
        table<SampleCommand>("sample",
                             "`sample`, which also takes `--model` and "
                             "`--keep-unconverged`"),
        table<CvCommand>("cv", "`cv`"),
        table<SolveCommand>("solve", "`solve`"),
        table_without<studies::CompareOptions>("Comparison", "`compare`", {&method}),
        table<CompareCommand>("compare", "`compare`"),
        table<studies::ApproximationsOptions>(
            "Comparison of approximations",
            "`compare --methods`, which also takes the options of `fit` for model, learning and "
            "approximation"),
        table<TestFile>("compare --methods", "`compare --methods`"),
        table<PlanCommand>("plan", "`plan`"),
        table<GenerateCommand>("generate",
                               "`generate`, which also takes `--kernel`, `--seed` and `--memory`"),
        table<SplitCommand>("split",
                            "`split`, which also takes `--seed`, `--memory` and `--delimiter`"),
        table<DemoCommand>("demo", "`demo`"),
        table<ConfigOptions>("Configuration", "`fit`, `cv`, `solve`, `compare`, `plan`"),
        table<RunOptions>("Run", "every verb; `info` and `split` have no threads"),
    };
  }();
  return all;
}

// As it is typed in a shell: in quotes where it has a blank or anything that means something there.
std::string shell_word(const std::string& value) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           static_cast<unsigned char>(c) > 127 ||
           std::string_view("_-+=.,:/@%^").find(c) != std::string_view::npos;
  };
  if (std::all_of(value.begin(), value.end(), plain)) return value;
  std::string out = "'";
  for (const char c : value) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

// `solver=kcg` without its backquotes; nothing when this is no option.
std::string typed(std::string_view quoted) {
  const auto equals = quoted.find('=');
  const auto* option = find_option(quoted.substr(0, equals));
  if (option == nullptr) return "";
  if (equals == std::string_view::npos) return option->flag();
  const std::string value(quoted.substr(equals + 1));
  if (!option->is_flag) return option->flag() + " " + shell_word(value);
  Option other = *option;
  other.on_by_default = value == "false";
  return other.flag();
}

// Text in a cell of a table: a bar would end it.
std::string cell(std::string text) {
  for (auto at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
    text.insert(at, 1, '\\');
  return text;
}

// The same as with_dashes, still as code.
std::string dashes_as_code(std::string_view text, bool code);

std::string row(const Option& option) {
  std::vector<std::string> names;
  for (const auto& name : option.choices) names.push_back("`" + name + "`");
  const auto what = fmt::format("{}{}{}{}", fmt::join(names, ", "), names.empty() ? "" : ": ",
                                option.is_flag && option.on_by_default ? "do not " : "",
                                dashes_as_code(option.help, true));
  return fmt::format("| `{}` | {} | {} | {} |\n", option.flag(), cell(option.word),
                     cell(option.is_flag ? "off" : option.default_text), cell(what));
}

std::string dashes_as_code(std::string_view text, bool code) {
  std::string out;
  std::size_t done = 0;
  for (auto first = text.find('`'); first != std::string_view::npos;) {
    const auto last = text.find('`', first + 1);
    if (last == std::string_view::npos) break;
    const auto flag = typed(text.substr(first + 1, last - first - 1));
    if (flag.empty()) {  // the second quote may be the first of another pair
      first = last;
      continue;
    }
    out += text.substr(done, first - done);
    out += code ? "`" + flag + "`" : flag;
    done = last + 1;
    first = text.find('`', done);
  }
  return out += text.substr(done);
}

}  // namespace

const Option* find_option(std::string_view name) {
  static const std::map<std::string, const Option*, std::less<>> all = [] {
    std::map<std::string, const Option*, std::less<>> map;
    for (const auto& table : option_tables())
      for (const auto& option : table.options) map.emplace(option.name, &option);
    return map;
  }();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

std::string with_dashes(std::string_view text) {
  return text.find('`') == std::string_view::npos ? std::string(text) : dashes_as_code(text, false);
}

std::string options_page() {
  std::string page =
      "# Options\n\n"
      "Written by `mercer options` from the list of fields beside each algorithm; a test fails "
      "when this page is not what it\n"
      "prints. `mercer VERB --help` shows the options of a verb, [cli.md](cli.md) says what they "
      "mean together.\n\n"
      "The field of an option, which `--config` and the `options` of a JSON record have, is its "
      "name with `_` for `-`:\n"
      "`--max-iterations` is `max_iterations`. An option without a value is true or false; "
      "`--no-merge` sets `merge` to false. For\n"
      "`--drop-missing` there is `--no-drop-missing`, and for `--no-merge` there is `--merge`, to "
      "override a configuration file.\n";
  for (const auto& table : option_tables()) {
    page += fmt::format("\n## {}\n\n{}\n\n| option | value | default | what |\n|---|---|---|---|\n",
                        table.title, table.verbs);
    for (const auto& option : table.options) page += row(option);
  }
  return page;
}

int run_options(const Words&) {
  print_exactly(options_page());
  return exit_ok;
}

}  // namespace mercer::cli
