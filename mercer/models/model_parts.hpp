// What the files and checkpoints of all models have in common.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "mercer/core/error.hpp"
#include "mercer/data/array_file.hpp"
#include "mercer/inference/choice.hpp"
#include "mercer/models/names.hpp"

namespace mercer::models {

nlohmann::json method_json(const MethodOptions& method);
MethodOptions method_from_json(const nlohmann::json& json);

/// Everything that steers solves, as text: part of what a checkpoint must agree in.
std::string identity_of(inference::SystemChoice choice);

/// An array out of a file; throws ModelFileError unless it has this shape and is finite.
Matrix take(data::ArrayFile& file, const char* name, Index rows, Index columns);

/// read(), with whatever it stumbles over said to be damage of the file `name`.
template <class Read>
auto undamaged(const std::string& name, Read&& read) {
  const auto damage = [&](const std::exception& error) {
    // The JSON library begins its sentences with a code of its own: "[json.exception.x.403] ".
    std::string_view text = error.what();
    if (text.starts_with("[json.")) text.remove_prefix(std::min(text.find("] ") + 2, text.size()));
    return ModelFileError(fmt::format("'{}' is damaged: {}", name, text));
  };
  try {
    return read();
  } catch (const nlohmann::json::exception& error) {
    throw damage(error);
  } catch (const ModelFileError& error) {
    throw damage(error);
  } catch (const InvalidArgument& error) {
    throw damage(error);
  }
}

}  // namespace mercer::models
