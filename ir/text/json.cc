#include "ir/text/json.h"

#include <charconv>
#include <cmath>

#include "ir/text/print.h"

namespace fusebox {
namespace {

// The length of the well-formed UTF-8 sequence that starts here, or 0 if none does.
size_t utf8_length(std::string_view s) {
  const auto at = [&](size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const auto continues = [&](size_t i) { return (at(i) & 0xc0) == 0x80; };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (!continues(1) || !continues(2)) return 0;
    const bool overlong = lead == 0xe0 && at(1) < 0xa0, surrogate = lead == 0xed && at(1) > 0x9f;
    return overlong || surrogate ? 0 : 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    const bool overlong = lead == 0xf0 && at(1) < 0x90, beyond = lead == 0xf4 && at(1) > 0x8f;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

void append_code_point(std::string& out, unsigned char byte) {
  constexpr char kHex[] = "0123456789abcdef";
  out += "\\u00";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

// Writes JSON and its commas. Call `key` before each member of an object, and `item` before each item of a list.
class Json {
 public:
  std::string out;

  void open(char bracket) {
    out += bracket;
    first_ = true;
  }
  void close(char bracket) {
    out += bracket;
    first_ = false;
  }
  void item() {
    if (!first_) out += ',';
    first_ = false;
  }
  void key(std::string_view name) {
    item();
    out += '"';
    out += name;
    out += "\":";
  }
  void value(std::string_view s) { out += json_string(s); }
  void value(const std::string& s) { value(std::string_view(s)); }
  void value(bool b) { out += b ? "true" : "false"; }
  void value(int64_t i) { out += std::to_string(i); }
  void value(uint64_t i) { out += std::to_string(i); }
  void value(double d) {
    if (!std::isfinite(d)) return value(std::string_view(std::isnan(d) ? "nan" : d < 0 ? "-inf" : "inf"));
    char buffer[32];
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, d).ptr);
  }
  template <class Tag>
  void value(Id<Tag> id) {
    id ? value(static_cast<uint64_t>(id.index)) : void(out += "null");
  }
  template <class E>
    requires kIsProgramEnum<E>
  void value(E e) {
    value(text(e));
  }
  void value(Dtype d) { value(text(d)); }
  template <class T>
  void value(const std::vector<T>& list) {
    open('[');
    for (const T& t : list) {
      item();
      value(t);
    }
    close(']');
  }
  template <class T>
  void member(std::string_view name, const T& v) {
    key(name);
    value(v);
  }
  // Adds a member only if `says` is set.
  template <class T>
  void optional(std::string_view name, const T& v, bool says) {
    if (says) member(name, v);
  }

  void value(const Attrs& attrs) {
    open('{');
    for (const Attr& a : attrs.list()) {
      const AttrRow& row = row_of(a.key);
      key(row.text);
      const auto texts = enum_texts_of(row.kind);
      if (const auto* i = std::get_if<int64_t>(&a.value)) {
        if (row.kind == AttrKind::kBool)
          value(*i != 0);
        else if (*i >= 0 && static_cast<uint64_t>(*i) < texts.size())
          value(texts[static_cast<size_t>(*i)]);
        else
          value(*i);
      } else {
        std::visit([&](const auto& v) { value(v); }, a.value);
      }
    }
    close('}');
  }

  void value(const Step& s) {
    open('{');
    member("kind", row_of(s.kind).text);
    key("operands");
    open('[');
    for (const StepOperand& o : s.operands) {
      item();
      if (o.is_integer())
        value(o.integer);
      else
        value("%" + o.value + (o.domain.empty() ? "" : "." + o.domain));
    }
    close(']');
    optional("results", s.results, !s.results.empty());
    optional("attrs", s.attrs, !s.attrs.empty());
    close('}');
  }

  void value(const Value& v) {
    open('{');
    optional("name", v.name, !v.constant);
    if (v.constant) member("constant", print_literal(v.dtype, *v.constant));
    member("kind", v.kind);
    member("dtype", v.dtype);
    optional("def", v.def, static_cast<bool>(v.def));
    optional("index_of", v.index_of, static_cast<bool>(v.index_of));
    optional("tensor", v.tensor, static_cast<bool>(v.tensor));
    close('}');
  }

  void value(const Tensor& t) {
    open('{');
    member("value", t.value);
    optional("root", t.root, !t.root.empty());
    member("logical", t.logical);
    optional("allocation", t.allocation, !t.allocation.empty());
    optional("loop", t.loop, !t.loop.empty());
    optional("contiguity", t.contiguity, !t.contiguity.empty());
    optional("loop_broadcasts", t.loop_broadcasts, !t.loop_broadcasts.empty());
    optional("transforms", t.transforms, !t.transforms.empty());
    member("memory", t.memory);
    optional("devices", t.devices, !t.devices.empty());
    optional("inline_at", t.inline_at, static_cast<bool>(t.inline_at));
    optional("circular_depth", t.circular_depth, t.circular_depth != 0);
    close('}');
  }

  void value(const IterDomain& d) {
    open('{');
    member("name", d.name);
    member("tensor", d.tensor);
    member("iter_type", d.iter_type);
    member("parallel", d.parallel);
    optional("extent", d.extent, static_cast<bool>(d.extent));
    optional("expanded", d.expanded, static_cast<bool>(d.expanded));
    optional("def", d.def, static_cast<bool>(d.def));
    optional("like", d.stands_for, static_cast<bool>(d.stands_for));
    close('}');
  }

  void value(const Transform& t) {
    open('{');
    member("kind", t.kind);
    member("inputs", t.inputs);
    member("outputs", t.outputs);
    optional("factor", t.factor, static_cast<bool>(t.factor));
    optional("right", t.right, static_cast<bool>(t.right));
    optional("inner_split", t.inner_split, t.kind == TransformKind::kSplit);
    optional("swizzle", t.swizzle, t.kind == TransformKind::kSwizzle);
    close('}');
  }

  void value(const Op& op) {
    open('{');
    member("kind", row_of(op.kind).text);
    member("operands", op.operands);
    member("results", op.results);
    optional("attrs", op.attrs, !op.attrs.empty());
    optional("regions", op.regions, !op.regions.empty());
    close('}');
  }

  void value(const Region& r) {
    open('{');
    optional("index", r.index, static_cast<bool>(r.index));
    member("ops", r.ops);
    close('}');
  }

  void value(const Graph& g) {
    open('{');
    member("name", g.name);
    member("level", g.level);
    optional("index_bits", int64_t{g.index_bits}, g.level == Level::kKernel || g.index_bits != 64);
    member("values", g.values);
    member("tensors", g.tensors);
    member("domains", g.domains);
    member("transforms", g.transforms);
    member("ops", g.ops);
    member("regions", g.regions);
    close('}');
  }

  void value(const StepList& list) {
    open('{');
    member("name", list.name);
    member("graph", list.graph);
    member("steps", list.steps);
    close('}');
  }

  void value(const Crossing& c) {
    open('{');
    member("value", c.value);
    optional("allocation_order", c.allocation_order, !c.allocation_order.empty());
    optional("contiguity", c.contiguity, !c.contiguity.empty());
    optional("alias", c.alias, !c.alias.empty());
    close('}');
  }

  void value(const Segment& s) {
    open('{');
    member("name", s.name);
    member("executor", s.executor);
    member("ops", s.ops);
    member("inputs", s.inputs);
    member("outputs", s.outputs);
    member("steps", s.steps);
    close('}');
  }

  void value(const Segmentation& s) {
    open('{');
    member("graph", s.graph);
    member("segments", s.segments);
    close('}');
  }

  void value(const InputSpec& s) {
    open('{');
    member("name", s.name);
    member("dtype", s.dtype);
    if (s.is_scalar) {
      member("value", print_literal(s.dtype, s.value));
    } else {
      member("shape", s.shape);
      optional("strides", s.strides, !s.strides.empty());
      optional("offset", s.offset, s.offset != 0);
      member("generator", s.generator);
      member("seed", s.seed);
      member("low", s.low);
      member("high", s.high);
    }
    close('}');
  }

  void value(const InputSpecs& s) {
    open('{');
    member("graph", s.graph);
    member("where", s.where);
    member("specs", s.specs);
    close('}');
  }

  void value(const Module& m) {
    open('{');
    member("graphs", m.graphs);
    member("step_lists", m.step_lists);
    member("segmentations", m.segmentations);
    member("input_specs", m.input_specs);
    close('}');
  }

 private:
  bool first_ = true;
};

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text[0]);
    size_t length = utf8_length(text);
    if (length == 0 || byte < 0x20) {
      append_code_point(out, byte);
      length = 1;
    } else {
      if (byte == '"' || byte == '\\') out += '\\';
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  out += '"';
  return out;
}

std::string to_json(const Graph& g) {
  Json j;
  j.value(compact(g));
  return std::move(j.out);
}

std::string to_json(const Module& m) {
  Module compacted = m;
  for (Graph& g : compacted.graphs) g = compact(g);
  Json j;
  j.value(compacted);
  return std::move(j.out);
}

}  // namespace fusebox
