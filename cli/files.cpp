#include "cli/files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "mercer/core/atomic_file.hpp"
#include "mercer/core/error.hpp"

namespace mercer::cli {
namespace fs = std::filesystem;

bool same_file(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code unknown;
  if (fs::equivalent(a, b, unknown)) return true;  // files that exist, links too
  const auto first = fs::weakly_canonical(a, unknown), second = fs::weakly_canonical(b, unknown);
  return a == b || (!unknown && fs::absolute(first, unknown) == fs::absolute(second, unknown));
}

void check_output(const std::string& option, const std::string& path,
                  const std::vector<std::string>& inputs) {
  if (path == "-") return;
  std::error_code ignored;
  for (const auto& input : inputs)
    if (input != "-" && same_file(path, input))
      throw InvalidArgument(
          fmt::format("{} '{}' is the file that is being read; name another one", option, path));
  if (fs::exists(path, ignored) && fs::is_other(path, ignored)) return;  // /dev/null, a pipe
  try {
    const AtomicFile probe(path);  // leaves nothing behind
  } catch (const IoError& error) {
    throw InvalidArgument(fmt::format("{}: {}", option, error.what()));
  }
}

void check_output_file(const std::string& option, const std::string& path,
                       const std::vector<std::string>& inputs) {
  std::error_code ignored;
  if (path == "-" || (fs::exists(path, ignored) && fs::is_other(path, ignored)))
    throw InvalidArgument(
        fmt::format("{} '{}': this file cannot be a stream or device; name an "
                    "ordinary file",
                    option, path));
  check_output(option, path, inputs);
}

std::string replaced_model_note(const std::string& option, const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || info.st_size == 0) return "";
  constexpr std::string_view magic = "MERCER\r\n";  // docs/model-file.md
  std::array<char, magic.size()> first{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(first.data(), first.size()) ||
      std::string_view(first.data(), first.size()) != magic)
    throw InvalidArgument(
        fmt::format("{} '{}' is there already and no model file; name another file, or "
                    "remove it first",
                    option, path));
  std::tm local{};
  std::array<char, 32> date{};
  if (localtime_r(&info.st_mtime, &local) != nullptr)
    std::strftime(date.data(), date.size(), "%Y-%m-%d %H:%M", &local);
  return fmt::format("'{}' is there already, a model written on {}: this run replaces it", path,
                     date.data());
}

std::vector<std::string> fallback_paths(const std::string& path) {
  std::error_code ignored;
  std::vector<fs::path> folders = {fs::temp_directory_path(ignored), fs::current_path(ignored)};
  if (const char* home = std::getenv("HOME"); home != nullptr) folders.emplace_back(home);
  const fs::path name = fs::path(path).filename();
  std::vector<std::string> out;
  for (const auto& folder : folders) {
    if (folder.empty()) continue;
    fs::path other = folder / name;
    for (int i = 1; fs::exists(other, ignored); ++i)
      other = folder / fmt::format("{}-{}{}", name.stem().string(), i, name.extension().string());
    out.push_back(other.string());
  }
  return out;
}

std::string default_model_path(const std::string& data_path) {
  if (data_path == "-") return "model.mcr";
  fs::path name = fs::path(data_path).filename();
  if (name.extension() == ".gz") name = name.stem();
  if (const auto end = name.extension(); end == ".csv" || end == ".txt" || end == ".tsv")
    name = name.stem();
  return name.string() + ".mcr";
}

}  // namespace mercer::cli
