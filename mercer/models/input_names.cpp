#include "mercer/models/input_names.hpp"

namespace mercer::models {

kernels::InputNames input_names(const data::Schema& schema) {
  kernels::InputNames out{schema.dimension(), {}};
  Index first = 0;
  for (const auto& column : schema.inputs) {
    out.entries.push_back({column.name, first, column.width()});
    first += column.width();
  }
  const auto encoded = schema.encoded_names();
  Index place = 0;
  for (const auto& column : schema.inputs)
    for (Index level = 0; level < column.width(); ++level, ++place)
      if (column.categorical || level > 0)
        out.entries.push_back({encoded[static_cast<std::size_t>(place)], place, 1});
  return out;
}

}  // namespace mercer::models
