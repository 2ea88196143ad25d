// Results as JSON, the same wherever they appear. JSON has no NaN or infinity: such a value is
// null, and a field of its name with "_reason" says why.
#pragma once

#include <string>

#include "cli/option.hpp"
#include "mercer/data/dataset.hpp"
#include "mercer/models/hyperparameters.hpp"
#include "mercer/models/kernel_machine.hpp"
#include "mercer/models/names.hpp"
#include "mercer/training/report.hpp"

namespace mercer::cli {

void put(Json& json, const std::string& key, double value);
/// Prints the object on standard output; the last thing that a verb does with --json.
void print_json(const Json& json);

Json data_json(const data::Dataset& data, const std::string& path);
Json plan_json(const models::Plan& plan);
/// Original units at the top, "standardised" below.
Json hyperparameters_json(const inference::Problem& problem, const data::Scaling& scaling);
/// `names` are those of the parameters that the gradient is in the logarithms of; a likelihood is a
/// density, so it has units: those of the standardised or of the raw target.
Json likelihood_json(const inference::LikelihoodValue& likelihood,
                     const std::vector<std::string>& names, bool standardised);
Json certificate_json(const models::KernelMachine& model);
/// task, method, likelihood, classes, kernel and mean.
void put_model(Json& json, const models::KernelMachine& model);

/// The gradients that learning by solves took.
Json gradient_steps_json(const std::vector<models::TrainStep>& history);
/// How learning went: the names that every fit has.
void put_training(Json& json, const models::Plan& plan, const models::TrainReport& training);

/// How the system was solved: the names and counts that solve and fit share.
void put_method(Json& json, const models::Plan& plan, const preconditioners::BuildReport& built);
/// "stored" for Cholesky, which keeps the whole matrix, else the operator of the plan.
std::string operator_name(const inference::SystemChoice& choice);

}  // namespace mercer::cli
