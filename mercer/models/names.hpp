// The types of other rooms that are part of the interface of models, under its name.
#pragma once

#include "mercer/inference/posterior.hpp"
#include "mercer/planning/options.hpp"
#include "mercer/planning/plan.hpp"
#include "mercer/training/options.hpp"
#include "mercer/training/report.hpp"

MERCER_API_BEGIN
namespace mercer::models {

using inference::Certificate;
using inference::LatentFunction;
using inference::LikelihoodValue;
using planning::ApproximationOptions;
using planning::MethodOptions;
using planning::Plan;
using planning::PlanFor;
using planning::PlanRow;
using planning::VarianceOptions;
using training::TrainOptions;
using training::TrainReport;
using training::TrainStep;

}  // namespace mercer::models
MERCER_API_END
