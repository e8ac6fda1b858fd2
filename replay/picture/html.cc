#include <fmt/format.h>

#include "ir/text/json.h"
#include "replay/picture/page.h"
#include "replay/picture/render.h"

namespace fusebox::picture {
namespace {

// JSON in a form that may stand in a <script> element.
std::string in_script(std::string_view json) {
  std::string out;
  for (char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string string(std::string_view text) { return json_string(printable(text)); }

template <class Range, class Write>
std::string list(const Range& range, Write write) {
  std::string out = "[";
  for (const auto& item : range) out += (out.size() == 1 ? "" : ",") + write(item);
  return out + "]";
}

std::string domain_data(const DomainPicture& d) {
  return fmt::format(
      R"({{"tensor":{},"name":{},"type":{},"extent":{},"made":{},"allocation":{},"parallel":{},"index":{},"leaves":{},"check":{},"reason":{},"reads":{},"groups":{}}})",
      d.tensor, string(d.full_name), string(text(d.iter_type)), string(d.extent), string(d.made_by),
      d.allocation ? std::to_string(*d.allocation) : "null",
      d.parallel == ParallelType::kSerial ? "\"\"" : string(text(d.parallel)), string(d.index), d.may_leave,
      string(d.check), string(d.reason),
      list(d.reads, [](const Read& r) { return "[" + string(r.by) + "," + string(r.index) + "]"; }),
      list(d.group, [](uint32_t n) { return std::to_string(n); }));
}

std::string tensor_data(const TensorPicture& t) {
  return fmt::format(R"({{"name":{},"type":{},"op":{},"conditions":{}}})", string(t.name), string(t.type), string(t.op),
                     list(t.conditions, string));
}

std::string program_data(const Picture& p) {
  return fmt::format(
      "{{\"name\":{},\"steps\":{},\n\"tensors\":{},\n\"domains\":{},\n\"joins\":{}}}", string(p.name),
      list(p.steps, string), list(p.tensors, tensor_data), list(p.domains, domain_data),
      list(p.joins, [](const Join& j) { return fmt::format("[{},{},{}]", j.a, j.b, string(j.reason)); }));
}

std::string program_body(const Picture& p, size_t program, IdGraphKind kind) {
  std::string out = "<section><h2>" + escaped(p.name) + "</h2>\n";
  if (!p.note.empty()) out += "<p class=\"note\">" + escaped(p.note) + "</p>\n";
  out += "<div class=\"sheet\">\n";
  for (size_t i = 0; i < p.tensors.size(); ++i) {
    const Drawing d = draw_tensor(p, i, kind);
    out += fmt::format(
        "<svg class=\"tensor\" data-program=\"{0}\" data-tensor=\"{1}\" width=\"{2:.0f}\" height=\"{3:.0f}\" "
        "viewBox=\"0 0 {2:.0f} {3:.0f}\">\n{4}</svg>\n",
        program, i, d.width, d.height, d.content);
  }
  return out + "</div></section>\n";
}

}  // namespace

std::string to_html(std::span<const Picture> pictures, IdGraphKind kind) {
  std::string title, body, data;
  for (size_t i = 0; i < pictures.size(); ++i) {
    if (i < 3) title += (i == 0 ? "" : ", ") + pictures[i].name;
    body += program_body(pictures[i], i, kind);
    data += (i == 0 ? "[" : ",\n") + program_data(pictures[i]);
  }
  if (pictures.size() > 3) title += fmt::format(" and {} more", pictures.size() - 3);
  data += pictures.empty() ? "[]" : "]";
  const auto part = [&](std::string_view name) -> std::string {
    if (name == "title") return escaped(title);
    if (name == "style") return drawing_style();
    if (name == "definitions") return drawing_definitions();
    if (name == "kind") return std::string(text(kind));
    if (name == "body") return body;
    return in_script(data);
  };
  // Fills in all parts in one pass, so that text of a part is not taken for a placeholder.
  const std::string_view page = page_template();
  std::string out;
  for (size_t from = 0;;) {
    const size_t begin = page.find("{{", from);
    if (begin == std::string_view::npos) return out += page.substr(from);
    const size_t end = page.find("}}", begin);
    out += page.substr(from, begin - from);
    out += part(page.substr(begin + 2, end - begin - 2));
    from = end + 2;
  }
}

}  // namespace fusebox::picture
