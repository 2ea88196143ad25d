// Scores of numbers and of classes, in words and as JSON.
#pragma once

#include <string>

#include "cli/record.hpp"
#include "mercer/models/prediction_scores.hpp"

namespace mercer::cli {

std::string scores_text(const models::RegressionScores& scores);
std::string scores_text(const models::ClassificationScores& scores);
std::string scores_text(const models::Scores& scores);

Json scores_json(const models::RegressionScores& scores);
Json scores_json(const models::ClassificationScores& scores);
Json scores_json(const models::Scores& scores);

}  // namespace mercer::cli
