// Small files and messages for the tests of the data room.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <iterator>
#include <string>

#include "mercer/core/error.hpp"
#include "mercer/data/csv_reader.hpp"
#include "mercer/data/dataset.hpp"
#include "tests/testing/temporary_folder.hpp"

namespace mercer::testing {

inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string gzipped(const std::string& text) {
  z_stream z = {};
  deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

inline data::CsvReader csv(const std::string& text, data::CsvOptions options = {}) {
  return data::CsvReader(data::ByteSource::from_memory(text, "test.csv"), options);
}

/// The message of the exception of type E that `action` throws.
template <class E = DataError, class Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return {};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// The data set of a file with this text.
inline data::Dataset load(const std::string& text, const data::DataOptions& options = {}) {
  auto reader = csv(text);
  return data::read_dataset(reader, options);
}

/// Why there is none.
template <class E = DataError>
std::string failure(const std::string& text, const data::DataOptions& options = {}) {
  return message_of<E>([&] { load(text, options); });
}

inline void expect_contains(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

}  // namespace mercer::testing
