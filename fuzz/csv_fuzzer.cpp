// libFuzzer entry for the CSV reader, the data set, the schema and the predict stream. The first
// byte picks options, the rest is the file (gzip if it starts like gzip) or, for some, a schema in
// JSON. Any mercer::Error is a fine answer; crashes, other exceptions and broken promises are not.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "mercer/core/error.hpp"
#include "mercer/data/csv_reader.hpp"
#include "mercer/data/data_json.hpp"
#include "mercer/data/dataset.hpp"
#include "mercer/data/predict_stream.hpp"

namespace {

using namespace mercer;

void require(bool holds) {
  if (!holds) std::abort();
}

data::CsvReader reader_of(const std::string& text, std::size_t buffer_bytes, bool comma) {
  data::CsvOptions options{.buffer_bytes = buffer_bytes, .max_row_bytes = std::size_t{1} << 20};
  if (comma) options.separator = ',';  // without a guess, which makes the buffer large
  return data::CsvReader(data::ByteSource::from_memory(text), options);
}

/// A hostile model file: only ModelFileError may come out.
void try_json(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) return;
  try {
    json.get<data::Schema>().encoded_names();
  } catch (const ModelFileError&) {
  }
  try {
    json.get<data::Scaling>();
  } catch (const ModelFileError&) {
  }
}

/// What was read for fitting must be read again, with the kept schema, through any block size.
void check_stream(const std::string& text, const data::Dataset& set, bool drop_missing,
                  bool comma) {
  const auto json = nlohmann::json::parse(nlohmann::json(set.schema).dump());
  const auto schema = json.get<data::Schema>();
  require(schema == set.schema);
  data::PredictStream stream(reader_of(text, 16, comma), schema,
                             {.target = data::TargetUse::required, .drop_missing = drop_missing});
  data::RowBlock block;
  Index row = 0;
  while (stream.next(block, 3)) {
    require(row + block.rows() <= set.size());
    for (Index i = 0; i < block.rows(); ++i, ++row) {
      require(block.target[i] == set.target[row]);
      for (Index j = 0; j < set.dimension(); ++j) require(block.inputs(i, j) == set.inputs(row, j));
    }
  }
  require(row == set.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const unsigned choice = bytes[0];
  const std::string text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  if ((choice & 15U) == 15U) {
    try_json(text);
    return 0;
  }
  try {
    data::DataOptions options;
    options.drop_missing = (choice & 1U) != 0;
    if ((choice & 16U) != 0 && !options.drop_missing)
      options.impute = (choice & 32U) != 0 ? "level" : "median";
    const bool comma = (choice & 64U) != 0;
    data::CsvReader reader = reader_of(text, (choice & 2U) != 0 ? 8 : 4096, comma);
    if ((choice & 4U) != 0) options.categorical.push_back(reader.header().front());
    if ((choice & 8U) != 0) options.categorical.push_back(reader.header().back());
    const data::Dataset set = data::read_dataset(reader, options);
    require(set.inputs.allFinite() && set.target.allFinite());
    require(set.schema.dimension() == set.dimension());
    Matrix scaled = set.inputs;
    set.scaling.scale_inputs(scaled);
    require(scaled.allFinite());
    // A row dropped for a missing value in a column that turned out constant comes back here.
    if (set.rows_dropped_missing > 0 && !set.schema.dropped_constant.empty()) return 0;
    try {
      check_stream(text, set, options.drop_missing, comma);
    } catch (const Error&) {
      require(false);  // what could be fitted can be predicted
    }
  } catch (const Error&) {
  }
  return 0;
}
