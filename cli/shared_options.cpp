#include "cli/shared_options.hpp"

#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/threads.hpp"

namespace mercer::cli {

void add_run_options(Arguments& arguments, RunOptions& options) {
  arguments.group("Run");
  arguments.flag("--json", options.json, "print one JSON object, and nothing else");
  arguments.flag("--quiet", options.quiet, "no progress and no notes on standard error");
  arguments.option("--threads", "T", options.threads,
                   "threads; the result has the same bits with any number\n[default: all cores]");
}

void apply(const RunOptions& options) {
  if (!options.threads) return;
  if (*options.threads < 1)
    throw InvalidArgument(fmt::format("--threads is {}, but must be positive", *options.threads));
  if (*options.threads > 4096)
    throw InvalidArgument(fmt::format(
        "--threads is {}, more than this program can use; give at most 4096", *options.threads));
  set_num_threads(*options.threads);
}

void add_data_options(Arguments& arguments, DataFlags& flags) {
  arguments.group("Data");
  arguments.option("--target", "NAME", flags.target, "column to learn [default: the last one]");
  arguments.list("--inputs", "A,B,C", flags.options.inputs,
                 "columns to learn from [default: all others]");
  arguments.list("--categorical", "NAME", flags.options.categorical,
                 "text column to code one-hot; may be repeated");
  arguments.flag("--drop-missing", flags.options.drop_missing,
                 "leave out rows with a missing input instead of refusing");
  arguments.flag("--no-standardize", flags.raw_scale,
                 "work in the units of the data; default: inputs and\n"
                 "target are scaled to mean 0 and standard deviation 1");
}

void add_noise_options(Arguments& arguments, DataFlags& flags) {
  arguments.option("--noise-column", "NAME", flags.noise_column,
                   "column of known noise variances, in squared units of\n"
                   "the target; the learned one is added. Not an input");
  arguments.option("--count-column", "NAME", flags.count_column,
                   "each row stands for so many observations (a weight): of\n"
                   "numbers it is their mean, of classes and counts each\n"
                   "was the same. Not an input");
}

void add_merge_option(Arguments& arguments, bool& no_merge) {
  arguments.flag("--no-merge", no_merge,
                 "keep rows with the same inputs apart; merging them\n"
                 "changes nothing but the time");
}

data::Dataset read(DataFlags& flags) {
  auto& advice = flags.options.target_advice;
  if (advice.empty())
    advice = flags.options.text_target
                 ? "if the column holds classes, say --task classification"
                 : "this is about numbers: name a numeric column with --target, or learn classes "
                   "with fit --task classification";
  if (!flags.target.empty()) flags.options.target = flags.target;
  if (!flags.noise_column.empty()) flags.options.noise_column = flags.noise_column;
  if (!flags.count_column.empty()) flags.options.count_column = flags.count_column;
  flags.options.standardize = !flags.raw_scale;
  auto dataset =
      io_errors_as(exit_data, [&] { return data::read_dataset(flags.path, flags.options); });
  if (!dataset.schema.target_levels.empty() && !flags.options.text_target)
    throw DataError(
        fmt::format("the target '{}' holds categories; {}", dataset.schema.target, advice));
  return dataset;
}

void tell(const data::Dataset& data, const Console& console) {
  for (const auto& message : data.messages) console.note(message);
}

data::Dataset read(DataFlags& flags, const Console& console) {
  auto dataset = read(flags);
  tell(dataset, console);
  return dataset;
}

void add_preconditioning_options(Arguments& arguments, models::MethodOptions& options) {
  auto& preconditioning = options.preconditioning;
  arguments.option("--rank", "M", preconditioning.rank,
                   "rank of the preconditioner, its landmarks or features\n[default: planned]");
  arguments.option("--neighbours", "m", preconditioning.neighbours,
                   "points that a sparse factor conditions on [default: by size]");
  arguments.option("--blocks", "B", preconditioning.blocks,
                   "diagonal blocks of a preconditioner [default: by size]");
  arguments.option("--delta", "D", preconditioning.delta,
                   "regularized: added to the noise variance [default: 10 times it]");
  arguments.option("--inner-tolerance", "E", preconditioning.inner_tolerance,
                   "of a preconditioner that iterates inside [default: its own]");
  arguments.option("--drop", "T", preconditioning.drop,
                   "ilu: leave out entries below this share of the diagonal");
  arguments.option("--landmarks", "HOW", options.landmarks, "auto | uniform | kmeans | leverage");
}

void add_limit_options(Arguments& arguments, models::MethodOptions& options) {
  arguments.option("--tolerance", "E", options.tolerance, "stop at |y - H x| <= E |y|");
  arguments.option("--max-iterations", "I", options.max_iterations, "iterations at most");
  arguments.bytes("--memory", options.memory,
                  "memory to stay inside, as 8G or 500M\n[default: 80 % of what is free]");
  arguments.option("--seed", "S", options.seed, "same seed, same bits");
}

void add_method_options(Arguments& arguments, models::MethodOptions& options, bool with_mean) {
  arguments.group("Model (values are on standardised data unless --no-standardize)");
  arguments.option("--kernel", "SPEC", options.kernel,
                   "kernel, with one lengthscale per input; rbf:iso for\n"
                   "one in all; sums and products: \"matern52 + linear\";\n"
                   "of some inputs only: \"matern32(x,y) * matern12(t)\"");
  arguments.list("--lengthscale", "L", options.lengthscale,
                 "lengthscale, or one per input: 0.5,2,1");
  arguments.option("--signal-variance", "V", options.signal_variance, "variance of the signal");
  arguments.option("--noise", "V", options.noise, "variance of the noise");
  if (with_mean) arguments.option("--mean", "KIND", options.mean, "zero | constant | linear");

  arguments.group("Method");
  arguments.option("--operator", "NAME", options.op, "auto | tiled | stored: how K v is computed");
  arguments.option("--precision", "NAME", options.precision, "auto | double | mixed | single");
  arguments.option("--solver", "NAME", options.solver,
                   fmt::format("{}", fmt::join(planning::solver_names(), " | ")));
  arguments.option("--preconditioner", "NAME", options.preconditioner,
                   fmt::format("{}", fmt::join(planning::preconditioner_names(), " | ")));
  add_preconditioning_options(arguments, options);
  add_limit_options(arguments, options);
  arguments.appendix("Kernels", planning::describe_kernels());
  arguments.appendix("Solvers", planning::describe_solvers());
  arguments.appendix("Preconditioners", planning::describe_preconditioners());
}

void add_train_options(Arguments& arguments, models::TrainOptions& options) {
  arguments.group("Learning");
  arguments.option("--train", "HOW", options.train,
                   "auto | lbfgs | newton | adam | adagrad | vecchia | none (keep the\n"
                   "given hyperparameters). Above a few thousand rows gradients come\n"
                   "from solves: lbfgs corrects the Vecchia likelihood by them, newton\n"
                   "(not for Gaussian noise) the curvature of fewer rows, adam and\n"
                   "adagrad follow them, vecchia does without");
  arguments.option("--steps", "I", options.steps,
                   "steps at most, per start [default: 100; 40 of adam and adagrad\nwith a "
                   "likelihood that is not Gaussian]");
  arguments.option("--restarts", "R", options.restarts, "random starts beside the first");
  arguments.option("--subset", "M", options.subset,
                   "rows to learn hyperparameters on\n[default: planned]");
  arguments.option("--probes", "T", options.probes,
                   "by solves: right-hand sides that traces are estimated from");
  arguments.option("--probe-kind", "NAME", options.probe_kind,
                   "auto | control | preconditioned | pathwise | rademacher |\n"
                   "gaussian: how they are drawn; auto is control");
}

void refuse_train_options(const Arguments& arguments, const std::vector<std::string>& names,
                          const std::string& why) {
  for (const auto& name : names)
    if (arguments.given(name))
      throw InvalidArgument(fmt::format("{}, so {} has no meaning; leave it out", why, name));
}

bool asks_for_numbers(const Arguments& arguments) {
  return arguments.given("--noise") || arguments.given("--noise-column");
}

void refuse_gaussian_options(const Arguments& arguments, const std::string& why) {
  refuse_train_options(arguments, {"--noise", "--noise-column", "--no-merge", "--probe-kind"}, why);
}

}  // namespace mercer::cli
