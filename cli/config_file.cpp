#include "cli/config_file.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/option_list.hpp"
#include "cli/suggest.hpp"

namespace mercer::cli {
namespace {

Json parse_file(const std::string& path) {
  std::ifstream file(path);
  if (!file || std::filesystem::is_directory(path))
    throw InvalidArgument(fmt::format("`config`: the file '{}' cannot be read", path));
  constexpr std::size_t most = std::size_t{64} << 20;  // records hold the steps of learning
  std::string text(most + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > most)
    throw InvalidArgument(fmt::format(
        "`config`: '{}' is larger than 64 MB, which no list of options is; name a JSON file",
        path));
  Json json;
  std::string where;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    const auto before = static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    where = fmt::format(" (it cannot be read at line {})",
                        1 + std::count(text.begin(), text.begin() + before, '\n'));
  }
  if (!json.is_object())
    throw InvalidArgument(
        fmt::format("{}: this is no JSON object{}; write options as {{\"kernel\": "
                    "\"rbf\", \"noise\": 0.1}}",
                    path, where));
  return json;
}

}  // namespace

ConfigRead read_config(const std::string& path, const std::string& verb,
                       const std::vector<Option>& options) {
  const Json file = parse_file(path);
  const bool whole = file.contains("options") && file["options"].is_object();
  ConfigRead out;
  for (const auto& item : (whole ? file["options"] : file).items()) {
    const std::string& name = item.key();
    const Json& value = item.value();
    const auto found = std::find_if(options.begin(), options.end(),
                                    [&](const Option& option) { return option.name == name; });
    if (found == options.end() || name == "config") {
      if (const Option* other = find_option(name); whole && other != nullptr) {
        if (!value.is_null() && value != other->json())
          out.notes.push_back(
              fmt::format("{}: '{}' is no option of {} and is left out", path, name, verb));
        continue;
      }
      std::vector<std::string> names;
      for (const auto& option : options)
        if (option.name != "config") names.push_back(option.name);
      throw InvalidArgument(
          fmt::format("{}: {} has no option '{}'{}", path, verb, name, did_you_mean(name, names)));
    }
    const Json before = found->json();
    try {
      found->read(value);
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: '{}' {}", path, name, error.what()));
    }
    try {
      found->check();
    } catch (const InvalidArgument& error) {
      throw InvalidArgument(fmt::format("{}: {}", path, error.what()));
    }
    if (found->json() != before) out.given.insert(name);
  }
  return out;
}

}  // namespace mercer::cli
