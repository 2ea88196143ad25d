#include "cli/option.hpp"

#include <algorithm>

namespace mercer::cli {

std::string Option::flag() const {
  if (name.size() == 1) return "-" + name;
  std::string text = name;
  std::replace(text.begin(), text.end(), '_', '-');
  return (is_flag && on_by_default ? "--no-" : "--") + text;
}

std::string Option::text() const {
  std::string text = choices.empty() ? "" : fmt::format("{}: ", fmt::join(choices, " | "));
  text += (is_flag && on_by_default ? "do not " : "") + help;
  if (default_text.empty() || default_text == "none") return text;
  return fmt::format("{} [default: {}]", text, default_text);
}

}  // namespace mercer::cli
