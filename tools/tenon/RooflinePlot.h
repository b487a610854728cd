// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tenon::tool {

/// A roofline: FLOP per byte to the right, FLOP/s upwards, both logarithmic.
struct RooflinePlot {
  struct Slope {
    std::string name; ///< "memory"
    double bytesPerSecond = 0;
  };
  struct Roof {
    std::string name; ///< "vector f32"
    double flopsPerSecond = 0;
  };
  struct Point {
    std::string label;
    double intensity = 0, flopsPerSecond = 0;
    bool measured = false; ///< otherwise what could be reached
  };
  std::string title, subtitle;
  std::vector<Slope> slopes; ///< the lowest is the one that roofs meet
  std::vector<Roof> roofs;
  std::vector<Point> points;
};

/// A picture that stands alone: no script, no fonts or styles from elsewhere, light and dark.
std::string svgOf(const RooflinePlot &plot);

} // namespace tenon::tool
