// SPDX-License-Identifier: Apache-2.0
#include "RooflinePlot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon::tool {
namespace {

constexpr double width = 860, height = 520, left = 80, right = 40, top = 70, bottom = 60;

std::string escaped(const std::string &text) {
  std::string result;
  for (char c : text)
    switch (c) {
    case '<': result += "&lt;"; break;
    case '>': result += "&gt;"; break;
    case '&': result += "&amp;"; break;
    case '"': result += "&quot;"; break;
    default: result += c;
    }
  return result;
}

/// 1e9 -> "1 G"
std::string scaled(double value) {
  constexpr const char *prefixes[] = {"", "K", "M", "G", "T", "P"};
  int step = 0;
  for (; value >= 999.5 && step < 5; value /= 1000)
    ++step;
  return fmt::format("{:.3g} {}", value, prefixes[step]);
}

/// Powers of ten from below the least to above the greatest.
struct Axis {
  int first = 0, last = 1;
  double from = 0, to = 0; ///< pixels

  Axis(double least, double greatest, double from, double to) : from(from), to(to) {
    first = static_cast<int>(std::floor(std::log10(least)));
    last = std::max(static_cast<int>(std::ceil(std::log10(greatest))), first + 1);
  }
  double at(double value) const { return from + (to - from) * (std::log10(value) - first) / (last - first); }
  double low() const { return std::pow(10.0, first); }
  double high() const { return std::pow(10.0, last); }
};

} // namespace

std::string svgOf(const RooflinePlot &plot) {
  double slowest = 0, fastest = 0, lowestRoof = 0, highestRoof = 0;
  for (const auto &slope : plot.slopes) {
    slowest = slowest == 0 ? slope.bytesPerSecond : std::min(slowest, slope.bytesPerSecond);
    fastest = std::max(fastest, slope.bytesPerSecond);
  }
  for (const auto &roof : plot.roofs) {
    lowestRoof = lowestRoof == 0 ? roof.flopsPerSecond : std::min(lowestRoof, roof.flopsPerSecond);
    highestRoof = std::max(highestRoof, roof.flopsPerSecond);
  }
  double leastX = lowestRoof / fastest / 4, greatestX = 4 * highestRoof / slowest, leastY = lowestRoof / 100;
  for (const auto &point : plot.points) {
    leastX = std::min(leastX, point.intensity / 2);
    greatestX = std::max(greatestX, point.intensity * 2);
    leastY = std::min(leastY, point.flopsPerSecond / 2);
  }
  Axis x(leastX, greatestX, left, width - right), y(leastY, 1.5 * highestRoof, height - bottom, top);

  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" "
      "font-family=\"system-ui, sans-serif\" font-size=\"13\">\n"
      "<style>\n"
      ".back {{ fill: #ffffff }} .ink {{ fill: #1b1f24 }} .soft {{ fill: #59636e }} .grid {{ stroke: #d8dee4 }}\n"
      ".slope {{ stroke: #0969da }} .slopeText {{ fill: #0969da }} .roof {{ stroke: #bc4c00 }}\n"
      ".roofText {{ fill: #bc4c00 }}\n"
      ".point {{ fill: #1a7f37 }} .aim {{ fill: none; stroke: #1a7f37 }}\n"
      "@media (prefers-color-scheme: dark) {{ .back {{ fill: #0d1117 }} .ink {{ fill: #e6edf3 }}\n"
      ".soft {{ fill: #9198a1 }} .grid {{ stroke: #30363d }} .slope {{ stroke: #4493f8 }}\n"
      ".slopeText {{ fill: #4493f8 }} .roof {{ stroke: #f0883e }}\n"
      ".roofText {{ fill: #f0883e }} .point {{ fill: #3fb950 }} .aim {{ stroke: #3fb950 }} }}\n"
      "</style>\n"
      "<title>{2}</title>\n<rect class=\"back\" width=\"{0}\" height=\"{1}\"/>\n"
      "<text class=\"ink\" x=\"{3}\" y=\"28\" font-size=\"17\" font-weight=\"600\">{2}</text>\n"
      "<text class=\"soft\" x=\"{3}\" y=\"50\">{4}</text>\n",
      width, height, escaped(plot.title), left, escaped(plot.subtitle));
  auto line = [&](const char *style, double x1, double y1, double x2, double y2, double thickness) {
    svg += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
                       "stroke-width=\"{}\"/>\n",
                       style, x1, y1, x2, y2, thickness);
  };
  auto text = [&](const char *style, double atX, double atY, const char *anchor, const std::string &words) {
    svg += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", style, atX, atY,
                       anchor, escaped(words));
  };
  for (int power = x.first; power <= x.last; ++power) {
    double value = std::pow(10.0, power);
    line("grid", x.at(value), top, x.at(value), height - bottom, 1);
    text("soft", x.at(value), height - bottom + 20, "middle", fmt::format("{:.3g}", value));
  }
  for (int power = y.first; power <= y.last; ++power) {
    double value = std::pow(10.0, power);
    line("grid", left, y.at(value), width - right, y.at(value), 1);
    text("soft", left - 8, y.at(value) + 4, "end", scaled(value));
  }
  text("soft", (left + width - right) / 2, height - 14, "middle", "FLOP per byte of memory");
  svg += fmt::format("<text class=\"soft\" transform=\"translate(18 {:.1f}) rotate(-90)\" text-anchor=\"middle\">FLOP/s"
                     "</text>\n",
                     (top + height - bottom) / 2);

  for (const auto &slope : plot.slopes) {
    // From the left or the bottom edge, whichever it meets, up to the highest roof.
    double from = std::max(x.low(), y.low() / slope.bytesPerSecond);
    double to = std::min(x.high(), highestRoof / slope.bytesPerSecond);
    if (from >= to)
      continue;
    line("slope", x.at(from), y.at(from * slope.bytesPerSecond), x.at(to), y.at(to * slope.bytesPerSecond), 2);
    // Each a little further along than the one before: neighbours that lie close do not cover each other's names.
    double middle = from * std::pow(to / from, 0.25 + 0.17 * static_cast<double>(&slope - plot.slopes.data()));
    double rise = y.at(to * slope.bytesPerSecond) - y.at(from * slope.bytesPerSecond);
    double angle = std::atan2(rise, x.at(to) - x.at(from));
    svg += fmt::format("<text class=\"slopeText\" transform=\"translate({:.1f} {:.1f}) rotate({:.1f})\" "
                       "text-anchor=\"middle\">{}</text>\n",
                       x.at(middle), y.at(middle * slope.bytesPerSecond) - 7, angle * 180 / M_PI,
                       escaped(slope.name + " " + scaled(slope.bytesPerSecond) + "B/s"));
  }
  for (const auto &roof : plot.roofs) {
    double from = std::max(x.low(), roof.flopsPerSecond / fastest);
    line("roof", x.at(from), y.at(roof.flopsPerSecond), width - right, y.at(roof.flopsPerSecond), 2);
    text("roofText", width - right - 4, y.at(roof.flopsPerSecond) - 6, "end",
         roof.name + " " + scaled(roof.flopsPerSecond) + "FLOP/s");
  }
  for (const auto &point : plot.points) {
    svg += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\" stroke-width=\"2\"><title>{}</title>"
                       "</circle>\n",
                       point.measured ? "point" : "aim", x.at(point.intensity), y.at(point.flopsPerSecond),
                       escaped(fmt::format("{}: {:.3g} FLOP per byte, {}FLOP/s", point.label, point.intensity,
                                           scaled(point.flopsPerSecond))));
    bool isRight = x.at(point.intensity) > width * 0.6;
    text("ink", x.at(point.intensity) + (isRight ? -10 : 10), y.at(point.flopsPerSecond) + 18,
         isRight ? "end" : "start", point.label);
  }
  return svg + "</svg>\n";
}

} // namespace tenon::tool
