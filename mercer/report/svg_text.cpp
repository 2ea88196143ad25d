#include "mercer/report/svg_text.hpp"

#include <fmt/format.h>

namespace mercer::report {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string svg_text(double x, double y, const std::string& what, const std::string& style) {
  return fmt::format("<text x=\"{:g}\" y=\"{:g}\" {}>{}</text>\n", x, y, style, escaped(what));
}

}  // namespace mercer::report
