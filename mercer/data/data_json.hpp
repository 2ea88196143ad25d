// Schema and scaling as JSON, for model files. Internal: the installed headers do not need the JSON
// library.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "mercer/data/scaling.hpp"
#include "mercer/data/schema.hpp"

namespace mercer::data {

void to_json(nlohmann::json& json, const Schema& schema);
/// Throws ModelFileError, naming the field, on anything that is not a usable schema.
void from_json(const nlohmann::json& json, Schema& schema);

void to_json(nlohmann::json& json, const Scaling& scaling);
/// Throws ModelFileError unless sizes agree, all is finite and deviations are positive.
void from_json(const nlohmann::json& json, Scaling& scaling);

}  // namespace mercer::data
