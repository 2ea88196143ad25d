#include "mercer/planning/approximation_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "mercer/core/count_text.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/memory.hpp"
#include "mercer/inference/inference.hpp"

namespace mercer::planning {
namespace {

const inference::InferenceInfo& approximate_entry(const std::string& name) {
  if (inference::methods().contains(name))
    if (const auto& entry = inference::methods().find(name); entry.abilities.approximate)
      return entry;
  throw InvalidArgument(fmt::format("'{}' is no approximation; there are: {}", name,
                                    fmt::join(approximation_names(), ", ")));
}

// Names of the approximations that can do something, for messages.
std::string names_with(bool inference::Abilities::*ability) {
  std::vector<std::string> names;
  for (const auto& entry : inference::methods())
    if (entry.abilities.approximate && entry.abilities.*ability) names.emplace_back(entry.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void check_without(const ApproximationOptions& options) {
  const auto refuse = [](const char* option, bool given) {
    if (given)
      throw InvalidArgument(fmt::format(
          "`{}` belongs to an approximation; name one with `method`, or leave it out", option));
  };
  refuse("base", options.base != "auto" || options.points.size() > 0);
  refuse("optimize_base", options.optimize_base);
  refuse("blocks_by", options.blocks_by != blocks_by_names().front());
  refuse("check_rows", options.check_rows.has_value());
  refuse("stream", options.stream != stream_choices().front());
  refuse("reservoir", options.reservoir.has_value());
}

// Rows that are read in passes never are in memory all at once.
void check_stream(const ApproximationOptions& options, const inference::InferenceInfo& entry) {
  const bool always = options.stream == "always", never = options.stream == "never";
  if (always && !entry.abilities.streams)
    throw InvalidArgument(
        fmt::format("`stream=always`: `method={}` needs all rows in memory; of the approximations "
                    "{} learn from rows in passes",
                    entry.name, streaming_names()));
  if (options.reservoir && (never || !entry.abilities.streams))
    throw InvalidArgument(fmt::format(
        "`reservoir` is the sample of rows that are read in passes, which {}; leave it out",
        never ? std::string("`stream=never` rules out")
              : fmt::format("`method={}` cannot do", entry.name)));
  if (always && options.check_rows)
    throw InvalidArgument(
        "`check_rows` compares with the exact posterior of all rows, which needs them in memory; "
        "with `stream=always` they are not: leave it out, or measure on a part of the rows with "
        "`stream=never`");
}

// Share of the room beside the program that a sample may take, and bytes for each of its numbers:
// as read, encoded, on the scale of the model, and the copy that is learned from.
constexpr double kSampleShare = 0.5, kSampleBytes = 40;
constexpr Index kMostReservoir = 100'000, kLeastReservoir = 1000;
// A block being read, one waiting, one at work, as text and numbers; and the buffer of the reader.
constexpr double kBlockRows = 4096, kBlockCopies = 5, kReaderBytes = 4e6;

}  // namespace

std::vector<std::string> approximation_names() {
  std::vector<std::string> names;
  for (const auto& entry : inference::methods())
    if (entry.abilities.approximate) names.emplace_back(entry.name);
  return names;
}

std::string moving_base_names() { return names_with(&inference::Abilities::optimizes_base); }

std::vector<std::string> stream_choices() { return {"auto", "always", "never"}; }

std::string streaming_names() { return names_with(&inference::Abilities::streams); }

double stream_bytes(Index d) {
  return kReaderBytes + 8 * kBlockCopies * kBlockRows * static_cast<double>(d + 2);
}

Index usual_reservoir(double budget, Index columns) {
  const double room = kSampleShare * std::max(0.0, budget - static_cast<double>(program_bytes));
  const double rows = room / (kSampleBytes * static_cast<double>(columns + 1));
  return static_cast<Index>(std::clamp<double>(rows, kLeastReservoir, kMostReservoir));
}

std::vector<std::string> blocks_by_names() {
  std::vector<std::string> names;
  for (const auto name : inference::blocks_by_names()) names.emplace_back(name);
  return names;
}

std::string describe_approximations() {
  std::string text;
  for (const auto& entry : inference::methods())
    if (entry.abilities.approximate) text += fmt::format("  {:<18}{}\n", entry.name, entry.summary);
  return text;
}

void check(const ApproximationOptions& options, const MethodOptions& method) {
  validate(options);
  if (!options.asked()) return check_without(options);
  const auto& entry = approximate_entry(options.method);
  const auto& can = entry.abilities;
  const auto refuse = [&](const char* option, bool given, const char* what, std::string names) {
    if (given)
      throw InvalidArgument(fmt::format("`{}`: `method={}` has no {}; it is for {}", option,
                                        entry.name, what, names));
  };
  refuse("base", !can.base && (options.base != "auto" || options.points.size() > 0), "base points",
         names_with(&inference::Abilities::base));
  refuse("rank", !can.base && method.preconditioning.rank, "base points",
         names_with(&inference::Abilities::base));
  refuse("blocks", !can.blocks && method.preconditioning.blocks, "blocks",
         names_with(&inference::Abilities::blocks));
  refuse("blocks_by", !can.blocks && options.blocks_by != blocks_by_names().front(), "blocks",
         names_with(&inference::Abilities::blocks));
  refuse("optimize_base", !can.optimizes_base && options.optimize_base,
         "gradient in its base points", moving_base_names());
  check_stream(options, entry);
  if (options.points.size() > 0 && method.preconditioning.rank)
    throw InvalidArgument(
        "`rank` is the number of rows of the file that `base` names; leave it out");
  const auto choices = inference::base_choices();
  if (options.points.size() == 0 &&
      std::find(choices.begin(), choices.end(), options.base) == choices.end())
    throw InvalidArgument(fmt::format("unknown `base` '{}'; there are: {}, or a CSV file",
                                      options.base, fmt::join(choices, ", ")));
}

MethodOptions without_base(MethodOptions method) {
  method.preconditioning.rank.reset();
  method.preconditioning.blocks.reset();
  return method;
}

inference::SparseSetup sparse_setup(const ApproximationOptions& options,
                                    const MethodOptions& method, Index rows) {
  inference::SparseSetup out;
  const auto within = [&](const char* option, const std::optional<Index>& value) {
    if (value && *value > rows)
      throw InvalidArgument(fmt::format("`{}` is {}, more than the {} there are", option,
                                        count_text(*value), plural(rows, "distinct row")));
    return value;
  };
  out.rank = within("rank", method.preconditioning.rank);
  out.blocks = within("blocks", method.preconditioning.blocks);
  if (options.points.size() == 0) out.base = options.base;
  out.points = options.points;
  out.blocks_by = inference::blocks_by(options.blocks_by);
  return out;
}

}  // namespace mercer::planning
