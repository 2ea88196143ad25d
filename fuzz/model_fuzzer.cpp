// Any bytes are either refused with ModelFileError or are a whole model. Checksums would stop
// nearly every mutation at the door, so half of the inputs are sealed first: the checksums and
// sizes of a mutated file are made right, and the reader behind them is tried.
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mercer/core/checksum.hpp"
#include "mercer/core/error.hpp"
#include "mercer/data/array_file.hpp"
#include "mercer/models/kernel_machine.hpp"

namespace {

constexpr std::size_t kPreamble = 32;

template <class T>
void put(std::string& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

// The number of doubles of an array entry, 0 when it makes no sense.
std::size_t count_of(const nlohmann::json& entry) {
  if (!entry.is_object()) return 0;
  const auto rows = entry.find("rows");
  const auto columns = entry.find("columns");
  if (rows == entry.end() || columns == entry.end() || !rows->is_number_unsigned() ||
      !columns->is_number_unsigned())
    return 0;
  const auto r = rows->get<std::uint64_t>();
  const auto c = columns->get<std::uint64_t>();
  return r < 10000 && c < 10000 ? r * c : 0;
}

// input = JSON header, a zero byte, array bytes -> a file with the right sizes and checksums.
std::string sealed(const char* data, std::size_t size, std::uint32_t version) {
  const void* zero = std::memchr(data, 0, size);
  const std::size_t header_size =
      zero == nullptr ? size : static_cast<std::size_t>(static_cast<const char*>(zero) - data);
  std::string arrays(data + header_size, size - header_size);
  if (!arrays.empty()) arrays.erase(0, 1);
  auto header = nlohmann::json::parse(data, data + header_size, nullptr, false);
  std::string text(data, header_size);
  if (header.is_object() && header.contains("arrays") && header["arrays"].is_array()) {
    std::size_t offset = 0;
    for (auto& entry : header["arrays"]) {
      const std::size_t bytes = count_of(entry) * sizeof(double);
      if (arrays.size() < offset + bytes) arrays.resize(offset + bytes, '?');
      if (entry.is_object()) entry["crc32"] = mercer::crc32(arrays.data() + offset, bytes);
      offset += bytes;
    }
    arrays.resize(offset);
    text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  std::string file(kPreamble, '\0');
  std::memcpy(file.data(), "MERCER\r\n", 8);
  put(file, 8, version);
  put(file, 16, static_cast<std::uint64_t>(kPreamble + text.size() + arrays.size()));
  put(file, 24, static_cast<std::uint64_t>(text.size()));
  file += text;
  put(file, 12, mercer::crc32(file.data() + 16, file.size() - 16));
  return file + arrays;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const bool seal = data[0] % 2 == 1;
  const auto* text = reinterpret_cast<const char*>(data) + 1;
  const std::uint32_t version = 1 + data[0] / 2 % 4;
  const std::string bytes = seal ? sealed(text, size - 1, version) : std::string(text, size - 1);
  try {
    const std::vector<unsigned char> copy(bytes.begin(), bytes.end());  // exact bounds for ASan
    auto file = mercer::data::parse_array_file(copy, "fuzz", "model");
    mercer::models::KernelMachine::from_file(std::move(file), "fuzz");
  } catch (const mercer::ModelFileError&) {  // refused with a sentence: fine
  }
  return 0;
}
