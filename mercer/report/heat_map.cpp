#include "mercer/report/heat_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/report/svg_text.hpp"

namespace mercer::report {
namespace {

constexpr int cell_width = 58, cell_height = 30;
constexpr int left = 74, above = 26, below = 44, gap = 26;
constexpr int head = 70, foot = 66, margin = 16;

struct Colour {
  double r, g, b;
};

Colour mix(const Colour& a, const Colour& b, double t) {
  return {a.r + t * (b.r - a.r), a.g + t * (b.g - a.g), a.b + t * (b.b - a.b)};
}

constexpr Colour white{255, 255, 255}, blue{33, 102, 172}, red{178, 24, 43}, dark{63, 0, 125};

Colour diverging(double value, double range) {
  const double t = std::clamp(std::abs(value) / range, 0.0, 1.0);
  return mix(white, value < 0 ? blue : red, t);
}

std::string hex(const Colour& c) {
  const auto part = [](double v) { return static_cast<int>(std::lround(v)); };
  return fmt::format("#{:02x}{:02x}{:02x}", part(c.r), part(c.g), part(c.b));
}

// Black on light, white on dark.
const char* ink(const Colour& c) {
  return 0.299 * c.r + 0.587 * c.g + 0.114 * c.b > 140 ? "#111" : "#fff";
}

class Drawing {
 public:
  explicit Drawing(const HeatMap& map) : map_(map) {
    const auto columns = static_cast<int>(map.columns.size());
    const auto rows = static_cast<int>(map.rows.size());
    panel_width_ = left + columns * cell_width;
    panel_height_ = above + rows * cell_height + below;
    const auto panels = static_cast<int>(map.panels.size());
    across_ = std::max(1, std::min(panels, map.panels_across));
    const int down = (panels + across_ - 1) / across_;
    width_ = std::max(across_ * (panel_width_ + gap) + 2 * margin, 560);
    height_ = head + down * (panel_height_ + gap) + foot;
  }

  std::string draw() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
        width_, height_);
    out_ += svg_text(margin, 28, map_.title, "font-size=\"18\" font-weight=\"bold\"");
    out_ += svg_text(margin, 48, map_.subtitle, "fill=\"#444\"");
    for (std::size_t p = 0; p < map_.panels.size(); ++p) {
      const auto at = static_cast<int>(p);
      panel(map_.panels[p], margin + (at % across_) * (panel_width_ + gap),
            head + (at / across_) * (panel_height_ + gap));
    }
    legend();
    return out_ + "</svg>\n";
  }

 private:
  void panel(const HeatMapPanel& panel, int x, int y) {
    out_ += svg_text(x + left, y + 16, panel.title, "font-size=\"14\" font-weight=\"bold\"");
    double least = HUGE_VAL, most = -HUGE_VAL;
    for (const auto& row : panel.cells)
      for (const auto& cell : row)
        if (cell.value) {
          least = std::min(least, *cell.value);
          most = std::max(most, *cell.value);
        }
    for (std::size_t i = 0; i < map_.rows.size(); ++i) {
      const double top = y + above + static_cast<double>(i) * cell_height;
      out_ += svg_text(x + left - 8, top + 19, map_.rows[i], "text-anchor=\"end\"");
      for (std::size_t j = 0; j < map_.columns.size(); ++j) {
        const auto& cell = panel.cells[i][j];
        Colour colour{238, 238, 238};
        if (cell.value && panel.diverging) colour = diverging(*cell.value, map_.range);
        if (cell.value && !panel.diverging)
          colour =
              mix(white, dark, most > least ? 0.85 * (*cell.value - least) / (most - least) : 0.3);
        const double from = x + left + static_cast<double>(j) * cell_width;
        out_ += fmt::format(
            "<rect x=\"{:g}\" y=\"{:g}\" width=\"{}\" height=\"{}\" fill=\"{}\" "
            "stroke=\"#999\" stroke-width=\"0.5\"/>\n",
            from, top, cell_width, cell_height, hex(colour));
        out_ += svg_text(from + cell_width / 2.0, top + 19, cell.text,
                         fmt::format("text-anchor=\"middle\" fill=\"{}\"", ink(colour)));
      }
    }
    const double bottom = y + above + static_cast<double>(map_.rows.size()) * cell_height;
    for (std::size_t j = 0; j < map_.columns.size(); ++j)
      out_ += svg_text(x + left + (static_cast<double>(j) + 0.5) * cell_width, bottom + 16,
                       map_.columns[j], "text-anchor=\"middle\"");
    const double middle = static_cast<double>(map_.columns.size()) * cell_width / 2.0;
    out_ += svg_text(x + left + middle, bottom + 34, map_.column_title,
                     "text-anchor=\"middle\" fill=\"#444\"");
    const double centre = y + above + static_cast<double>(map_.rows.size()) * cell_height / 2.0;
    out_ += svg_text(
        x + 12, centre, map_.row_title,
        fmt::format("text-anchor=\"middle\" fill=\"#444\" transform=\"rotate(-90 {} {:g})\"",
                    x + 12, centre));
  }

  void legend() {
    constexpr int steps = 60, step = 4;
    const int y = height_ - foot + 8;
    const int x = margin + left;
    for (int i = 0; i < steps; ++i) {
      const double value = map_.range * (2.0 * i / (steps - 1) - 1);
      out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"14\" fill=\"{}\"/>\n",
                          x + i * step, y, step, hex(diverging(value, map_.range)));
    }
    for (const double t : {-1.0, -0.5, 0.0, 0.5, 1.0})
      out_ += svg_text(x + steps * step * (t + 1) / 2, y + 28, fmt::format("{:g}", t * map_.range),
                       "text-anchor=\"middle\"");
    out_ += svg_text(x + steps * step + 20, y + 12, map_.legend, "fill=\"#444\"");
  }

  const HeatMap& map_;
  int panel_width_, panel_height_, across_, width_, height_;
  std::string out_;
};

}  // namespace

std::string svg(const HeatMap& map) {
  for (const auto& panel : map.panels) {
    if (panel.cells.size() != map.rows.size())
      throw InvalidArgument(fmt::format("heat map: panel '{}' has {} rows, but there are {} labels",
                                        panel.title, panel.cells.size(), map.rows.size()));
    for (const auto& row : panel.cells)
      if (row.size() != map.columns.size())
        throw InvalidArgument(
            fmt::format("heat map: panel '{}' has {} columns, but there are {} labels", panel.title,
                        row.size(), map.columns.size()));
  }
  return Drawing(map).draw();
}

}  // namespace mercer::report
