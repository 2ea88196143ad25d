// mercer cv: cross-validation; a table of scores, and on request JSON and every prediction.
#include <fmt/format.h>

#include <map>

#include "cli/cv_text.hpp"
#include "cli/exit_code.hpp"
#include "cli/files.hpp"
#include "cli/format.hpp"
#include "cli/model_text.hpp"
#include "cli/signals.hpp"
#include "cli/verbs.hpp"

namespace mercer::cli {
namespace {

void add_cv_options(Arguments& arguments, CvCommand& command) {
  auto& fit = command.fit;
  arguments.positional("DATA", fit.data.path, "CSV file; - for standard input");
  arguments.group("Cross-validation");
  arguments.add(command);
  add_data_options(arguments, fit.data);
  arguments.add(fit.fit, only({"merge"}));
  arguments.group("Learning");
  arguments.add(fit.fit.train, without({"checkpoint"}));
  arguments.appendix("Training methods", planning::describe_trainers());
  arguments.group("Task");
  arguments.add(fit, only({"task", "method", "likelihood"}));
  arguments.add(fit.fit.approximation, without({"check_rows", "stream", "reservoir"}));
  add_method_options(arguments, fit.fit.method);
  add_run_options(arguments, fit.run);
  arguments.add_config();
}

void check(const CvCommand& command, const Arguments& arguments) {
  const Index folds = studies::number_of_folds(command.options.folds);
  if (folds == 0 && command.fit.fit.approximation.asked())
    throw InvalidArgument(fmt::format(
        "`folds=loo` is that of the exact posterior; `method={}` is an approximation: give a "
        "number of `folds`",
        command.fit.method));
  if (!command.fold_column.empty() && arguments.given("folds"))
    throw InvalidArgument("`folds` makes random folds and `fold_column` names them; give one");
  if (command.fit.run.json && command.output == "-")
    throw InvalidArgument("--json and -o - both want standard output; name a file with -o");
  if (!command.output.empty()) check_output("--output", command.output, {command.fit.data.path});
}

void tell_unconverged(const studies::CvResult& result, bool gaussian, const Console& console) {
  if (result.all_rows && result.all_rows->solve.stop != StopReason::converged) {
    console.warn(fmt::format(
        "the fit to all rows did not reach its tolerance: its hyperparameters are used all the "
        "same. {}",
        solve_advice(result.all_rows->plan.system, gaussian, result.all_rows->solve.stop)));
    return;
  }
  Index count = 0;
  const studies::CvFold* first = nullptr;
  for (const auto& fold : result.folds) {
    if (fold.converged()) continue;
    if (first == nullptr) first = &fold;
    ++count;
  }
  if (first != nullptr)
    console.warn(fmt::format(
        "the tolerance was not reached in {}: their scores are those of approximate weights. {}",
        plural(count, "fold"), solve_advice(first->system, gaussian, first->stop)));
}

// Of the model of all rows, or of the first fold: the others differ little.
void tell_scales(const studies::CvResult& result, const data::Schema& schema,
                 const Console& console) {
  std::string text;
  if (result.all_rows)
    text = unequal_scales(result.all_rows->model.problem, result.all_rows->model.scaling, schema);
  else if (!result.folds.empty())
    text = unequal_scales(*result.folds[0].problem, result.folds[0].scaling, schema);
  if (!text.empty()) console.note(text);
}

// Said once of all folds, however many have it.
void tell_folds(const studies::CvResult& result, bool gaussian, const Console& console) {
  std::map<std::string, Index> warnings;
  for (const auto& fold : result.folds)
    for (const auto& warning : fold.warnings) ++warnings[warning];
  for (const auto& [warning, folds] : warnings)
    console.warn(fmt::format("{} (in {})", warning, plural(folds, "fold")));
  if (result.all_rows)
    for (const auto& warning : result.all_rows->warnings) console.warn(warning);
  tell_unconverged(result, gaussian, console);
  if (result.interrupted)
    console.warn(result.leave_one_out
                     ? fmt::format("interrupted: {} of {} are predicted", count(result.rows_done),
                                   plural(result.n, "row"))
                     : fmt::format("interrupted: {} of {} are done, and their scores are shown",
                                   result.folds.size(), plural(result.folds_asked, "fold")));
}

}  // namespace

int run_cv(const Words& words) {
  Arguments arguments(
      "cv",
      "  mercer cv concrete.csv --target strength\n"
      "  mercer cv sites.csv --target y --fold-column site -o predictions.csv\n"
      "  mercer cv meuse.csv --target zinc --isotropic x,y --folds loo",
      "Cross-validation: every row is predicted by a model of rows in other folds, and scored\n"
      "as mercer evaluate does. With folds, scaling, hyperparameters and weights are learned anew\n"
      "for each of them (missing cells are filled once, from all rows); with\n"
      "--folds loo the hyperparameters and the scaling are those of all rows, and the rest is\n"
      "in closed form where the noise is Gaussian.");
  CvCommand command;
  add_cv_options(arguments, command);
  if (!arguments.parse(words)) return exit_ok;

  auto& fit = command.fit;
  apply(fit.run);
  check_learning(fit, arguments);
  check(command, arguments);
  settle_task(fit, arguments);
  if (!command.fold_column.empty()) fit.data.options.fold_column = command.fold_column;
  const Console console("cv", fit.run.quiet);
  tell_config(arguments, console);
  const auto data = read(fit.data, console, fit.fit.method);
  settle_likelihood(fit, arguments, data, console);
  if (data.cells_filled > 0)
    console.note("missing cells are filled from all rows, before the folds are made");
  command.options.fit = fit.fit;
  const auto result = explain_factorisations(fit.fit.likelihood == "gaussian", [&] {
    return studies::cross_validate(data, command.options, console.progress());
  });
  clear_progress_line();
  tell_folds(result, fit.fit.likelihood == "gaussian", console);
  tell_scales(result, data.schema, console);
  if (!command.output.empty() && result.rows_done > 0) write_predictions(command, data, result);
  if (fit.run.json)
    print_json(cv_json(command, arguments, data, result));
  else if (command.output != "-")
    print_out(cv_text(command, data, result));
  if (result.interrupted) return exit_code_when_stopped();
  return result.converged() ? exit_ok : exit_tolerance;
}

}  // namespace mercer::cli
