// Prints types: dtype, dimensions, memory and contiguity, and other domains and marks if a tensor has them.
#include <algorithm>

#include "ir/text/print.h"
#include "ir/token/printer.h"

namespace fusebox {
namespace {

// Whether the parser takes this for an extent if no name stands before it.
bool reads_as_extent(const Graph& g, ValueId v) { return !v || !g[v].constant || g[v].dtype == Dtype::kIndex; }

bool is_constant_one(const Graph& g, ValueId v) {
  return v && g[v].constant && g[v].dtype == Dtype::kIndex && g[v].constant->low == 1;
}

// Whether unnamed dimensions say everything about the domains of this tensor.
bool is_plain(const Graph& g, const Tensor& t) {
  if (!t.root.empty() || !t.allocation.empty() || !t.loop.empty() || !t.loop_broadcasts.empty() ||
      !t.transforms.empty() || !t.devices.empty() || t.inline_at || t.circular_depth != 0)
    return false;
  for (size_t i = 0; i < t.logical.size(); ++i) {
    const IterDomain& d = g[t.logical[i]];
    if (d.def || d.stands_for || d.parallel != ParallelType::kSerial || d.name != "i" + std::to_string(i) ||
        !reads_as_extent(g, d.extent) || !reads_as_extent(g, d.expanded))
      return false;
  }
  return true;
}

}  // namespace

void Printer::add_extent(const Graph& g, const IterDomain& d) {
  d.extent ? add_value(g, d.extent) : add('?');
  if (d.expanded) {
    add('*');
    add_value(g, d.expanded);
  }
}

// `%m` is an iteration and `1` a broadcast. Any other dimension says its iteration type.
void Printer::add_unnamed_dimension(const Graph& g, const IterDomain& d) {
  const bool one = is_constant_one(g, d.extent);
  const bool says_itself =
      d.iter_type == IterType::kBroadcast ? one : d.iter_type == IterType::kIteration && !one && !d.expanded;
  if (!says_itself) {
    add(text(d.iter_type));
    add(' ');
  }
  add_extent(g, d);
}

void Printer::add_declaration(const Graph& g, DomainId id) {
  const IterDomain& d = g[id];
  declared_.set(id, stamp_);
  add_word(d.name);
  add(' ');
  add(text(d.iter_type));
  if (d.extent || d.expanded) {
    add(' ');
    add_extent(g, d);
  }
  if (d.parallel != ParallelType::kSerial && !looped_.has(id, stamp_)) {
    add(' ');
    add(text(d.parallel));
  }
  if (d.stands_for) {
    add(" like ");
    add_name('%', g[g[g[d.stands_for].tensor].value].name);
    add('.');
    add_word(g[d.stands_for].name);
  }
}

void Printer::add_reference(const Graph& g, const Tensor& t, DomainId d) {
  if (g[d].tensor != g[t.value].tensor) {  // the graph does not verify
    add_name('%', g[g[g[d].tensor].value].name);
    add('.');
  }
  add_word(g[d].name);
}

void Printer::add_references(const Graph& g, const Tensor& t, std::string_view word,
                             const std::vector<DomainId>& list) {
  add(word);
  add(" [");
  add_list(list, [&](DomainId d) { add_reference(g, t, d); });
  add(']');
}

// A transform declares the domains that it makes. Any other domain is declared where it stands first.
void Printer::add_dimension(const Graph& g, const Tensor& t, DomainId d) {
  g[d].def || declared_.has(d, stamp_) ? add_reference(g, t, d) : add_declaration(g, d);
}

void Printer::add_transform(const Graph& g, const Tensor& t, TransformId id) {
  const Transform& tr = g[id];
  add_list(tr.outputs, [&](DomainId d) { g[d].def == id ? add_declaration(g, d) : add_reference(g, t, d); });
  add(" = ");
  add(text(tr.kind));
  add(' ');
  add_list(tr.inputs, [&](DomainId d) { add_reference(g, t, d); });
  if (tr.factor) {
    add(" by ");
    add_value(g, tr.factor);
  }
  if (tr.right) {
    add(tr.factor ? ", " : " by _, ");
    add_value(g, tr.right);
  }
  if (tr.kind == TransformKind::kSplit || !tr.inner_split) add(tr.inner_split ? " inner" : " outer");
  if (tr.kind == TransformKind::kSwizzle || tr.swizzle != SwizzleType::kXor) {
    add(' ');
    add(text(tr.swizzle));
  }
}

// The domains that neither a list of declarations nor a transform declares.
std::vector<DomainId> Printer::undeclared(const Graph& g, const Tensor& t) {
  std::vector<DomainId> result;
  const auto visit = [&](DomainId d) {
    if (d && !g[d].def && !declared_.has(d, stamp_) && g[d].tensor == g[t.value].tensor && seen_.set(d, stamp_))
      result.push_back(d);
  };
  for (TransformId id : t.transforms) {
    for (DomainId d : g[id].inputs) visit(d);
    for (DomainId d : g[id].outputs) visit(d);
  }
  for (DomainId d : t.allocation) visit(d);
  for (DomainId d : t.loop) visit(d);
  visit(t.inline_at);
  return result;
}

void Printer::add_details(const Graph& g, const Tensor& t, int depth) {
  const size_t from = out.size();
  const auto line = [&] { add_line(depth + 1); };
  const auto declare = [&](std::string_view word, const std::vector<DomainId>& list) {
    line();
    add(word);
    add(" [");
    add_list(list, [&](DomainId d) { add_dimension(g, t, d); });
    add(']');
  };
  out += " {";
  if (!t.root.empty()) declare("root", t.root);
  if (!t.loop_broadcasts.empty()) declare("loop_broadcasts", t.loop_broadcasts);
  if (const auto rest = undeclared(g, t); !rest.empty()) declare("domains", rest);
  for (TransformId id : t.transforms) {
    line();
    add_transform(g, t, id);
  }
  if (!t.allocation.empty()) {
    line();
    add_references(g, t, "allocation", t.allocation);
  }
  if (!t.loop.empty()) {
    line();
    add("loop [");
    add_list(t.loop, [&](DomainId d) {
      add_reference(g, t, d);
      if (g[d].parallel == ParallelType::kSerial) return;
      add(' ');
      add(text(g[d].parallel));
    });
    add(']');
  }
  if (!t.devices.empty()) {
    line();
    add("mesh ");
    add_integers(t.devices);
  }
  if (t.inline_at) {
    line();
    add("inline_at ");
    add_reference(g, t, t.inline_at);
  }
  if (t.circular_depth != 0) {
    line();
    add("circular_depth ");
    add_integer(t.circular_depth);
  }
  if (out.size() != from + 2) {
    add_line(depth);
    add('}');
  } else if (t.logical.empty()) {
    add('}');  // no name shows that the type is exact, so the braces do
  } else {
    out.resize(from);
  }
}

void Printer::add_type(const Graph& g, ValueId value, TypeForm form, int depth) {
  const Value& v = g[value];
  if (v.kind != ValueKind::kTensor) {
    if (v.kind == ValueKind::kScalar) return add(text(v.dtype));
    add(text(v.kind));
    if (v.dtype == Dtype::kIndex) return;
    add(' ');
    return add(text(v.dtype));
  }
  const Tensor& t = g[v.tensor];
  add(text(v.dtype));
  add('[');
  const bool named = form == TypeForm::kNamed || (form == TypeForm::kExact && !is_plain(g, t));
  if (named) {
    ++stamp_;
    for (DomainId d : t.loop) looped_.set(d, stamp_);
    add_list(t.logical, [&](DomainId d) { add_dimension(g, t, d); });
  } else {
    add_list(form == TypeForm::kUser ? logical_without_reductions(g, t) : t.logical,
             [&](DomainId d) { add_unnamed_dimension(g, g[d]); });
  }
  add(']');
  if (t.memory != MemoryType::kUnset) {
    add(' ');
    add(text(t.memory));
  }
  if (!t.contiguity.empty()) {
    add(" contiguity [");
    add_list(t.contiguity, [&](Contiguity c) { add(text(c)); });
    add(']');
  } else if (v.def && g[v.def].kind == OpKind::kInput && (g.level == Level::kMath || g.level == Level::kScheduled)) {
    add(" contiguous");
  }
  if (named) add_details(g, t, depth);
}

std::string print_type(const Graph& g, ValueId value) {
  Printer p;
  p.add_type(g, value, TypeForm::kUser, 0);
  return std::move(p.out);
}

std::string print_domain(const Graph& g, DomainId domain) {
  Printer p;
  p.add_name('%', g[g[g[domain].tensor].value].name);
  p.add('.');
  p.add_word(g[domain].name);
  return std::move(p.out);
}

}  // namespace fusebox
