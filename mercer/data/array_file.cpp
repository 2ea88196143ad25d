#include "mercer/data/array_file.hpp"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "mercer/core/atomic_file.hpp"
#include "mercer/core/checksum.hpp"
#include "mercer/core/error.hpp"
#include "mercer/core/version.hpp"

namespace mercer::data {
namespace {

static_assert(std::endian::native == std::endian::little,
              "array files are little-endian; a big-endian host needs byte swaps here");

constexpr std::array<char, 8> kMagic = {'M', 'E', 'R', 'C', 'E', 'R', '\r', '\n'};
constexpr std::uint32_t kVersion = 7;
constexpr std::size_t kPreamble = 32;

template <class T>
T load(std::span<const unsigned char> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <class T>
void store(std::string& out, std::size_t offset, T value) {
  std::memcpy(out.data() + offset, &value, sizeof(T));
}

std::size_t byte_size(const Matrix& m) {
  return static_cast<std::size_t>(m.size()) * sizeof(double);
}

}  // namespace

void write_array_file(const std::string& path, const ArrayFile& file) {
  nlohmann::json header = file.header;
  header["arrays"] = nlohmann::json::array();
  std::size_t array_bytes = 0;
  for (const auto& [name, array] : file.arrays) {
    header["arrays"].push_back({{"name", name},
                                {"rows", array.rows()},
                                {"columns", array.cols()},
                                {"crc32", crc32(array.data(), byte_size(array))}});
    array_bytes += byte_size(array);
  }
  const std::string text = header.dump();

  std::string front(kPreamble, '\0');
  std::memcpy(front.data(), kMagic.data(), kMagic.size());
  store(front, 8, file.version);
  store(front, 16, static_cast<std::uint64_t>(kPreamble + text.size() + array_bytes));
  store(front, 24, static_cast<std::uint64_t>(text.size()));
  front += text;
  store(front, 12, crc32(front.data() + 16, front.size() - 16));

  AtomicFile out(path);
  out.write(front);
  for (const auto& [name, array] : file.arrays) out.write(array.data(), byte_size(array));
  out.commit();
}

ArrayFile parse_array_file(std::span<const unsigned char> bytes, std::string_view name,
                           std::string_view kind) {
  const auto refuse = [&](const std::string& why) {
    throw ModelFileError(fmt::format("'{}' {}", name, why));
  };
  if (bytes.size() < kMagic.size() || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    refuse(fmt::format("is not a mercer {} file", kind));
  if (bytes.size() < kPreamble) refuse("is truncated: not even its preamble is whole");
  if (const auto file_version = load<std::uint32_t>(bytes, 8); file_version > kVersion)
    refuse(fmt::format(
        "has format version {}, of a newer mercer; this one ({}) reads up to version {}: update it",
        file_version, version(), kVersion));
  else if (file_version == 0)
    refuse("is damaged: its format version is 0");
  const auto size = load<std::uint64_t>(bytes, 16);
  const auto header_size = load<std::uint64_t>(bytes, 24);
  if (size > bytes.size())
    refuse(fmt::format("is truncated: {} of {} bytes are there", bytes.size(), size));
  if (size < bytes.size() || header_size > bytes.size() - kPreamble)
    refuse("is damaged: its sizes do not agree");
  if (crc32(bytes.data() + 16, kPreamble - 16 + header_size) != load<std::uint32_t>(bytes, 12))
    refuse("is damaged: the checksum of its header does not match");

  ArrayFile file;
  file.version = load<std::uint32_t>(bytes, 8);
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + kPreamble;
  file.header =
      nlohmann::json::parse(text, text + header_size, nullptr, /*allow_exceptions=*/false);
  if (!file.header.is_object() || !file.header.contains("arrays") || !file.header.contains("kind"))
    refuse("is damaged: its header is not what it should be");
  if (file.header["kind"] != kind)
    refuse(fmt::format("is a mercer {} file, not a {} file", file.header["kind"].dump(), kind));

  std::size_t offset = kPreamble + header_size;
  try {
    for (const auto& entry : file.header.at("arrays")) {
      const auto array_name = entry.at("name").get<std::string>();
      const auto rows = entry.at("rows").get<std::uint64_t>();
      const auto columns = entry.at("columns").get<std::uint64_t>();
      const std::size_t left = (bytes.size() - offset) / sizeof(double);
      constexpr std::uint64_t limit = std::uint64_t{1}
                                      << 40;  // keeps an empty array's other side sane
      if (rows > limit || columns > limit || (columns > 0 && rows > left / columns))
        refuse(fmt::format("is damaged: array '{}' is larger than the file", array_name));
      Matrix array(static_cast<Index>(rows), static_cast<Index>(columns));
      if (byte_size(array) > 0) std::memcpy(array.data(), bytes.data() + offset, byte_size(array));
      if (crc32(array.data(), byte_size(array)) != entry.at("crc32").get<std::uint32_t>())
        refuse(fmt::format("is damaged: the checksum of array '{}' does not match", array_name));
      offset += byte_size(array);
      file.arrays.emplace(array_name, std::move(array));
    }
  } catch (const nlohmann::json::exception&) {
    refuse("is damaged: its list of arrays cannot be read");
  }
  if (offset != bytes.size()) refuse("is damaged: bytes are left over at its end");
  return file;
}

ArrayFile read_array_file(const std::string& path, std::string_view kind) {
  std::error_code unknown;  // of a path that cannot be looked at; opening it says why
  if (std::filesystem::is_directory(path, unknown))
    throw IoError(fmt::format("cannot read '{}': it is a folder", path));
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) throw IoError(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  std::vector<unsigned char> bytes(static_cast<std::size_t>(in.tellg()));
  in.seekg(0);
  if (!in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
    throw IoError(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  return parse_array_file(bytes, path, kind);
}

}  // namespace mercer::data
