#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "replay/picture/layout.h"
#include "replay/picture/render.h"

namespace fusebox::picture {
namespace {

constexpr double kSheetWidth = 1560, kSheetMargin = 20, kBetween = 18, kHeading = 34;

std::string number(double value) {
  std::string out = fmt::format("{:.1f}", value);
  return out.ends_with(".0") ? out.substr(0, out.size() - 2) : out;
}

std::string text_at(double x, double y, std::string_view css, std::string_view text, std::string_view rest = "") {
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\"{}>{}</text>", number(x), number(y), css, rest,
                     escaped(text));
}

std::string path_of(const Line& line) {
  std::string d = "M" + number(line.points[0].x) + " " + number(line.points[0].y);
  for (size_t i = 1; i < line.points.size(); ++i) {
    const Point a = line.points[i - 1], b = line.points[i];
    const double y = (a.y + b.y) / 2;
    if (std::abs(a.x - b.x) < 0.05)
      d += "V" + number(b.y);
    else
      d += fmt::format("C{} {} {} {} {} {}", number(a.x), number(y), number(b.x), number(y), number(b.x), number(b.y));
  }
  return fmt::format("<path class=\"line{}\" d=\"{}\"/>", line.is_same_domain ? " same" : "", d);
}

std::string_view look_of(Mark::Kind kind) {
  switch (kind) {
    case Mark::Kind::kParallel:
      return "parallel";
    case Mark::Kind::kAllocation:
      return "allocation";
    case Mark::Kind::kHoles:
      return "hole";
    case Mark::Kind::kCheck:
      return "check";
  }
  return {};
}

std::string domain_box(const Picture& p, const PlacedDomain& placed, IdGraphKind kind) {
  const DomainPicture& d = p.domains[placed.domain];
  const Box& b = placed.box;
  const BoxText box = box_text(d);
  const uint32_t group = d.group[static_cast<size_t>(kind)];
  std::string css = fmt::format("domain c{}", style_of(group));
  if (d.may_leave) css += " holes";
  if (d.iter_type == IterType::kBroadcast) css += " broadcast";
  if (d.iter_type == IterType::kReduction) css += " reduce";
  std::string out = fmt::format("<g class=\"{}\" data-d=\"{}\" tabindex=\"0\" transform=\"translate({},{})\">", css,
                                placed.domain, number(b.x), number(b.y));
  out += "<title>" + escaped(hover_text(p, placed.domain, kind)) + "</title>";
  out += fmt::format("<rect class=\"box\" width=\"{}\" height=\"{}\" rx=\"4\"/>", number(b.width), number(b.height));
  out += text_at(kPadding, 17, "name", box.name);
  out += text_at(b.width - kPadding, 17, "group", group == 0 ? "" : "#" + std::to_string(group));
  out += text_at(kPadding, 31, "type", box.type);
  double x = kPadding;
  for (const Mark& mark : box.marks) {
    const double width = static_cast<double>(letters(mark.text)) * kMarkSize * kLetter + 2 * kMarkPadding;
    const std::string_view look = look_of(mark.kind);
    out += fmt::format("<rect class=\"mark {}\" x=\"{}\" y=\"36\" width=\"{}\" height=\"14\" rx=\"3\"/>", look,
                       number(x), number(width));
    out += text_at(x + kMarkPadding, 46.5, "mark-text " + std::string(look), mark.text);
    x += width + kMarkGap;
  }
  if (placed.is_shared_loop)
    out += fmt::format("<rect class=\"shared\" x=\"0\" y=\"{}\" width=\"{}\" height=\"3\"/>", number(b.height + 2),
                       number(b.width));
  return out + "</g>\n";
}

// Places boxes from left to right. A box that would cross the right border begins a new row below.
class Shelves {
 public:
  Shelves(double left, double top, double border, double between)
      : left_(left), border_(border), between_(between), x_(left), y_(top), bottom_(top), right_(left) {}

  Point put(double width, double height) {
    if (x_ > left_ && x_ + width > border_) {
      x_ = left_;
      y_ = bottom_ + between_;
    }
    const Point at{x_, y_};
    x_ += width + between_;
    right_ = std::max(right_, at.x + width);
    bottom_ = std::max(bottom_, at.y + height);
    return at;
  }
  double right() const { return right_; }
  double bottom() const { return bottom_; }

 private:
  double left_, border_, between_, x_, y_, bottom_, right_;
};

std::string placed(Point at, std::string_view css, const std::string& content) {
  return fmt::format("<g class=\"{}\" transform=\"translate({},{})\">\n{}</g>\n", css, number(at.x), number(at.y),
                     content);
}

// A heading and the tensors below it.
Drawing draw_program(const Picture& p, IdGraphKind kind) {
  const std::string heading = p.name + ": " + std::string(text(kind)) + " graph";
  Drawing out{text_at(0, 18, "heading", heading), static_cast<double>(letters(heading)) * 16 * kLetter, kHeading};
  if (!p.note.empty()) {
    out.content += text_at(0, out.height + 10, "note", p.note);
    out.width = std::max(out.width, static_cast<double>(letters(p.note)) * 12 * kLetter);
    out.height += 24;
  }
  Shelves sheet(0, out.height, kSheetWidth - 2 * kSheetMargin, kBetween);
  for (size_t i = 0; i < p.tensors.size(); ++i) {
    const Drawing tensor = draw_tensor(p, i, kind);
    const Point at = sheet.put(tensor.width, tensor.height);
    out.content += placed(at, "tensor", tensor.content);
  }
  out.width = std::max(out.width, sheet.right());
  out.height = std::max(out.height, sheet.bottom());
  return out;
}

std::string tensor_title(const TensorPicture& t) {
  std::string out = t.op + " : " + t.type;
  for (size_t i = 0; i < t.conditions.size(); ++i) out += (i == 0 ? "\nruns where " : " and ") + t.conditions[i];
  return out;
}

}  // namespace

Drawing draw_tensor(const Picture& picture, size_t tensor, IdGraphKind kind) {
  const TensorPicture& t = picture.tensors[tensor];
  const TensorLayout layout = lay_out(picture, tensor);
  constexpr size_t kMostLetters = 56;
  const std::string type = shortened(t.type, kMostLetters), op = shortened(t.op, kMostLetters);
  const std::string name = shortened(t.name, 40);
  const double title = static_cast<double>(letters(name) + 2 + letters(type)) * kNameSize * kLetter;
  const double wanted = std::max(title, static_cast<double>(letters(op)) * kTextSize * kLetter) + 24;
  Drawing out{"", std::max(layout.width, wanted), std::max(layout.height, 62.0)};
  out.content = fmt::format("<rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"6\"/>\n",
                            number(out.width - 1), number(out.height - 1));
  out.content += "<g class=\"head\"><title>" + escaped(tensor_title(t)) + "</title>";
  out.content +=
      fmt::format("<text x=\"12\" y=\"20\" class=\"tensor-name\">{}<tspan class=\"tensor-type\"> : {}</tspan></text>",
                  escaped(name), escaped(type));
  out.content += text_at(12, 37, "op", op) + "</g>\n";
  for (const RowLabel& label : layout.labels) {
    const auto lines = static_cast<double>(std::count(label.text.begin(), label.text.end(), '\n')) + 1;
    double y = label.y + 4 - (lines - 1) * 6;
    for (size_t from = 0; from <= label.text.size();) {
      const size_t end = std::min(label.text.find('\n', from), label.text.size());
      out.content += text_at(12, y, "row", label.text.substr(from, end - from));
      y += 12;
      from = end + 1;
    }
  }
  // Centres the drawing if a long title made the box wider.
  const double shift = std::max(0.0, (out.width - layout.width) / 2 - 20);
  out.content += fmt::format("<g transform=\"translate({},0)\">\n", number(shift));
  for (const Line& line : layout.lines) out.content += path_of(line);
  for (const PlacedTransform& p : layout.transforms) {
    const Box& b = p.box;
    out.content += fmt::format(
        "<g class=\"transform\"><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"9\"/>",
        escaped(t.transforms[p.transform].text), number(b.x), number(b.y), number(b.width), number(b.height));
    out.content += text_at(b.middle(), b.y + 12.5, "transform-text", shortened(t.transforms[p.transform].text, 28));
    out.content += "</g>\n";
  }
  for (const PlacedDomain& placed : layout.domains) out.content += domain_box(picture, placed, kind);
  out.content += "</g>\n";
  return out;
}

std::string drawing_style() {
  std::string out = R"(text{font-family:"DejaVu Sans Mono",Menlo,Consolas,"Liberation Mono",monospace;fill:#1b1b1b}
.card{fill:#fff;stroke:#b8bec6}
.tensor-name{font-size:13px;font-weight:bold}
.tensor-type{font-weight:normal;fill:#4a4f57}
.op,.type{font-size:11px}
.op,.row{fill:#4a4f57}
.row,.mark-text,.transform-text,.group{font-size:10px}
.name{font-size:13px;font-weight:bold}
.group{text-anchor:end;font-weight:bold}
.transform-text{text-anchor:middle}
.transform rect{fill:#eef0f3;stroke:#8a929c}
.line{fill:none;stroke:#6b7280;stroke-width:1.2}
.line.same{stroke-dasharray:2 3}
.box{fill:#fff;stroke:#3f4650;stroke-width:1.2}
.broadcast .box{stroke-dasharray:1 2}
.holes .box{stroke:#b3261e;stroke-width:2.4;stroke-dasharray:7 4}
.mark.parallel{fill:#2b2f36}
.mark.check{fill:#b3261e}
.mark.hole{fill:#fff;stroke:#b3261e}
.mark.allocation{fill:#fff;stroke:#3f4650}
.mark-text{fill:#fff}
.mark-text.hole{fill:#b3261e}
.mark-text.allocation{fill:#1b1b1b}
.shared{fill:#2b2f36}
.domain:hover .box,.domain:focus .box{stroke-width:3}
.domain:focus{outline:none}
.heading{font-size:16px;font-weight:bold}
.note{font-size:12px;fill:#b3261e}
)";
  constexpr uint32_t kColours = 8;
  for (uint32_t i = 1; i <= kStyles; ++i)
    out += fmt::format(".c{} .box{{fill:{}}}\n", i,
                       i <= kColours ? colour_of(i) : "url(#pattern" + std::to_string(i) + ")");
  return out;
}

std::string drawing_definitions() {
  constexpr uint32_t kColours = 8;
  const std::string_view marks[] = {
      "", "<path d=\"M-2 10L10 -2M4 16L16 4\" stroke=\"#fff\" stroke-opacity=\"0.6\" stroke-width=\"2.5\"/>",
      "<circle cx=\"3\" cy=\"3\" r=\"2\" fill=\"#fff\"/><circle cx=\"9\" cy=\"9\" r=\"2\" fill=\"#fff\"/>",
      "<path d=\"M0 3H12M0 9H12\" stroke=\"#fff\" stroke-opacity=\"0.6\" stroke-width=\"2\"/>"};
  std::string out;
  for (uint32_t i = kColours + 1; i <= kStyles; ++i)
    out += fmt::format(
        "<pattern id=\"pattern{}\" width=\"12\" height=\"12\" patternUnits=\"userSpaceOnUse\"><rect width=\"12\" "
        "height=\"12\" fill=\"{}\"/>{}</pattern>\n",
        i, colour_of(i), marks[(i - 1) / kColours]);
  return out;
}

std::string to_svg(std::span<const Picture> pictures, IdGraphKind kind) {
  Shelves sheet(kSheetMargin, kSheetMargin, kSheetWidth - kSheetMargin, 2 * kBetween);
  std::string body;
  for (const Picture& p : pictures) {
    const Drawing program = draw_program(p, kind);
    const Point at = sheet.put(program.width, program.height);
    body += placed(at, "program", program.content);
  }
  const double width = std::max(sheet.right() + kSheetMargin, 400.0), height = sheet.bottom() + kSheetMargin;
  return fmt::format(
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
             "height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n",
             number(width), number(height)) +
         "<style>\n" + drawing_style() + "</style>\n<defs>\n" + drawing_definitions() + "</defs>\n" +
         fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"#f4f5f7\"/>\n", number(width), number(height)) + body +
         "</svg>\n";
}

}  // namespace fusebox::picture
