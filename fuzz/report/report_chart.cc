#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "fuzz/report/report.h"

namespace fusebox::fuzz {
namespace {

constexpr double kWidth = 860, kHeight = 280, kLeft = 56, kRight = 16, kTop = 14, kBottom = 40;

// 1, 2 or 5 times a power of ten, so that there are about five ticks up to `reach`.
double tick_of(double reach) {
  const double rough = reach / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double m : {1.0, 2.0, 5.0})
    if (m * power >= rough) return m * power;
  return 10 * power;
}

std::string number(double v) {
  return v >= 10'000 ? fmt::format("{:.0f}k", v / 1000) : fmt::format("{:g}", std::round(v * 100) / 100);
}

}  // namespace

std::string coverage_chart(const std::vector<CampaignSample>& series, uint64_t rows) {
  if (series.empty()) return "<p>No case was run.</p>";
  const double end = std::max(series.back().seconds, 1e-3), top = std::max<double>(static_cast<double>(rows), 1);
  const auto x = [&](double seconds) { return kLeft + seconds / end * (kWidth - kLeft - kRight); };
  const auto y = [&](double covered) { return kHeight - kBottom - covered / top * (kHeight - kTop - kBottom); };
  std::string out = fmt::format(
      R"(<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="covered rows over time">)", kWidth, kHeight);
  for (double t = 0; t <= end * 1.0001; t += tick_of(end))
    out += fmt::format(
        R"(<line class="grid" x1="{0:.1f}" y1="{1:.1f}" x2="{0:.1f}" y2="{2:.1f}"/><text x="{0:.1f}" y="{3:.1f}" text-anchor="middle">{4}</text>)",
        x(t), kTop, kHeight - kBottom, kHeight - kBottom + 16, number(t));
  for (double c = 0; c <= top * 1.0001; c += tick_of(top))
    out += fmt::format(
        R"(<line class="grid" x1="{0:.1f}" y1="{1:.1f}" x2="{2:.1f}" y2="{1:.1f}"/><text x="{3:.1f}" y="{4:.1f}" text-anchor="end">{5}</text>)",
        kLeft, y(c), kWidth - kRight, kLeft - 6, y(c) + 4, number(c));
  out += fmt::format(
      R"(<line class="all" x1="{0:.1f}" y1="{1:.1f}" x2="{2:.1f}" y2="{1:.1f}"><title>{3} rows</title></line>)", kLeft,
      y(top), kWidth - kRight, rows);
  out += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">seconds</text>)",
                     (kLeft + kWidth - kRight) / 2, kHeight - 6);
  std::string line = fmt::format("M{:.1f} {:.1f}", x(0), y(0)), marks;
  uint64_t found = 0;
  for (const CampaignSample& s : series) {
    line += fmt::format(" L{:.1f} {:.1f}", x(s.seconds), y(static_cast<double>(s.covered)));
    if (s.findings > found)
      marks += fmt::format(
          R"(<circle cx="{:.1f}" cy="{:.1f}" r="4"><title>{} findings after {} cases, {:.1f} s</title></circle>)",
          x(s.seconds), y(static_cast<double>(s.covered)), s.findings, s.cases, s.seconds);
    found = s.findings;
  }
  return out + R"(<path class="line" d=")" + line + R"("/>)" + marks + "</svg>";
}

}  // namespace fusebox::fuzz
