#include "mercer/report/chain_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "mercer/core/error.hpp"
#include "mercer/report/svg_text.hpp"

namespace mercer::report {
namespace {

constexpr double kRowLeft = 16, kFirstRow = 64, kRowHeight = 222, kPanelHeight = 130,
                 kPanelGap = 58;
// Trace, density, autocorrelation, running mean.
constexpr std::array<double, 4> kPanelWidths = {330, 200, 200, 330};
// More points than this a line are no longer seen: draws are drawn in steps.
constexpr Index kMostPoints = 1500;

constexpr std::array<const char*, 8> kChainColours = {"#1b6ca8", "#d9822b", "#27864f", "#c0392b",
                                                      "#8e44ad", "#16858a", "#7f6a3f", "#e0559b"};

const char* chain_colour(Index chain) {
  return kChainColours[static_cast<std::size_t>(chain) % kChainColours.size()];
}

struct LinearAxis {
  double low = 0, high = 1;  // values at its ends
  double from = 0, to = 1;   // pixels
  double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

// An axis over these values and a little beyond; over 1 around one value, or over 0 .. 1.
LinearAxis linear_axis(double least, double most, double from, double to, double beyond = 0.05) {
  if (!(least <= most)) return {0, 1, from, to};
  double margin = beyond * (most - least);
  // Smaller than rounding of the values, a range has no round_ticks.
  if (!(most - least > 1e-12 * std::max(std::abs(least), std::abs(most))))
    margin = std::max(0.5 * std::abs(most), 0.5);
  return {least - margin, most + margin, from, to};
}

// About four round numbers: 1, 2 or 5 times a power of ten apart.
std::vector<double> round_ticks(const LinearAxis& axis) {
  const double rough = (axis.high - axis.low) / 4;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double share = rough / power;
  const double step = power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
  std::vector<double> out;
  for (double k = std::ceil(axis.low / step); k * step <= axis.high && out.size() < 10; ++k)
    out.push_back(k == 0 ? 0.0 : k * step);
  return out;
}

struct Range {
  double least = HUGE_VAL, most = -HUGE_VAL;
  void add(double value) {
    if (!std::isfinite(value)) return;
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

class ChainDrawing {
 public:
  explicit ChainDrawing(const ChainPicture& picture) : picture_(picture) {}

  std::string draw() {
    double width = kRowLeft + 8;
    for (const double panel : kPanelWidths) width += panel + kPanelGap;
    const double height =
        kFirstRow + kRowHeight * static_cast<double>(picture_.parameters.size()) + 8;
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 "
        "{0:g} {1:g}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\">\n"
        "<rect width=\"{0:g}\" height=\"{1:g}\" fill=\"#fff\"/>\n",
        width, height);
    out_ += svg_text(kRowLeft, 28, picture_.title, "font-size=\"18\" font-weight=\"bold\"");
    out_ += svg_text(kRowLeft, 48, picture_.subtitle, "fill=\"#444\"");
    double top = kFirstRow;
    for (const auto& panels : picture_.parameters) {
      row(panels, top);
      top += kRowHeight;
    }
    return out_ + "</svg>\n";
  }

 private:
  void row(const ChainPanels& p, double top) {
    out_ += svg_text(kRowLeft, top + 14, p.name, "font-size=\"14\" font-weight=\"bold\"");
    out_ += svg_text(kRowLeft + 10 + 8.5 * static_cast<double>(p.name.size()), top + 14, p.note,
                     "fill=\"#444\"");
    double left = kRowLeft + kPanelGap - 14;
    const double up = top + 40, down = up + kPanelHeight;
    const auto panel = [&](std::size_t which) {
      const double from = left;
      left += kPanelWidths[which] + kPanelGap;
      return LinearAxis{0, 1, from, from + kPanelWidths[which]};
    };
    trace(p, panel(0), up, down);
    density(p, panel(1), up, down);
    correlation(p, panel(2), up, down);
    running(p, panel(3), up, down);
  }

  void trace(const ChainPanels& p, LinearAxis x, double up, double down) {
    const auto n = static_cast<double>(p.draws.rows());
    Range range;
    for (const double value : p.draws.reshaped()) range.add(value);
    x = linear_axis(1, std::max(n, 2.0), x.from, x.to, 0);
    const LinearAxis y = linear_axis(range.least, range.most, down, up);
    frame(x, y, "iteration", "trace");
    for (Index chain = 0; chain < p.draws.cols(); ++chain)
      series(p.draws.col(chain), x, y, chain_colour(chain), "stroke-width=\"0.7\" opacity=\"0.8\"");
  }

  void density(const ChainPanels& p, LinearAxis x, double up, double down) {
    std::vector<Density> all;
    Range values, heights;
    heights.add(0);
    for (Index chain = 0; chain < p.draws.cols(); ++chain) {
      all.push_back(kernel_density(p.draws.col(chain)));
      for (const double value : all.back().at) values.add(value);
      for (const double value : all.back().value) heights.add(value);
    }
    x = linear_axis(values.least, values.most, x.from, x.to, 0);
    const LinearAxis y = linear_axis(0, heights.most > 0 ? 1.05 * heights.most : 1, down, up, 0);
    frame(x, y, p.name, "density");
    for (std::size_t chain = 0; chain < all.size(); ++chain) {
      std::string path;
      for (Index i = 0; i < all[chain].at.size(); ++i)
        path += point(path, x.at(all[chain].at(i)), y.at(all[chain].value(i)));
      line(path, chain_colour(static_cast<Index>(chain)), "stroke-width=\"1.3\"");
    }
  }

  void correlation(const ChainPanels& p, LinearAxis x, double up, double down) {
    const Index lags = p.autocorrelation.rows();
    Range range;
    range.add(0);
    range.add(1);
    for (const double value : p.autocorrelation.reshaped()) range.add(value);
    x = linear_axis(0, static_cast<double>(std::max<Index>(lags - 1, 1)), x.from, x.to, 0);
    const LinearAxis y = linear_axis(range.least, range.most, down, up);
    frame(x, y, "lag", "autocorrelation");
    segment(x.from, y.at(0), x.to, y.at(0), "#444");
    for (Index chain = 0; chain < p.autocorrelation.cols(); ++chain) {
      std::string path;
      for (Index lag = 0; lag < lags; ++lag) {
        const double value = p.autocorrelation(lag, chain);
        if (std::isfinite(value)) path += point(path, x.at(static_cast<double>(lag)), y.at(value));
      }
      line(path, chain_colour(chain), "stroke-width=\"1.3\"");
    }
  }

  void running(const ChainPanels& p, LinearAxis x, double up, double down) {
    const Index n = p.running_mean.rows();
    const Matrix low = p.running_mean - 2 * p.running_sd, high = p.running_mean + 2 * p.running_sd;
    Range range;
    for (const double value : low.reshaped()) range.add(value);
    for (const double value : high.reshaped()) range.add(value);
    x = linear_axis(1, std::max(static_cast<double>(n), 2.0), x.from, x.to, 0);
    const LinearAxis y = linear_axis(range.least, range.most, down, up);
    frame(x, y, "iteration", "running mean, two sd");
    for (Index chain = 0; chain < p.running_mean.cols(); ++chain) {
      series(p.running_mean.col(chain), x, y, chain_colour(chain), "stroke-width=\"1.5\"");
      for (const Matrix* bound : {&low, &high})
        series(bound->col(chain), x, y, chain_colour(chain),
               "stroke-width=\"0.8\" stroke-dasharray=\"4 3\"");
    }
  }

  // Values by iteration; at most kMostPoints of them, at equal steps. Gaps where not finite.
  void series(ConstVectorView values, const LinearAxis& x, const LinearAxis& y, const char* with,
              const char* style) {
    const Index step = std::max<Index>(1, (values.size() + kMostPoints - 1) / kMostPoints);
    std::string path;
    bool pen_up = true;
    for (Index i = 0; i < values.size(); i += step) {
      if (!std::isfinite(values(i))) {
        pen_up = true;
        continue;
      }
      path += fmt::format("{}{:.1f} {:.1f}", pen_up ? "M" : "L", x.at(static_cast<double>(i + 1)),
                          y.at(values(i)));
      pen_up = false;
    }
    line(path, with, style);
  }

  static std::string point(const std::string& before, double x, double y) {
    return fmt::format("{}{:.1f} {:.1f}", before.empty() ? "M" : "L", x, y);
  }

  void line(const std::string& path, const char* with, const char* style) {
    if (path.empty()) return;
    out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" {}/>\n", path, with, style);
  }

  void frame(const LinearAxis& x, const LinearAxis& y, const std::string& x_title,
             const std::string& title) {
    for (const double value : round_ticks(x)) {
      segment(x.at(value), y.from, x.at(value), y.to, "#eee");
      out_ += svg_text(x.at(value), y.from + 14, fmt::format("{:.6g}", value),
                       "text-anchor=\"middle\" font-size=\"10\"");
    }
    for (const double value : round_ticks(y)) {
      segment(x.from, y.at(value), x.to, y.at(value), "#eee");
      out_ += svg_text(x.from - 5, y.at(value) + 3, fmt::format("{:.6g}", value),
                       "text-anchor=\"end\" font-size=\"10\"");
    }
    segment(x.from, y.from, x.to, y.from, "#444");
    segment(x.from, y.from, x.from, y.to, "#444");
    out_ += svg_text(x.from, y.to - 5, title, "fill=\"#444\"");
    out_ += svg_text(x.to, y.from + 28, x_title, "text-anchor=\"end\" fill=\"#444\"");
  }

  void segment(double x1, double y1, double x2, double y2, const char* with) {
    out_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"1\"/>\n",
        x1, y1, x2, y2, with);
  }

  const ChainPicture& picture_;
  std::string out_;
};

void check_panels(const ChainPanels& p) {
  if (p.draws.size() == 0)
    throw InvalidArgument(fmt::format("chain picture: the parameter {} has no draws", p.name));
  for (const Matrix* each : {&p.autocorrelation, &p.running_mean, &p.running_sd})
    if (each->cols() != p.draws.cols())
      throw DimensionMismatch("chain picture: chains of a panel", each->cols(), "chains of draws",
                              p.draws.cols());
  if (p.running_mean.rows() != p.running_sd.rows())
    throw DimensionMismatch("chain picture: running means", p.running_mean.rows(),
                            "running standard deviations", p.running_sd.rows());
}

}  // namespace

Density kernel_density(ConstVectorView draws, Index points) {
  std::vector<double> x;
  for (const double value : draws)
    if (std::isfinite(value)) x.push_back(value);
  if (x.empty()) return {};
  std::sort(x.begin(), x.end());
  const auto n = static_cast<double>(x.size());
  double mean = 0, squares = 0;
  for (const double value : x) mean += value / n;
  for (const double value : x) squares += (value - mean) * (value - mean);
  const double sd = std::sqrt(squares / std::max(n - 1, 1.0));
  const double quartiles =
      x[(3 * x.size()) / 4 == x.size() ? x.size() - 1 : (3 * x.size()) / 4] - x[x.size() / 4];
  const double spread = quartiles > 0 ? std::min(sd, quartiles / 1.34) : sd;
  if (!(x.back() > x.front()) || !(spread > 0))
    return {Vector::Constant(1, x.front()), Vector::Constant(1, 1.0)};
  const double h = 0.9 * spread * std::pow(n, -0.2);
  Density out{Vector::LinSpaced(points, x.front() - 3 * h, x.back() + 3 * h), Vector(points)};
  constexpr double root_two_pi = 2.5066282746310002;
  for (Index i = 0; i < points; ++i) {
    // Beyond eight bandwidths a kernel is below 1e-14 of its height.
    const auto first = std::lower_bound(x.begin(), x.end(), out.at(i) - 8 * h);
    const auto last = std::upper_bound(first, x.end(), out.at(i) + 8 * h);
    double sum = 0;
    for (auto it = first; it != last; ++it) {
      const double z = (out.at(i) - *it) / h;
      sum += std::exp(-0.5 * z * z);
    }
    out.value(i) = sum / (n * h * root_two_pi);
  }
  return out;
}

std::string svg(const ChainPicture& picture) {
  if (picture.parameters.empty()) throw InvalidArgument("chain picture: there is no parameter");
  for (const auto& each : picture.parameters) check_panels(each);
  return ChainDrawing(picture).draw();
}

}  // namespace mercer::report
