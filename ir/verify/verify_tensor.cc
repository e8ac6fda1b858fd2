// The verifier's rules for the domains of one tensor.
#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/domain/domain_edit.h"
#include "ir/verify/verify_rules.h"

namespace fusebox {
namespace {

struct Arity {
  size_t inputs, outputs;
};
Arity arity_of(TransformKind kind) {
  switch (kind) {
    case TransformKind::kSplit:
      return {1, 2};
    case TransformKind::kMerge:
      return {2, 1};
    case TransformKind::kSwizzle:
      return {2, 2};
    case TransformKind::kResize:
      return {1, 1};
  }
  return {0, 0};
}

bool is_index(const Graph& g, ValueId v) { return g[v].kind == ValueKind::kScalar && g[v].dtype == Dtype::kIndex; }

}  // namespace

void TensorChecker::check(ValueId tensor) {
  value_ = tensor;
  const Tensor& t = g_.tensor_of(tensor);
  check_domains(t);
  check_list(t, t.root, "root");
  check_list(t, t.logical, "logical");
  check_list(t, t.allocation, "allocation");
  check_list(t, t.loop, "loop");
  check_list(t, t.loop_broadcasts, "loop broadcast");
  check_transforms(t);
  if (!t.loop.empty()) check_coverage(t, t.loop, "loop");
  if (!t.allocation.empty()) check_coverage(t, t.allocation, "allocation");
  check_layout(t);
}

void TensorChecker::check_list(const Tensor& t, const std::vector<DomainId>& list, const char* what) {
  ++round_;
  for (DomainId d : list) {
    if (g_[g_[d].tensor].value != t.value)
      invalid("the " + std::string(what) + " domain of a tensor has a domain of another tensor", place_of(g_, d));
    if (marks_[d.index] == round_)
      invalid("the " + std::string(what) + " domain of a tensor has a domain twice", place_of(g_, d));
    marks_[d.index] = round_;
  }
}

namespace {

bool is_part_of_its_tensor(const Graph& g, DomainId d) {
  const Tensor& t = g[g[d].tensor];
  const auto has = [&](const std::vector<DomainId>& list) {
    return std::find(list.begin(), list.end(), d) != list.end();
  };
  return has(t.root) || has(t.logical) || has(t.loop_broadcasts) ||
         std::any_of(t.transforms.begin(), t.transforms.end(), [&](TransformId id) { return has(g[id].outputs); });
}

}  // namespace

// Checks each domain by itself, and that names are unique.
void TensorChecker::check_domains(const Tensor& t) {
  std::string_view few[24];
  std::vector<std::string_view> many;
  size_t count = 0;
  ++round_;
  const auto meet = [&](DomainId id) {
    if (marks_[id.index] == round_) return;
    marks_[id.index] = round_;
    const IterDomain& d = g_[id];
    if (d.name.empty()) invalid("a domain has no name; give it one", place_of(g_, value_));
    if (count < std::size(few))
      few[count] = d.name;
    else
      many.push_back(d.name);
    ++count;
    if (d.def) {
      if (d.extent) invalid("a domain that a transform makes has an extent of its own", place_of(g_, id));
    } else if (!d.extent) {
      if (g_.level != Level::kKernel)
        invalid("a domain has neither an extent nor a transform that makes it", place_of(g_, id));
    } else if (!is_index(g_, d.extent)) {
      invalid("an extent must be an index", place_of(g_, id));
    } else if (const auto n = constant_integer(g_, d.extent)) {
      if (*n < 0) invalid("an extent is negative", place_of(g_, id));
      if (d.iter_type == IterType::kBroadcast && *n != 1)
        invalid("a broadcast domain has the extent 1", place_of(g_, id));
    } else if (d.iter_type == IterType::kBroadcast) {
      invalid("a broadcast domain has the extent 1", place_of(g_, id));
    }
    if (d.stands_for &&
        (d.def || std::find(t.loop_broadcasts.begin(), t.loop_broadcasts.end(), id) == t.loop_broadcasts.end()))
      invalid("only a loop broadcast stands for another domain", place_of(g_, id));
    if (d.stands_for && !is_part_of_its_tensor(g_, d.stands_for))
      invalid("a loop broadcast stands for a domain that is no part of its tensor", place_of(g_, id));
    if (d.expanded && (d.iter_type != IterType::kBroadcast || d.def || !is_index(g_, d.expanded)))
      invalid("only a broadcast has an expanded extent, an index", place_of(g_, id));
    if (d.expanded) {
      const auto n = constant_integer(g_, d.expanded);
      if (n && *n < 0) invalid("an expanded extent is negative", place_of(g_, id));
    }
  };
  for (DomainId d : t.loop_broadcasts)
    if (g_[d].def || g_[d].iter_type != IterType::kBroadcast || g_[d].expanded ||
        position_in(t.root, d) < t.root.size() || position_in(t.logical, d) < t.logical.size())
      invalid("a loop broadcast is a broadcast of one element that is no axis of its tensor", place_of(g_, d));
  for (const auto* list : {&t.root, &t.logical, &t.loop_broadcasts})
    for (DomainId d : *list) meet(d);
  for (TransformId id : t.transforms)
    for (DomainId d : g_[id].outputs) meet(d);
  const auto twice = [&](auto begin, auto end) {
    std::sort(begin, end);
    const auto it = std::adjacent_find(begin, end);
    if (it != end)
      throw Error(ErrorCode::kDuplicateName, "two domains of a tensor have this name; rename one",
                  place_of(g_, value_) + "." + std::string(*it));
  };
  if (!many.empty()) {
    many.insert(many.end(), std::begin(few), std::end(few));
    twice(many.begin(), many.end());
  } else {
    twice(few, few + count);
  }
}

// Checks in the order of the list that each transform finds its inputs and makes outputs that nothing made before.
void TensorChecker::check_transforms(const Tensor& t) {
  const uint32_t made = ++round_;
  const auto is_made = [&](DomainId d) { return marks_[d.index] == made; };
  for (const auto* list : {&t.root, &t.logical, &t.loop_broadcasts})
    for (DomainId d : *list)
      if (!g_[d].def) marks_[d.index] = made;
  const OpId made_by = g_[t.value].def;
  if (made_by && g_[made_by].kind == OpKind::kInput && !t.transforms.empty())
    invalid("an input has transforms, which its strides cannot state; give it axes alone", place_of(g_, value_));
  for (TransformId id : t.transforms) {
    const Transform& f = g_[id];
    const Arity arity = arity_of(f.kind);
    if (f.inputs.size() != arity.inputs || f.outputs.size() != arity.outputs)
      invalid("a " + std::string(text(f.kind)) + " has the wrong number of inputs or outputs", place_of(g_, value_));
    const bool resize = f.kind == TransformKind::kResize, has_factor = resize || f.kind == TransformKind::kSplit;
    if (static_cast<bool>(f.factor) != has_factor || static_cast<bool>(f.right) != resize)
      invalid("a " + std::string(text(f.kind)) + " has a factor that it does not take, or lacks one",
              place_of(g_, value_));
    for (ValueId v : {f.factor, f.right})
      if (v && !is_index(g_, v)) invalid("the factor of a transform must be an index", place_of(g_, value_));
    if (const auto n = f.factor && !resize ? constant_integer(g_, f.factor) : std::nullopt; n && *n < 0)
      invalid("the factor of a split is negative", place_of(g_, value_));
    for (size_t i = 0; i < f.inputs.size(); ++i) {
      if (!is_made(f.inputs[i]))
        invalid("a transform reads a domain that nothing before it makes", place_of(g_, f.inputs[i]));
      if (i > 0 && f.inputs[i] == f.inputs[0]) invalid("a transform reads a domain twice", place_of(g_, f.inputs[i]));
    }
    for (DomainId d : f.outputs) {
      if (g_[d].def != id || g_[g_[d].tensor].value != t.value)
        invalid("a transform makes a domain that does not say so, or of another tensor", place_of(g_, d));
      if (is_made(d)) invalid("two transforms make one domain", place_of(g_, d));
      if (resize && g_[d].iter_type == IterType::kBroadcast)
        invalid("what a resize makes is no broadcast", place_of(g_, d));
      marks_[d.index] = made;
    }
  }
  check_scheduled(t);
  for (const auto* list : {&t.root, &t.logical, &t.allocation, &t.loop, &t.loop_broadcasts})
    for (DomainId d : *list)
      if (!is_made(d)) invalid("no transform of the tensor makes this domain", place_of(g_, d));
  if (!t.root.empty()) {
    for (DomainId d : t.root)
      if (g_[d].def) invalid("a root domain is made by a transform", place_of(g_, d));
    // An axis that an op adds is a broadcast. An axis of a reshape that is not resolved yet is symbolic.
    for (DomainId d : t.logical) {
      const bool is_new = !g_[d].def && std::find(t.root.begin(), t.root.end(), d) == t.root.end();
      const IterType type = g_[d].iter_type;
      const OpId def = g_[t.value].def;
      const bool reshapes = def && g_[def].kind == OpKind::kReshape;
      if (is_new && type != IterType::kBroadcast && !(reshapes && type == IterType::kSymbolic))
        invalid("a logical domain does not follow from the root domain", place_of(g_, d));
    }
  } else {
    for (DomainId d : t.logical)
      if (g_[d].def) invalid("a logical domain follows from a root domain that is not there", place_of(g_, d));
  }
  if (t.inline_at) {
    const auto& loop = loop_of(t);
    if (std::find(loop.begin(), loop.end(), t.inline_at) == loop.end())
      invalid("a tensor is inlined at a domain that is none of its loops", place_of(g_, value_));
  }
}

// Checks the transforms that the op does not have of its own: those that a schedule has added.
void TensorChecker::check_scheduled(const Tensor& t) {
  if (t.transforms.empty()) return;
  const auto of_op = op_transforms(g_, t);
  for (TransformId id : t.transforms) {
    if (std::find(of_op.begin(), of_op.end(), id) != of_op.end()) continue;
    const Transform& f = g_[id];
    if (f.kind == TransformKind::kSplit && constant_integer(g_, f.factor) == 0)
      invalid("a split by 0 leaves its elements without a place", place_of(g_, f.outputs[0]));
    if (!can_transform(g_, f)) invalid("domains of these kinds cannot be transformed so", place_of(g_, f.outputs[0]));
    for (DomainId d : f.outputs)
      if (g_[d].iter_type != made_type(g_, f))
        invalid("a domain is not of the kind that its transform makes", place_of(g_, d));
  }
}

// Checks that the list gives every logical axis through transforms in either direction, and no domain in two ways.
void TensorChecker::check_coverage(const Tensor& t, const std::vector<DomainId>& from, const char* what) {
  const uint32_t known = ++round_;
  const auto is_known = [&](DomainId d) { return marks_[d.index] == known; };
  for (DomainId d : from) marks_[d.index] = known;
  bool used_few[32] = {};
  std::vector<bool> used_many;
  const size_t n = t.transforms.size();
  if (n > std::size(used_few)) used_many.resize(n);
  const auto used = [&](size_t i) { return n > std::size(used_few) ? used_many[i] : used_few[i]; };
  const auto use = [&](size_t i) {
    if (n > std::size(used_few))
      used_many[i] = true;
    else
      used_few[i] = true;
  };
  const auto all_known = [&](const std::vector<DomainId>& list) {
    return std::all_of(list.begin(), list.end(), is_known);
  };
  const auto learn = [&](size_t i, const std::vector<DomainId>& list) {
    use(i);
    for (DomainId d : list) {
      if (is_known(d)) invalid("the " + std::string(what) + " domain gives this domain in two ways", place_of(g_, d));
      marks_[d.index] = known;
    }
  };
  for (bool changed = true; changed;) {
    changed = false;
    // Goes upward from the last transform, then downward from the first. One round is enough for most schedules.
    for (size_t i = n; i-- > 0;) {
      const Transform& f = g_[t.transforms[i]];
      if (used(i) || !all_known(f.outputs)) continue;
      learn(i, f.inputs);
      changed = true;
    }
    for (size_t i = 0; i < n; ++i) {
      const Transform& f = g_[t.transforms[i]];
      if (used(i) || !all_known(f.inputs)) continue;
      learn(i, f.outputs);
      changed = true;
    }
  }
  const bool layout = what[0] == 'a';
  for (DomainId d : t.logical) {
    const IterType type = g_[d].iter_type;
    if (type == IterType::kBroadcast || (layout && type == IterType::kReduction) || is_known(d)) continue;
    invalid("the " + std::string(what) + " domain does not cover this axis", place_of(g_, d));
  }
}

void TensorChecker::check_layout(const Tensor& t) {
  if (!t.contiguity.empty()) {
    const auto allocation = allocation_of(g_, t);
    if (allocation.size() != t.contiguity.size())
      invalid("a tensor has one contiguity for each allocation axis", place_of(g_, value_));
    for (size_t i = 0; i < allocation.size(); ++i)
      if ((t.contiguity[i] == Contiguity::kNone) != (g_[allocation[i]].iter_type == IterType::kBroadcast))
        invalid("contiguity is none at broadcasts, and true or false elsewhere", place_of(g_, allocation[i]));
  }
  for (size_t i = 0; i < t.devices.size(); ++i)
    if (t.devices[i] < 0 || std::find(t.devices.begin(), t.devices.begin() + static_cast<std::ptrdiff_t>(i),
                                      t.devices[i]) != t.devices.begin() + static_cast<std::ptrdiff_t>(i))
      invalid("a device mesh names devices from 0, each once", place_of(g_, value_));
  if (t.circular_depth < 0) invalid("a circular buffer has a negative depth", place_of(g_, value_));
  if (g_.level == Level::kMath && (!t.loop.empty() || t.inline_at || t.circular_depth != 0))
    throw Error(ErrorCode::kWrongLevel, "a tensor of a fusion that is not scheduled has loops", place_of(g_, value_));
  if (g_.level == Level::kKernel && (t.logical.size() != 1 || !t.transforms.empty() || g_[t.logical[0]].def))
    invalid("a buffer of a kernel has one domain", place_of(g_, value_));
}

void check_stage(const Graph& g, ValueId result) {
  const auto refuse = [&](const char* why) {
    invalid("the stage of a reduction " + std::string(why), place_of(g, result));
  };
  for (TransformId id : op_transforms(g, g.tensor_of(result))) {
    const Transform& made = g[id];
    if (made.kind == TransformKind::kResize) refuse("does not reduce its axes whole");
    if (made.kind == TransformKind::kSplit && constant_integer(g, made.factor) == 0) refuse("splits an axis by 0");
    for (DomainId d : made.outputs) {
      const IterType type = g[d].iter_type;
      const auto is_alike = [&](DomainId axis) { return g[axis].iter_type == type; };
      if (type != IterType::kIteration && !std::ranges::all_of(leaves(g, d), is_alike))
        refuse(type == IterType::kReduction ? "reduces a part of an axis that is kept"
                                            : "has a part that is neither reduced nor kept");
    }
  }
}

void check_siblings(const Graph& g, OpId op) {
  if (g[op].results.size() < 2) return;
  for (ValueId v : g[op].results) {
    if (!g.is_tensor(v)) continue;
    const TensorId first = siblings(g, g[v].tensor).front(), own = g[v].tensor;
    const auto of_first = op_transforms(g, g[first]), of_own = op_transforms(g, g[own]);
    bool are_made_alike = of_first.size() == of_own.size();
    for (size_t i = 0; are_made_alike && i < of_own.size(); ++i) {
      const Transform &a = g[of_first[i]], &b = g[of_own[i]];
      are_made_alike = is_same_transform(a, b) &&
                       std::ranges::equal(a.inputs, b.inputs, {}, [&](DomainId d) { return in_sibling(g, own, d); });
    }
    if (!are_made_alike)
      invalid("its axes are made by other transforms than those of %" + g[g[first].value].name +
                  ", which the same op makes; give both the same",
              place_of(g, v));
    const auto &theirs = loop_of(g[first]), &loop = loop_of(g[own]);
    bool correspond = theirs.size() == loop.size();
    for (size_t i = 0; correspond && i < loop.size(); ++i) correspond = in_sibling(g, own, theirs[i]) == loop[i];
    if (!correspond)
      invalid("the loops differ from those of %" + g[g[first].value].name +
                  ", which the same op makes; give both the same loops",
              place_of(g, v));
  }
}

}  // namespace fusebox
