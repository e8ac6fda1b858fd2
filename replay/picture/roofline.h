// A roofline of measured programs as an SVG document: the bytes that each must move, and the rate at which it moved them.
//
// Both axes are logarithmic. On a GPU the roof has two parts, both measured: the rate of a large copy, and before it the
// slope of what cannot be faster than the time that two events with nothing between them measure. Without a measured
// rate there is no roof, and the title says why.
//
//   write_file("roofline.svg", to_svg({.title = "H200", .points = points, .copy_rate = 4.2e6, .empty_us = 2.9}));
#pragma once

#include <string>
#include <vector>

namespace fusebox::picture {

struct RooflinePoint {
  std::string name = {};
  double bytes = 0;  // that a run must move
  double us = 0;     // of a run
};

struct Roofline {
  std::string title = {};
  std::vector<RooflinePoint> points = {};
  double copy_rate = 0;  // bytes in a microsecond; 0: not measured
  double empty_us = 0;
};

// Points without bytes or time are left out, and named below the plot.
std::string to_svg(const Roofline& roofline);

}  // namespace fusebox::picture
