#include "replay/picture/roofline.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "replay/picture/render.h"

namespace fusebox::picture {
namespace {

constexpr double kWidth = 960, kHeight = 600;
constexpr double kLeft = 84, kRight = 200, kTop = 52, kBottom = 92;
constexpr double kLine = 12;  // height of a line of small text

// A decimal logarithmic axis over whole decades.
struct Axis {
  double first = 0, last = 1;  // exponents
  double from = 0, to = 0;     // pixels

  static Axis over(double low, double high, double from, double to) {
    Axis a{std::floor(std::log10(low)), std::ceil(std::log10(high)), from, to};
    if (a.last <= a.first) a.last = a.first + 1;
    return a;
  }
  double at(double value) const { return from + (std::log10(value) - first) / (last - first) * (to - from); }
};

std::string text_at(double x, double y, std::string_view css, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, css, escaped(text));
}

std::string line(double x1, double y1, double x2, double y2, std::string_view css) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                     css);
}

// `10 MB`, of a power of ten.
std::string with_unit(double exponent, std::string_view unit) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  const auto whole = static_cast<int>(exponent);
  if (whole < 0) return fmt::format("{:g} {}", std::pow(10.0, exponent), unit);
  const int prefix = std::min(whole / 3, static_cast<int>(std::size(kPrefixes)) - 1);
  return fmt::format("{:.0f} {}{}", std::pow(10.0, whole - 3 * prefix), kPrefixes[prefix], unit);
}

// Places labels beside points from top to bottom, so that none covers another.
struct Label {
  double x, y, wanted;
  const RooflinePoint* point;
};

void spread(std::vector<Label>& labels, double top, double bottom) {
  std::ranges::stable_sort(labels, {}, &Label::wanted);
  double next = top;
  for (Label& label : labels) {
    label.y = std::max(label.wanted, next);
    next = label.y + kLine;
  }
  // If the last one lies too low, all move up as far as they must.
  double most = bottom;
  for (auto it = labels.rbegin(); it != labels.rend(); ++it) {
    it->y = std::min(it->y, most);
    most = it->y - kLine;
  }
}

constexpr const char* kStyle =
    R"(text{font-family:"DejaVu Sans Mono",Menlo,Consolas,"Liberation Mono",monospace;fill:#1b1b1b;font-size:11px}
.title{font-size:15px;font-weight:bold}
.axis{font-size:12px}
.tick,.note{fill:#4a4f57}
.tick-x{fill:#4a4f57;text-anchor:middle}
.tick-y{fill:#4a4f57;text-anchor:end}
.frame{fill:#fff;stroke:#8a929c}
.grid{stroke:#e3e6ea}
.roof{fill:none;stroke:#b3261e;stroke-width:2}
.roof-text{fill:#b3261e}
.leader{stroke:#b8bec6}
.point{fill:#1f6feb;stroke:#fff}
.point:hover{fill:#0b3d91}
)";

}  // namespace

std::string to_svg(const Roofline& r) {
  std::vector<const RooflinePoint*> shown;
  std::string left_out;
  for (const RooflinePoint& p : r.points) {
    if (p.bytes > 0 && p.us > 0)
      shown.push_back(&p);
    else
      left_out += (left_out.empty() ? "" : ", ") + p.name;
  }
  const bool has_roof = r.copy_rate > 0;
  // Rates are in bytes a second.
  const auto rate = [](const RooflinePoint& p) { return p.bytes / p.us * 1e6; };
  double least_bytes = 1e3, most_bytes = 1e4, least_rate = 1e6, most_rate = 1e7;
  for (size_t i = 0; i < shown.size(); ++i) {
    least_bytes = i == 0 ? shown[i]->bytes : std::min(least_bytes, shown[i]->bytes);
    most_bytes = i == 0 ? shown[i]->bytes : std::max(most_bytes, shown[i]->bytes);
    least_rate = i == 0 ? rate(*shown[i]) : std::min(least_rate, rate(*shown[i]));
    most_rate = i == 0 ? rate(*shown[i]) : std::max(most_rate, rate(*shown[i]));
  }
  if (has_roof) most_rate = std::max(most_rate, 1.2e6 * r.copy_rate);
  const double right = kWidth - kRight, bottom = kHeight - kBottom;
  const Axis x = Axis::over(least_bytes, most_bytes, kLeft, right);
  const Axis y = Axis::over(least_rate, most_rate, bottom, kTop);

  std::string body = text_at(kLeft, 28, "title", r.title);
  body += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"frame\"/>\n", kLeft, kTop,
                      right - kLeft, bottom - kTop);
  for (double e = x.first; e <= x.last; ++e) {
    const double at = x.at(std::pow(10.0, e));
    body += line(at, kTop, at, bottom, "grid") + text_at(at, bottom + 16, "tick-x", with_unit(e, "B"));
  }
  for (double e = y.first; e <= y.last; ++e) {
    const double at = y.at(std::pow(10.0, e));
    body += line(kLeft, at, right, at, "grid") + text_at(kLeft - 6, at + 4, "tick-y", with_unit(e, "B/s"));
  }
  body += text_at(kLeft, bottom + 36, "axis", "bytes that a run must move: inputs read once, outputs written once");
  body += text_at(kLeft, kTop - 8, "axis", "these bytes by the time of the run");

  if (has_roof) {
    const double roof = 1e6 * r.copy_rate;
    const double low = std::pow(10.0, x.first), high = std::pow(10.0, x.last), floor = std::pow(10.0, y.first);
    // The slope rises to the roof where a run takes as long as two events alone.
    const double corner = r.empty_us > 0 ? r.copy_rate * r.empty_us : 0;
    std::string d;
    if (corner > low) {
      const double begin = std::max(low, floor * r.empty_us / 1e6);
      const double end = std::min(corner, high);
      d = fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", x.at(begin), y.at(begin / r.empty_us * 1e6), x.at(end),
                      y.at(end / r.empty_us * 1e6));
    }
    if (corner < high)
      d += fmt::format("{}{:.1f} {:.1f}L{:.1f} {:.1f}", d.empty() ? "M" : "L", x.at(std::max(low, corner)), y.at(roof),
                       x.at(high), y.at(roof));
    body += fmt::format("<path class=\"roof\" d=\"{}\"/>\n", d);
    body += text_at(kLeft + 8, y.at(roof) - 6, "roof-text", fmt::format("a copy: {:.0f} GB/s", roof / 1e9));
    if (corner > low)
      body += text_at(kLeft, bottom + 54, "roof-text",
                      fmt::format("the slope: two events with nothing between them, {:.1f} µs", r.empty_us));
  }

  std::vector<Label> labels;
  for (const RooflinePoint* p : shown) labels.push_back({right + 14, 0, y.at(rate(*p)) + 4, p});
  spread(labels, kTop + 10, bottom);
  for (const Label& label : labels) {
    const double px = x.at(label.point->bytes), py = y.at(rate(*label.point));
    body += line(px, py, label.x - 3, label.y - 4, "leader");
  }
  for (const Label& label : labels) {
    const RooflinePoint& p = *label.point;
    body += fmt::format(
        "<g><title>{}</title><circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\" class=\"point\"/></g>\n",
        escaped(fmt::format("{}: {:.0f} bytes in {:.1f} µs, {:.1f} GB/s", p.name, p.bytes, p.us, rate(p) / 1e9)),
        x.at(p.bytes), y.at(rate(p)));
    constexpr size_t kLetters = 26;
    const std::string name = p.name.size() <= kLetters ? p.name : p.name.substr(0, kLetters - 1) + "~";
    body += text_at(label.x, label.y, "tick", name);
  }
  if (!left_out.empty()) body += text_at(kLeft, kHeight - 10, "note", "not drawn: " + left_out);
  return fmt::format(
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" "
             "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n",
             kWidth, kHeight) +
         "<style>\n" + kStyle + "</style>\n" +
         fmt::format("<rect width=\"{:.0f}\" height=\"{:.0f}\" fill=\"#f4f5f7\"/>\n", kWidth, kHeight) + body +
         "</svg>\n";
}

}  // namespace fusebox::picture
