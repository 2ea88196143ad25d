// How learning went, in words.
#pragma once

#include <optional>
#include <string>

#include "cli/arguments.hpp"
#include "cli/console.hpp"
#include "mercer/models/names.hpp"
#include "mercer/training/report.hpp"

namespace mercer::cli {

/// "12 gradients by solves, 5 of them from the checkpoint", with this noun and what follows it; on
/// which rows, where they are not all the same.
std::string gradients_text(const models::TrainReport& training, const char* noun,
                           const char* after = "");
/// What the last gradient says is left to gain, and how much of that is noise, or nothing. When it
/// was not one of all `rows`, what there is to gain on those is not known, and that is said.
std::string gain_text(const models::TrainReport& training, Index rows, const char* of);
/// That the budget of products has ended learning, or nothing.
std::string budget_text(const models::TrainReport& training, std::optional<Index> budget);
/// A line about parameters that learning would have taken further, or nothing.
std::string bounds_text(const models::TrainReport& training);

/// Prints notes and warnings: options that had no effect, gradients that are not to be trusted, a
/// search that ended before a maximum.
void tell_learning(const Arguments& arguments, const models::Plan& plan,
                   const models::TrainReport& training, const Console& console);

}  // namespace mercer::cli
