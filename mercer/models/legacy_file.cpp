#include "mercer/models/legacy_file.hpp"

#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/models/model_parts.hpp"

namespace mercer::models {
namespace {

void upgrade_regression(data::ArrayFile& file) {
  auto& header = file.header;
  if (header.at("task") != "regression")
    throw ModelFileError("its task is not regression with Gaussian noise");
  // Version 2 has a noise for each row; the version itself is under no checksum.
  if (header.at("noise").is_null() != (file.version == 2))
    throw ModelFileError("its format version does not agree with its noise");
  const Matrix old = take(file, "certificate", 4, 1);
  // Files of the first programs know one noise for all rows, and no residual against it.
  double residual = 0;
  if (header.contains("weighted_residual"))
    residual = header.at("weighted_residual").get<double>();
  else if (!header.at("noise").is_null())
    residual = old(1) / std::sqrt(header.at("noise").get<double>());
  else
    throw ModelFileError("its certificate does not count its noise");
  header["certificate"] = {{"relative_residual", old(0)},
                           {"residual_norm", old(1)},
                           {"trend_defect", old(2)},
                           {"mean_error_bound", old(3)},
                           {"trend_residual", header.value("trend_residual", 0.0)}};
  header["likelihood"] = "gaussian";
  header["classes"] = header["class_values"] = nlohmann::json::array();
  header["mean_only"] = header.value("mean_only", false);
  if (!header.contains("trend_left_out")) header["trend_left_out"] = nlohmann::json::array();
  file.arrays["residual"] = Matrix::Constant(1, 1, residual);
  file.arrays["offset"] = Matrix::Zero(1, 1);
}

void upgrade_likelihood(data::ArrayFile& file) {
  auto& header = file.header;
  const auto task = header.at("task").get<std::string>();
  if (task != "classification" && task != "likelihood")
    throw ModelFileError("its format version does not agree with its likelihood");
  header["task"] = task == "classification" ? task : "regression";
  header["mean"] = "zero";
  header["trend_left_out"] = nlohmann::json::array();
  header["mean_only"] = header.at("map_only");
  header["noise"] = nullptr;
  header["certificate"] = {{"mean_error_bound", header.at("mean_error_bound")},
                           {"relative_residual", 0.0},
                           {"residual_norm", 0.0},
                           {"trend_defect", 0.0},
                           {"trend_residual", 0.0}};
}

}  // namespace

data::ArrayFile upgraded(data::ArrayFile old) {
  if (old.version < 3)
    upgrade_regression(old);
  else if (old.version == 3)
    upgrade_likelihood(old);
  old.version = kModelVersion;
  return old;
}

}  // namespace mercer::models
