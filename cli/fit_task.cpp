// What is learned from the words of `fit`, and of `plan`, which says what fit would do: numbers,
// classes or another likelihood, and which options go with that.
#include <fmt/format.h>

#include <cmath>

#include "cli/approximation.hpp"
#include "cli/exit_code.hpp"
#include "cli/fit_command.hpp"
#include "cli/suggest.hpp"
#include "mercer/data/text.hpp"
#include "mercer/inference/choice.hpp"
#include "mercer/likelihoods/likelihood.hpp"
#include "mercer/training/training.hpp"

namespace mercer::cli {
namespace {

constexpr Index kLeastSkewedRows = 30;
constexpr double kSkewed = 1.5;

void refuse_regression_options(const FitCommand& command, const Arguments& arguments) {
  refuse_gaussian_options(arguments,
                          fmt::format("the likelihood {} is not Gaussian", command.likelihood));
}

// Classes or numbers with Gaussian noise, where the options do not say it.
void find_task(FitCommand& command, const Arguments& arguments, const data::Dataset& data,
               const Console& console) {
  if (command.likelihood != "auto" && command.likelihood != "gaussian") return;
  const bool regression_only = asks_for_numbers(arguments);
  const auto& schema = data.schema;
  if (command.task == "auto" && command.likelihood == "auto" && !regression_only &&
      models::looks_like_classes(data)) {
    const auto classes = models::find_classes(data);
    console.note(fmt::format(
        "the target {} has {}", data::shown(schema.target),
        schema.target_levels.empty()
            ? fmt::format("{} integer values: these are learned as classes "
                          "(--task regression learns numbers)",
                          classes.count())
            : fmt::format("{} text values: these are learned as classes", classes.count())));
    command.task = "classification";
    command.likelihood = "bernoulli-logit";
    refuse_regression_options(command, arguments);
    return;
  }
  if (!schema.target_levels.empty())
    throw DataError(fmt::format(
        "the target {} holds categories; --task classification learns them, or name a numeric "
        "column with --target",
        data::shown(schema.target)));
  if (command.task == "auto" && regression_only && models::looks_like_classes(data))
    console.note(
        fmt::format("the target {} looks like classes, but the options are those of numbers: it is "
                    "learned as a "
                    "number (--task classification learns classes)",
                    data::shown(schema.target)));
  const auto integers = models::few_integers(data);
  if (command.task == "auto" && command.likelihood == "auto" && !integers.empty())
    console.note(fmt::format(
        "the target {} holds {} different whole numbers from {} to {}: learned as numbers "
        "(--task classification learns them as classes)",
        data::shown(schema.target), integers.size(), integers.front(), integers.back()));
  command.task = "regression";
  command.likelihood = "gaussian";
}

}  // namespace

std::vector<std::string> likelihood_names(bool with_auto) {
  std::vector<std::string> names;
  if (with_auto) names.emplace_back("auto");
  for (const auto& info : likelihoods::likelihoods()) names.emplace_back(info.name);
  return names;
}

void check_learning(FitCommand& command, const Arguments& arguments) {
  const auto& train = command.fit.train;
  validate(command);
  settle_approximation(command, arguments);
  planning::check(command.fit.approximation.asked() ? planning::without_base(command.fit.method)
                                                    : command.fit.method);
  planning::check(train);
  if (command.likelihood != "auto" && command.likelihood != "gaussian")
    likelihoods::make(command.likelihood);  // throws, listing the names
  if (train.train == "none")
    refuse_given(arguments,
                 {"steps", "restarts", "subset", "probes", "probe_kind", "budget", "checkpoint",
                  "trace", "validation"},
                 "`train=none` learns nothing");
  const bool by_solves =
      train.train == "auto" || (training::trainers().contains(train.train) &&
                                training::trainers().find(train.train).takes_gradients());
  if (command.fit.method.solver == inference::kCholesky && !by_solves)
    refuse_given(arguments, {"max_iterations"}, "a factorisation has no iterations");
  if (!training::trainers().contains(train.train)) return;
  const auto& trainer = training::trainers().find(train.train);
  if (!trainer.takes_gradients())
    refuse_given(arguments, {"probes", "probe_kind", "budget"},
                 fmt::format("`train={}` takes no gradient from solves", train.train));
  if (trainer.from_start_values)
    refuse_given(arguments, {"restarts"},
                 fmt::format("`train={}` begins at the start values", train.train));
}

void settle_task(FitCommand& command, const Arguments& arguments) {
  const bool own = command.likelihood != "auto" && command.likelihood != "gaussian";
  if (command.method == "klr") {
    if (command.task == "regression")
      throw InvalidArgument("--method klr is kernel logistic regression, which learns classes");
    command.task = "classification";
    if (command.likelihood != "auto" && command.likelihood != "bernoulli-logit")
      throw InvalidArgument("--method klr has the likelihood bernoulli-logit; leave the other out");
  }
  if (command.method == "krr") {
    if (command.task == "classification")
      throw InvalidArgument("--method krr is kernel ridge regression, which learns numbers");
    command.task = "regression";
    if (own) throw InvalidArgument("--method krr has Gaussian noise; leave --likelihood out");
  }
  if (own) {
    const bool binary = likelihoods::make(command.likelihood)->is_binary();
    if (command.task == "auto") command.task = binary ? "classification" : "regression";
    if (binary != command.classifies())
      throw InvalidArgument(fmt::format("--likelihood {} does not go with --task {}",
                                        command.likelihood, command.task));
  }
  if (command.likelihood == "gaussian" && command.classifies())
    throw InvalidArgument("--likelihood gaussian does not go with --task classification");
  if (command.classifies() && !own) command.likelihood = "bernoulli-logit";
  if (own || command.classifies()) refuse_regression_options(command, arguments);
  command.data.options.text_target = command.task != "regression";
  command.data.options.text_anywhere = command.classifies();
}

namespace {

double skewness(ConstVectorView y) {
  const double mean = y.mean();
  const Vector centred = y.array() - mean;
  const double variance = centred.squaredNorm() / static_cast<double>(y.size());
  return centred.array().cube().mean() / std::pow(variance, 1.5);
}

// A long tail upwards that the logarithm takes away: prices, concentrations, times.
void suggest_logarithm(const data::Dataset& data, const Console& console) {
  const auto& y = data.target;
  if (y.size() < kLeastSkewedRows || !(y.minCoeff() > 0) || data.schema.log_target) return;
  const double as_it_is = skewness(y), of_logarithm = skewness(y.array().log().matrix());
  if (as_it_is > kSkewed && std::abs(of_logarithm) < 0.5 * as_it_is)
    console.note(fmt::format(
        "the target {} is positive with a long tail (skewness {:.1f}, of its logarithm {:.1f}): "
        "`log_target` learns the logarithm, and intervals stay positive",
        data::shown(data.schema.target), as_it_is, of_logarithm));
}

}  // namespace

void settle_likelihood(FitCommand& command, const Arguments& arguments, const data::Dataset& data,
                       const Console& console) {
  find_task(command, arguments, data, console);
  auto& fit = command.fit;
  fit.likelihood = command.likelihood;
  // Classes are those of the whole file, whatever part is learned from.
  if (command.classifies()) fit.classes = models::find_classes(data);
  fit.standardize = command.data.options.standardize;
  fit.mean_only = command.method == "krr" || command.method == "klr";
  complete_approximation(command, arguments, data);
  if (command.likelihood == "gaussian" && !fit.mean_only && data.noise.variance.size() == 0)
    suggest_logarithm(data, console);
}

}  // namespace mercer::cli
