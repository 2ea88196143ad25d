#include "mercer/report/line_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/report/svg_text.hpp"

namespace mercer::report {
namespace {

constexpr double kWidth = 900, kHeight = 560;
constexpr double kLeft = 84, kRight = 150, kTop = 74, kBottom = 64;

constexpr std::array<const char*, 12> kColours = {"#111111", "#1b6ca8", "#c0392b", "#27864f",
                                                  "#8e44ad", "#d9822b", "#16858a", "#7f6a3f",
                                                  "#e0559b", "#5b6ee1", "#7a9a01", "#777777"};

bool drawable(const ChartPoint& p) {
  return std::isfinite(p.x) && std::isfinite(p.y) && p.x > 0 && p.y > 0;
}

// A logarithmic axis over at least one decade.
struct Axis {
  double low = 0, high = 1;  // log10 of its ends
  double from = 0, to = 1;   // pixels

  double at(double value) const {
    return from + (std::log10(value) - low) / (high - low) * (to - from);
  }
};

Axis axis_over(double least, double most, double from, double to) {
  double low = std::log10(least), high = std::log10(most);
  const double beyond = std::max(0.06 * (high - low), 0.05);
  low -= beyond;
  high += beyond;
  if (high - low < 1) {
    const double middle = 0.5 * (low + high);
    low = middle - 0.5;
    high = middle + 0.5;
  }
  return {low, high, from, to};
}

// 1, 2 and 5 of each decade; of many decades the powers of ten alone.
std::vector<double> ticks(const Axis& axis) {
  std::vector<double> out;
  const bool fine = axis.high - axis.low < 2.5;
  for (int decade = static_cast<int>(std::floor(axis.low)); decade <= std::ceil(axis.high);
       ++decade)
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (!fine && factor > 1) continue;
      const double value = factor * std::pow(10.0, decade);
      if (std::log10(value) >= axis.low && std::log10(value) <= axis.high) out.push_back(value);
    }
  return out;
}

class ChartDrawing {
 public:
  explicit ChartDrawing(const LineChart& chart) : chart_(chart) {
    double least_x = HUGE_VAL, most_x = 0, least_y = HUGE_VAL, most_y = 0;
    for (const auto& line : chart.lines)
      for (const auto& p : line.points) {
        if (!drawable(p)) continue;
        least_x = std::min(least_x, p.x);
        most_x = std::max(most_x, p.x);
        least_y = std::min(least_y, p.y);
        most_y = std::max(most_y, p.y);
      }
    if (chart.mark && most_x > 0 && *chart.mark > 0) {
      least_x = std::min(least_x, *chart.mark);
      most_x = std::max(most_x, *chart.mark);
    }
    if (!(most_x > 0)) throw InvalidArgument("line chart: no line has a point");
    x_ = axis_over(least_x, most_x, kLeft, kWidth - kRight);
    y_ = axis_over(least_y, most_y, kHeight - kBottom, kTop);
  }

  std::string draw() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 "
        "{0:g} {1:g}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
        "<rect width=\"{0:g}\" height=\"{1:g}\" fill=\"#fff\"/>\n",
        kWidth, kHeight);
    out_ += svg_text(16, 28, chart_.title, "font-size=\"18\" font-weight=\"bold\"");
    out_ += svg_text(16, 48, chart_.subtitle, "fill=\"#444\"");
    axes();
    mark();
    for (std::size_t i = 0; i < chart_.lines.size(); ++i)
      line(chart_.lines[i], kColours[i % kColours.size()], static_cast<double>(i));
    return out_ + "</svg>\n";
  }

 private:
  void axes() {
    for (const double value : ticks(x_)) {
      segment(x_.at(value), y_.from, x_.at(value), y_.to, "#ddd");
      out_ += svg_text(x_.at(value), y_.from + 18, fmt::format("{:g}", value),
                       "text-anchor=\"middle\"");
    }
    for (const double value : ticks(y_)) {
      segment(x_.from, y_.at(value), x_.to, y_.at(value), "#ddd");
      out_ += svg_text(x_.from - 8, y_.at(value) + 4, fmt::format("{:g}", value),
                       "text-anchor=\"end\"");
    }
    segment(x_.from, y_.from, x_.to, y_.from, "#444");
    segment(x_.from, y_.from, x_.from, y_.to, "#444");
    const double middle = 0.5 * (y_.from + y_.to);
    out_ += svg_text(0.5 * (x_.from + x_.to), kHeight - 18, chart_.x_title,
                     "text-anchor=\"middle\" fill=\"#444\"");
    out_ += svg_text(
        18, middle, chart_.y_title,
        fmt::format("text-anchor=\"middle\" fill=\"#444\" transform=\"rotate(-90 18 {:g})\"",
                    middle));
  }

  void mark() {
    if (!chart_.mark || !(*chart_.mark > 0)) return;
    const double x = x_.at(*chart_.mark);
    out_ += fmt::format(
        "<line x1=\"{0:g}\" y1=\"{1:g}\" x2=\"{0:g}\" y2=\"{2:g}\" stroke=\"#111\" "
        "stroke-width=\"1.2\" stroke-dasharray=\"5 4\"/>\n",
        x, y_.from, y_.to);
    out_ += svg_text(x + 5, y_.to + 10, chart_.mark_label, "font-size=\"11\"");
  }

  void segment(double x1, double y1, double x2, double y2, const char* colour) {
    out_ += fmt::format(
        "<line x1=\"{:g}\" y1=\"{:g}\" x2=\"{:g}\" y2=\"{:g}\" stroke=\"{}\" "
        "stroke-width=\"1\"/>\n",
        x1, y1, x2, y2, colour);
  }

  void line(const ChartLine& line, const char* colour, double place) {
    std::string path;
    for (const auto& p : line.points) {
      if (!drawable(p)) continue;
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x_.at(p.x), y_.at(p.y));
    }
    if (path.empty()) return;
    out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n", path,
                        colour);
    for (const auto& p : line.points) {
      if (!drawable(p)) continue;
      out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n",
                          x_.at(p.x), y_.at(p.y), colour);
      if (!p.label.empty())
        out_ += svg_text(x_.at(p.x) + 6, y_.at(p.y) - 5, p.label,
                         fmt::format("font-size=\"10\" fill=\"{}\"", colour));
    }
    const double top = kTop + 6 + 20 * place, from = kWidth - kRight + 18;
    segment(from, top, from + 22, top, colour);
    out_ += fmt::format("<circle cx=\"{:g}\" cy=\"{:g}\" r=\"3.5\" fill=\"{}\"/>\n", from + 11, top,
                        colour);
    out_ += svg_text(from + 30, top + 4, line.name, "");
  }

  const LineChart& chart_;
  Axis x_, y_;
  std::string out_;
};

}  // namespace

std::string svg(const LineChart& chart) { return ChartDrawing(chart).draw(); }

}  // namespace mercer::report
