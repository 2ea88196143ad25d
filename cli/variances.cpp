#include "cli/variances.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/approximation.hpp"
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

// What was measured, how sure that is of the other rows, and how accurate the check itself was.
std::string measured(const models::SdError& error, bool of_logarithm) {
  std::string text = fmt::format(
      "on {} {} is within {} of the exact one (rms {}; at most {} % of it)",
      plural(error.rows, "random row"), of_logarithm ? "the sd of f, the logarithm," : "sd_latent",
      number(error.largest, 2), number(error.rms, 2), number(100 * error.largest_relative, 2));
  const auto exceeded = error.exceeded();
  if (exceeded.one_in > 0)
    text += fmt::format(
        "; fewer than 1 row in {} is off by more, with {:.0f} % confidence (--check-rows for more)",
        exceeded.one_in, std::floor(100 * exceeded.confidence));
  if (error.check_error > 0)
    text += fmt::format("; the check itself, {}, may be off by {}",
                        plural(error.matvecs, "product"), number(error.check_error, 2));
  return text;
}

}  // namespace

void VarianceRecord::add(const models::Predictions& predictions) {
  raise(bound, predictions.sd_error_bound);
  raise(probability_error, predictions.probability_error);
}

std::string variances_sentence(const VarianceRecord& record) {
  if (record.bound || record.method == "none") return "";
  if (is_approximation(record.method))
    return fmt::format(
        "are those of {}, an approximation; see the certificate of the fit for their distance from "
        "the exact ones",
        record.method);
  if (record.method == "exact")
    return "are those of exact solves; their rounding is not bounded for coupled functions";
  std::string text = record.method == "vecchia"
                         ? "are given the most correlated training points only: rather too large"
                         : "are those of draws from the posterior";
  if (record.error)
    text += "; " + measured(*record.error, record.of_logarithm);
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
  if (is_approximation(record.method)) {
    json["sd_error_bound_reason"] = "the variances are those of an approximation";
    return;
  }
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
    const auto exceeded = record.error->exceeded();
    put(json, "sd_error_exceeded_share",
        exceeded.one_in > 0 ? 1 / static_cast<double>(exceeded.one_in) : 0.0);
    put(json, "sd_error_confidence", exceeded.confidence);
    put(json, "sd_error_check_error", record.error->check_error);
    put(json, "sd_error_check_bound", record.error->check_bound);
    json["sd_error_check_matvecs"] = record.error->matvecs;
  } else {
    json["sd_error"] = nullptr;
    json["sd_error_reason"] = "`check_rows=0`: not measured";
  }
}

}  // namespace mercer::cli
