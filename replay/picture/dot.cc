#include <algorithm>

#include "replay/picture/render.h"

namespace fusebox::picture {
namespace {

// A string of dot. A program's name must not end it, nor make a character entity of dot.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : printable(text)) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '&') {
      out += "&amp;";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += ' ';
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + "\"";
}

std::string node(const char* kind, size_t tensor, size_t index) {
  return kind + std::to_string(tensor) + "_" + std::to_string(index);
}

void add_domain(const Picture& p, size_t tensor, size_t index, IdGraphKind kind, std::string& out) {
  const DomainPicture& d = p.domains[index];
  const uint32_t group = d.group[static_cast<size_t>(kind)];
  std::string label = d.name + (group == 0 ? "" : "  #" + std::to_string(group)) + "\n" +
                      std::string(text(d.iter_type)) + " " + d.extent;
  if (d.parallel != ParallelType::kSerial) label += "\n" + std::string(text(d.parallel));
  if (d.may_leave) label += d.check.empty() ? "\nholes" : "\nholes, check";
  out += "    " + node("d", tensor, index) + " [label=" + quoted(label) +
         ", tooltip=" + quoted(hover_text(p, index, kind)) + ", fillcolor=\"" + colour_of(group) + "\"";
  if (d.may_leave) out += ", style=\"filled,dashed\", color=\"#b3261e\", penwidth=2";
  out += "];\n";
}

void add_rank(size_t tensor, const std::vector<size_t>& list, std::string& out) {
  if (list.size() < 2) return;
  out += "    { rank=same;";
  for (size_t d : list) out += " " + node("d", tensor, d) + ";";
  out += " }\n";
}

}  // namespace

std::string to_dot(const Picture& picture, IdGraphKind kind) {
  std::string out = "digraph " + quoted(picture.name) +
                    " {\n  label=" + quoted(picture.name + ": " + std::string(text(kind)) + " graph") +
                    ";\n  node [shape=box, style=filled, fontname=monospace];\n";
  for (size_t k = 0; k < picture.tensors.size(); ++k) {
    const TensorPicture& t = picture.tensors[k];
    out += "  subgraph cluster_" + std::to_string(k) + " {\n    label=" + quoted(t.op + "\n" + t.type) + ";\n";
    for (size_t d : t.domains) add_domain(picture, k, d, kind, out);
    for (size_t i = 0; i < t.transforms.size(); ++i) {
      const TransformPicture& transform = t.transforms[i];
      out +=
          "    " + node("t", k, i) + " [shape=ellipse, fillcolor=\"#eef0f3\", label=" + quoted(transform.text) + "];\n";
      for (size_t d : transform.inputs) out += "    " + node("d", k, d) + " -> " + node("t", k, i) + ";\n";
      for (size_t d : transform.outputs) out += "    " + node("t", k, i) + " -> " + node("d", k, d) + ";\n";
    }
    add_rank(k, t.root, out);
    // A loop domain that is also logical or root is shown in that row.
    std::vector<size_t> made = t.loop;
    std::erase_if(made, [&](size_t d) {
      return std::find(t.logical.begin(), t.logical.end(), d) != t.logical.end() ||
             std::find(t.root.begin(), t.root.end(), d) != t.root.end();
    });
    std::vector<size_t> first = t.logical;
    std::erase_if(first, [&](size_t d) { return std::find(t.root.begin(), t.root.end(), d) != t.root.end(); });
    add_rank(k, first, out);
    add_rank(k, made, out);
    out += "  }\n";
  }
  return out + "}\n";
}

}  // namespace fusebox::picture
