// The verifier's rules for modules: the parts of a module fit together.
#include <algorithm>
#include <set>
#include <string>

#include "ir/scalar/numeric.h"
#include "ir/verify/input_spec.h"
#include "ir/verify/verify.h"
#include "ir/verify/verify_rules.h"

namespace fusebox {
namespace {

const Graph& need_graph(const Module& m, const std::string& name, const char* what) {
  const Graph* g = find_graph(m, name);
  if (!g)
    throw Error(ErrorCode::kUnknownName, std::string(what) + " names a program that the module does not hold",
                "@" + name);
  return *g;
}

void check_steps(const std::vector<Step>& steps, const std::string& place) {
  for (const Step& step : steps) {
    if (static_cast<size_t>(step.kind) >= step_rows().size()) invalid("a step has a number that no step has", place);
    for (const Attr& a : step.attrs.list()) {
      if (static_cast<size_t>(a.key) >= attr_rows().size() || !row_of(step.kind).accepts(a.key))
        throw Error(ErrorCode::kBadAttribute, "a step has an attribute that it does not take", place);
      if (has_unknown_rows(a))
        throw Error(ErrorCode::kBadAttribute,
                    "attribute `" + std::string(row_of(a.key).text) +
                        "` has a number that no row of its enumeration has; correct it",
                    place);
    }
    if (!slot_ranges(*row_of(step.kind).format, step.operands.size()))
      throw Error(ErrorCode::kOperandCount, "a step has operands that its form does not take", place);
  }
}

const Op* defining_op(const Graph& g, NameIndex& names, const std::string& value) {
  const auto v = names.find(value);
  return v && g[*v].def ? &g[g[*v].def] : nullptr;
}

void check_crossing(const Graph& g, NameIndex& values, const Crossing& c) {
  const auto value = values.find(c.value);
  if (!value)
    throw Error(ErrorCode::kUnknownName, "a value crosses a segment's border that the program does not have",
                "%" + c.value);
  if (!g.is_tensor(*value)) invalid("only tensors cross a segment's border", "%" + c.value);
  const auto alias = c.alias.empty() ? value : values.find(c.alias);
  if (!alias) throw Error(ErrorCode::kUnknownName, "a value aliases one that the program does not have", "%" + c.alias);
  if (!g.is_tensor(*alias)) invalid("a value aliases one that is no tensor", "%" + c.alias);
  if (!c.allocation_order.empty() && c.allocation_order.size() != rank_of(g, *value))
    throw Error(ErrorCode::kBadAxis, "an allocation order names each axis once", "%" + c.value);
  std::vector<int64_t> order = c.allocation_order;
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int64_t>(i))
      throw Error(ErrorCode::kBadAxis, "an allocation order names each axis once", "%" + c.value);
  for (Contiguity x : c.contiguity)
    if (static_cast<size_t>(x) >= enum_texts<Contiguity>().size())
      invalid("a contiguity has an unknown number", "%" + c.value);
}

void check_segmentation(const Module& m, const Segmentation& s) {
  const Graph& g = need_graph(m, s.graph, "a segmentation");
  NameIndex values(g);
  std::set<std::string> names;
  for (const Segment& segment : s.segments) {
    const std::string place = "@" + segment.name;
    if (segment.name.empty() || !names.insert(segment.name).second)
      throw Error(ErrorCode::kDuplicateName, "a segment has no name of its own; give it one", place);
    if (static_cast<size_t>(segment.executor) >= enum_texts<SegmentExecutor>().size())
      invalid("a segment has an unknown executor", place);
    for (const std::string& op : segment.ops)
      if (!defining_op(g, values, op))
        throw Error(ErrorCode::kUnknownName, "a segment names an op that the program does not have", "%" + op);
    for (const auto* list : {&segment.inputs, &segment.outputs})
      for (const Crossing& c : *list) check_crossing(g, values, c);
    check_steps(segment.steps, place);
  }
}

}  // namespace

void check_spec(const Graph& g, NameIndex& values, const InputSpec& spec) {
  const std::string place = "%" + spec.name;
  const Op* op = defining_op(g, values, spec.name);
  if (!op || op->kind != OpKind::kInput)
    throw Error(ErrorCode::kUnknownName, "an input spec names no input of the program", place);
  if (static_cast<size_t>(spec.dtype) >= dtype_rows().size() ||
      static_cast<size_t>(spec.generator) >= enum_texts<InputGenerator>().size())
    invalid("an input spec has an unknown dtype or generator", place);
  if (!is_canonical(spec.dtype, spec.value))
    throw Error(ErrorCode::kBadInputSpec,
                "the value of an input spec has bits beyond its dtype " + std::string(text(spec.dtype)), place);
  for (int64_t n : spec.shape)
    if (n < 0) throw Error(ErrorCode::kBadInputSpec, "an input spec has a negative extent", place);
  if (!spec.strides.empty() && spec.strides.size() != spec.shape.size())
    throw Error(ErrorCode::kBadInputSpec, "an input spec has one stride for each axis", place);
  if (spec.offset < 0) throw Error(ErrorCode::kBadInputSpec, "an input spec has a negative offset", place);
}

namespace {

void check_launches(const Module& m, const Graph& host) {
  for (OpId id : ops_in_order(host)) {
    const Op& op = host[id];
    if (op.kind != OpKind::kLaunch) continue;
    const std::string name(op.attrs.string(AttrKey::kName));
    const auto found = std::find_if(m.graphs.begin(), m.graphs.end(),
                                    [&](const Graph& g) { return g.level == Level::kKernel && g.name == name; });
    if (found == m.graphs.end())
      throw Error(ErrorCode::kUnknownName, "a launch names a kernel that the module does not hold", "@" + name);
    const Graph& kernel = *found;
    const auto parameters = inputs(kernel);
    const size_t fixed = 7;
    if (op.operands.size() != fixed + parameters.size())
      throw Error(ErrorCode::kOperandCount,
                  "a launch gives " + std::to_string(op.operands.size() - fixed) + " arguments to a kernel of " +
                      std::to_string(parameters.size()),
                  "@" + name);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Value &given = host[op.operands[fixed + i]], &wanted = kernel[parameters[i]];
      // A kernel takes elements of dtype index as 64-bit integers.
      const bool is_index_data =
          given.kind == ValueKind::kTensor && given.dtype == Dtype::kIndex && wanted.dtype == Dtype::kInt64;
      if (given.kind != wanted.kind || (given.dtype != wanted.dtype && !is_index_data))
        throw Error(ErrorCode::kDtypeMismatch,
                    "a launch gives a " + std::string(text(given.dtype)) + " " + std::string(text(given.kind)) +
                        " for a " + std::string(text(wanted.dtype)) + " " + std::string(text(wanted.kind)),
                    "@" + name + ".%" + wanted.name);
    }
  }
}

}  // namespace

void verify(const Module& m) {
  std::set<std::pair<Level, std::string>> names;
  for (const Graph& g : m.graphs) {
    verify(g);
    if (!names.emplace(g.level, g.name).second)
      throw Error(ErrorCode::kDuplicateName, "two programs of one level have this name; rename one", "@" + g.name);
  }
  for (const Graph& g : m.graphs)
    if (g.level == Level::kHost) check_launches(m, g);
  std::set<std::pair<std::string, std::string>> lists;
  for (const StepList& list : m.step_lists) {
    need_graph(m, list.graph, "a step list");
    if (!lists.emplace(list.graph, list.name).second)
      throw Error(ErrorCode::kDuplicateName, "a program has two step lists of one name; rename one", "@" + list.graph);
    check_steps(list.steps, "@" + list.graph);
  }
  for (const Segmentation& s : m.segmentations) check_segmentation(m, s);
  for (const InputSpecs& specs : m.input_specs) {
    const Graph& g = need_graph(m, specs.graph, "a list of inputs");
    NameIndex values(g);
    std::set<std::string> seen;
    for (const InputSpec& spec : specs.specs) {
      check_spec(g, values, spec);
      if (!seen.insert(spec.name).second)
        throw Error(ErrorCode::kDuplicateName, "a list of inputs has this input twice", "%" + spec.name);
    }
  }
}

std::optional<Error> find_error(const Module& m) {
  try {
    verify(m);
  } catch (const Error& e) {
    return e;
  }
  return std::nullopt;
}

}  // namespace fusebox
