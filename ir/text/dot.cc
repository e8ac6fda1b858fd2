#include "ir/text/dot.h"

#include <algorithm>

#include "ir/text/print.h"
#include "ir/token/lex.h"

namespace fusebox {
namespace {

std::string node(const char* kind, uint32_t index) { return kind + std::to_string(index); }

// The text as a label. Its lines are left-aligned.
std::string label(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '\n') {
      out += "\\l";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\0' ? ' ' : c;
  }
  return out + "\"";
}

class OpsDrawing {
 public:
  explicit OpsDrawing(const Graph& g) : g_(g) {}

  std::string run() {
    out_ = "digraph " + label(g_.name) + " {\n  node [shape=box, fontname=monospace];\n";
    region(Graph::body(), 1);
    for (OpId op : ops_in_order(g_)) edges(op);
    return out_ + "}\n";
  }

 private:
  void region(RegionId id, size_t depth) {
    const std::string indent(2 * depth, ' ');
    for (OpId op : g_[id].ops) {
      out_ += indent + node("op", op.index) + " [label=" + label(print_op(g_, op)) + "];\n";
      for (RegionId inner : g_[op].regions) {
        const ValueId index = g_[inner].index;
        out_ += indent + "subgraph cluster_" + std::to_string(inner.index) + " {\n" + indent + "  label=" +
                label(std::string(row_of(g_[op].kind).text) + (index ? " " + print_value(g_, index) : std::string())) +
                ";\n";
        region(inner, depth + 1);
        out_ += indent + "}\n";
      }
    }
  }

  void edges(OpId op) {
    std::vector<ValueId> seen;
    for (ValueId v : g_[op].operands) {
      if (!v || std::find(seen.begin(), seen.end(), v) != seen.end()) continue;
      seen.push_back(v);
      if (const OpId def = g_[v].def)
        out_ += "  " + node("op", def.index) + " -> " + node("op", op.index) + " [label=" + label(print_value(g_, v)) +
                "];\n";
    }
  }

  const Graph& g_;
  std::string out_;
};

class DomainsDrawing {
 public:
  explicit DomainsDrawing(const Graph& g) : g_(g) {}

  std::string run() {
    out_ = "digraph " + label(g_.name) + " {\n  node [shape=box, fontname=monospace];\n";
    for (size_t i = 0; i < g_.tensors.size(); ++i) tensor(i);
    return out_ + "}\n";
  }

 private:
  void tensor(size_t index) {
    const Tensor& t = g_.tensors[index];
    out_ += "  subgraph cluster_" + std::to_string(index) +
            " {\n    label=" + label(print_value(g_, t.value) + " : " + print_type(g_, t.value)) + ";\n";
    std::vector<DomainId> domains;
    const auto add = [&](DomainId d) {
      if (std::find(domains.begin(), domains.end(), d) == domains.end()) domains.push_back(d);
    };
    for (const auto* list : {&root_of(t), &t.logical, &t.loop_broadcasts, &t.allocation})
      for (DomainId d : *list) add(d);
    for (TransformId id : t.transforms) {
      for (DomainId d : g_[id].inputs) add(d);
      for (DomainId d : g_[id].outputs) add(d);
    }
    for (DomainId d : loop_of(t)) add(d);
    for (DomainId d : domains) domain(t, d);
    for (TransformId id : t.transforms) transform(id);
    out_ += "  }\n";
  }

  void domain(const Tensor& t, DomainId id) {
    const IterDomain& d = g_[id];
    std::string text = d.name + " " + std::string(fusebox::text(d.iter_type));
    if (d.extent) text += " " + print_value(g_, d.extent);
    if (d.expanded) text += "*" + print_value(g_, d.expanded);
    const auto& loop = loop_of(t);
    const auto at = std::find(loop.begin(), loop.end(), id);
    if (at != loop.end()) {
      text += "\nloop " + std::to_string(at - loop.begin());
      if (d.parallel != ParallelType::kSerial) text += " " + std::string(fusebox::text(d.parallel));
      if (t.inline_at == id) text += " inline_at";
    }
    out_ += "    " + node("d", id.index) + " [label=" + label(text) + (at != loop.end() ? ", penwidth=2" : "") + "];\n";
  }

  void transform(TransformId id) {
    const Transform& t = g_[id];
    std::string text(fusebox::text(t.kind));
    if (t.factor) text += " " + print_value(g_, t.factor);
    if (t.right) text += ", " + print_value(g_, t.right);
    if (t.kind == TransformKind::kSplit) text += t.inner_split ? " inner" : " outer";
    if (t.kind == TransformKind::kSwizzle) text += " " + std::string(fusebox::text(t.swizzle));
    out_ += "    " + node("t", id.index) + " [shape=ellipse, label=" + label(text) + "];\n";
    for (DomainId d : t.inputs) out_ += "    " + node("d", d.index) + " -> " + node("t", id.index) + ";\n";
    for (DomainId d : t.outputs) out_ += "    " + node("t", id.index) + " -> " + node("d", d.index) + ";\n";
  }

  const Graph& g_;
  std::string out_;
};

}  // namespace

std::string ops_to_dot(const Graph& g) { return OpsDrawing(compact(g)).run(); }
std::string domains_to_dot(const Graph& g) { return DomainsDrawing(compact(g)).run(); }

}  // namespace fusebox
