#include "cli/variances.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/format.hpp"

namespace mercer::cli {
namespace {

// The larger of two bounds; there is none where one is missing.
void raise(std::optional<double>& bound, const std::optional<double>& other) {
  if (bound && other)
    bound = std::max(*bound, *other);
  else
    bound.reset();
}

}  // namespace

void VarianceRecord::add(const models::Predictions& predictions) {
  raise(bound, predictions.sd_error_bound);
  raise(probability_error, predictions.probability_error);
}

std::string variances_sentence(const VarianceRecord& record) {
  if (record.bound) return "";
  if (record.method == "exact")
    return "are those of exact solves; their rounding is not bounded for coupled functions";
  std::string text = record.method == "vecchia"
                         ? "are given the most correlated training points only: rather too large"
                         : "are those of draws from the posterior";
  if (record.error)
    text += fmt::format("; on {} {} is within {} of the exact one (rms {}; at most {} % of it)",
                        plural(record.error->rows, "random row"),
                        record.of_logarithm ? "the sd of f, the logarithm," : "sd_latent",
                        number(record.error->largest, 2), number(record.error->rms, 2),
                        number(100 * record.error->largest_relative, 2));
  else
    text += "; their error was not measured";
  return text;
}

std::string variances_text(const VarianceRecord& record) {
  const auto sentence = variances_sentence(record);
  return sentence.empty() ? "" : fmt::format("Variances    {}\n", wrapped(sentence, 13));
}

void put_variances(Json& json, const VarianceRecord& record) {
  json["variance"] = record.method;
  if (!record.probability_error) {
    json["probability_standard_error"] = nullptr;
    json["probability_standard_error_reason"] = "a mean-field formula, whose error is not known";
  } else if (*record.probability_error > 0) {
    put(json, "probability_standard_error", *record.probability_error);
  }
  if (record.method == "none") return;
  if (record.of_logarithm) json["sd_error_of"] = "the logarithm of the target";
  if (record.bound) {
    put(json, "sd_error_bound", *record.bound);
    return;
  }
  json["sd_error_bound"] = nullptr;
  if (record.method == "exact") {
    json["sd_error_bound_reason"] = "not known for functions that the likelihood couples";
    return;
  }
  json["sd_error_bound_reason"] = "approximate variances have a measured error, sd_error, instead";
  json["sd_error_rows"] = record.error ? record.error->rows : 0;
  if (record.error) {
    put(json, "sd_error", record.error->largest);
    put(json, "sd_error_rms", record.error->rms);
    put(json, "sd_error_relative", record.error->largest_relative);
  } else {
    json["sd_error"] = nullptr;
    json["sd_error_reason"] = "`check_rows=0`: not measured";
  }
}

}  // namespace mercer::cli
