// What predict, evaluate and fit share about standard deviations: how good they are, in words and
// as JSON.
#pragma once

#include "cli/record.hpp"
#include "mercer/models/predictor.hpp"

namespace mercer::cli {

struct VarianceRecord {
  std::string method = "none";
  std::optional<double> bound = 0.0;  // largest sd_error_bound; unset when approximate
  std::optional<models::SdError> error;
  /// Largest standard error of probabilities found by random numbers; unset: it is not known.
  std::optional<double> probability_error = 0.0;
  bool of_logarithm = false;  // standard deviations are those of log y

  /// A block of a stream; what was measured on it is for the end of the stream.
  void add(const models::Predictions& predictions);
};

/// A sentence about approximate variances, and the same as lines of a text; nothing is said of
/// exact ones.
std::string variances_sentence(const VarianceRecord& record);
std::string variances_text(const VarianceRecord& record);
/// variance, sd_error_bound, probability_standard_error where it is not zero, and for approximate
/// ones what was measured on how many rows (sd_error and its kin), the confidence of that, and how
/// accurate the check itself was.
void put_variances(Json& json, const VarianceRecord& record);

}  // namespace mercer::cli
