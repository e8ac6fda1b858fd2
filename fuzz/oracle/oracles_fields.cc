// Oracles about single fields. A program changed in one field has another digest and survives text and bytes. Bytes
// damaged in one field are refused. A step changes exactly the fields that its row names. A result has the dtype that
// ATen documents.
#include <algorithm>
#include <optional>
#include <vector>

#include "fuzz/field_laws/changes.h"
#include "fuzz/field_laws/laws.h"
#include "fuzz/oracle/oracle.h"
#include "ir/canonical/canonical.h"
#include "ir/domain/domain.h"
#include "ir/infer/concretize.h"
#include "ir/infer/infer.h"
#include "ir/step/apply.h"
#include "ir/verify/verify.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/segment.h"
#include "serde/decode.h"
#include "serde/encode.h"

namespace fusebox::fuzz {
namespace {

// A source that depends on the case and on the oracle's salt only.
RandomSource source_of(const OracleRun& run, uint64_t salt) {
  return RandomSource(run.subject().seed * 64 + run.subject().lineage.size() * 8 + salt);
}

// -- digests

bool is_in_order(OpKind kind) { return demands(kind, kEffect | kSignature | kSync | kControl | kRead); }

bool reads(const Graph& g, OpId op, OpId from) {
  return std::any_of(g[op].operands.begin(), g[op].operands.end(), [&](ValueId v) { return v && g[v].def == from; });
}

Graph renamed(Graph g) {
  for (Value& v : g.values)
    if (!v.name.empty()) v.name += "_";
  return g;
}

// The same program in another order and with other names.
Graph rewritten(RandomSource& random, Graph g) {
  auto& body = g[Graph::body()].ops;
  for (size_t tries = 2 * body.size(); tries > 0; --tries) {
    const size_t i = random.below(body.size() - 1);
    const bool both = is_in_order(g[body[i]].kind) && is_in_order(g[body[i + 1]].kind);
    if (both || reads(g, body[i + 1], body[i])) continue;
    std::swap(body[i], body[i + 1]);
    if (find_error(g)) std::swap(body[i], body[i + 1]);
  }
  return renamed(std::move(g));
}

// The segmentation of a graph after `renamed` has renamed its values.
Segmentation renamed(const Graph& g, Segmentation s) {
  const auto rename = [&](std::string& name) {
    if (find_value(g, name)) name += "_";
  };
  for (Segment& segment : s.segments) {
    segment.name += "_";
    for (std::string& op : segment.ops) rename(op);
    for (auto* list : {&segment.inputs, &segment.outputs})
      for (Crossing& c : *list) rename(c.value), rename(c.alias);
    for (Step& step : segment.steps)
      for (StepOperand& o : step.operands) rename(o.value);
  }
  return s;
}

// -- changes of single members

void report(OracleRun& run, std::string_view stage, const FieldChange& change, const Broken& broken) {
  if (broken)
    run.report(stage, text(field_kinds()[change.kind]), "", text(change) + ": " + broken->law + ": " + broken->message);
}

// All graphs that exist for a case.
std::vector<const Graph*> graphs_of(OracleRun& run) {
  std::vector<const Graph*> graphs = {&run.fusion()};
  if (const Compiled* c = run.compiled()) {
    graphs.push_back(&c->host);
    for (size_t i = 0; i < c->kernels.size(); ++i)
      for (const Graph* g : {&c->scheduled[i], &c->kernels[i]})
        if (!g->ops.empty()) graphs.push_back(g);
  }
  return graphs;
}

// Makes a few changes of a value that belongs to a graph.
template <class T>
void change_beside(OracleRun& run, RandomSource& random, const Graph& g, const T& was) {
  const ChangeNames names = names_of(g);
  for (int i = 0; i < 2; ++i) {
    T changed = was;
    const FieldChange change = draw_change(random, changed, names);
    Asked asked;
    report(run, "fields", change, broken_by(g, was, changed, run.options().defects, asked));
  }
}

// -- damage

void damage(RandomSource& random, std::string& bytes) {
  const size_t at = 2 * random.below(bytes.size() / 2);
  const uint64_t value = random.pick({uint64_t{0}, uint64_t{0x00ff}, uint64_t{0xffff}, random.below(0x10000)});
  bytes[at] = static_cast<char>(value & 0xff);
  if (at + 1 < bytes.size()) bytes[at + 1] = static_cast<char>(value >> 8);
}

std::optional<Error> decode_error(const std::string& bytes, const Defects& defects) {
  try {
    decode_module_structure(bytes_of(bytes), defects);
  } catch (const Error& e) {
    return e;
  }
  return std::nullopt;
}

// Writes something that no module may hold: a reference past the end, or a number that no row has.
void spoil(RandomSource& random, Graph& g) {
  const auto past = [&](size_t size) { return size + random.below(3); };
  Op& op = g.ops[random.below(g.ops.size())];
  switch (random.below(5)) {
    case 0:
      op.kind = static_cast<OpKind>(past(op_rows().size()));
      return;
    case 1:
      op.results.assign(op.results.size() + 1, ValueId(past(g.values.size())));
      return;
    case 2:
      op.operands.assign(op.operands.size() + 1, ValueId(past(g.values.size())));
      return;
    case 3:
      g.values[random.below(g.values.size())].dtype = static_cast<Dtype>(past(dtype_rows().size()));
      return;
    default:
      g[Graph::body()].ops.push_back(OpId(past(g.ops.size())));
  }
}

// -- dtypes

// c10's promotion rules, written down a second time. Nothing for dtypes that it does not promote or that only Fusebox
// has.
std::optional<int> category(Dtype d) {
  if (is_storage_only(d) || d == Dtype::kIndex || (is_floating(d) && bits(d) < 16)) return std::nullopt;
  if (is_integer(d) && !is_signed(d) && bits(d) > 8) return std::nullopt;
  return is_boolean(d) ? 0 : is_integer(d) ? 1 : is_floating(d) ? 2 : 3;
}

Dtype promoted(Dtype a, Dtype b) {
  if (*category(a) > *category(b)) std::swap(a, b);
  if (is_complex(b)) return a == Dtype::kDouble || a == Dtype::kComplexDouble ? Dtype::kComplexDouble : b;
  if (*category(a) < *category(b) || a == b) return b;
  if (is_floating(a) && bits(a) == 16 && bits(b) == 16) return Dtype::kFloat;
  if (is_integer(a) && bits(a) == 8 && bits(b) == 8) return Dtype::kInt16;
  return bits(a) > bits(b) ? a : b;
}

std::optional<Dtype> documented_dtype(const Graph& g, const Op& op) {
  switch (op.kind) {
    case OpKind::kSum:
    case OpKind::kProd: {
      const Dtype d = g[op.operands[0]].dtype;
      if (op.attrs.has(AttrKey::kDtypeAttr) || is_storage_only(d)) return std::nullopt;
      return is_integer(d) || is_boolean(d) ? Dtype::kInt64 : d;
    }
    case OpKind::kAdd:
    case OpKind::kSub:
    case OpKind::kMul:
    case OpKind::kWhere:
    case OpKind::kMinimum:
    case OpKind::kMaximum:
    case OpKind::kRemainder:
    case OpKind::kFmod:
    case OpKind::kPow:
    case OpKind::kBitwiseAnd:
    case OpKind::kBitwiseOr:
    case OpKind::kBitwiseXor:
      break;
    default:  // any other: no rule is written here
      return std::nullopt;
  }
  std::optional<Dtype> tensors, scalars;
  for (size_t i = op.kind == OpKind::kWhere ? 1 : 0; i < op.operands.size(); ++i) {
    const ValueId v = op.operands[i];
    if (!category(g[v].dtype)) return std::nullopt;
    std::optional<Dtype>& side = g.is_tensor(v) ? tensors : scalars;
    side = side ? promoted(*side, g[v].dtype) : g[v].dtype;
  }
  if (!tensors || !scalars) return tensors ? tensors : scalars;
  if (*category(*scalars) <= *category(*tensors)) return *tensors;
  // A complex scalar takes the width of the floats it is combined with.
  if (is_complex(*scalars) && is_floating(*tensors)) return promoted(*tensors, Dtype::kComplexFloat);
  return promoted(*tensors, *scalars);
}

// -- steps

std::vector<std::string> loop_names(const Graph& g, TensorId t) {
  std::vector<std::string> names;
  for (DomainId d : loop_of(g[t])) names.push_back(g[d].name);
  return names;
}

bool has_transform_like(const Graph& g, const Tensor& t, const Transform& wanted, const std::string& output) {
  return std::any_of(t.transforms.begin(), t.transforms.end(), [&](TransformId id) {
    return g[g[id].outputs[0]].name == output && is_same_transform(g[id], wanted);
  });
}

// Checks what a step of this kind promises about the graph after it. Returns the broken promise.
std::string broken_promise(const Graph& before, const Graph& after, const Step& step) {
  const auto value = [&](size_t i) { return find_value(after, step.operands[i].value); };
  if (step.operands.empty() || !value(0) || !after.is_tensor(*value(0))) return {};
  const TensorId t = after[*value(0)].tensor;
  switch (step.kind) {
    case StepKind::kInlineAt:
      if (!after[t].inline_at || after[after[t].inline_at].name != step.operands[0].domain)
        return "is inlined at another loop";
      return {};
    case StepKind::kReorder: {
      std::vector<std::string> wanted, found;
      for (size_t i = 1; i < step.operands.size(); ++i) wanted.push_back(step.operands[i].domain);
      for (const std::string& name : loop_names(after, t))
        if (std::find(wanted.begin(), wanted.end(), name) != wanted.end()) found.push_back(name);
      return found == wanted ? "" : "has its loops in another order";
    }
    case StepKind::kTransformLike:
    case StepKind::kPropagate: {
      // A transform that is new on another tensor must exist here too.
      for (const Tensor& other : after.tensors) {
        if (!other.value || other.transforms.empty()) continue;
        const auto old = find_value(before, after[other.value].name);
        if (!old || !before.is_tensor(*old)) continue;
        for (TransformId id : other.transforms) {
          const std::string& name = after[after[id].outputs[0]].name;
          // A name that was taken gets a number appended, and may then match something else.
          if (name.find('_') != std::string::npos) continue;
          const auto makes_it = [&](const Tensor& x) {
            return std::any_of(x.transforms.begin(), x.transforms.end(),
                               [&](TransformId k) { return before[before[k].outputs[0]].name == name; });
          };
          const bool is_new = !makes_it(before.tensor_of(*old));
          // The source of the propagation may be a tensor that already had a domain of this name.
          if (std::any_of(before.tensors.begin(), before.tensors.end(), [&](const Tensor& x) {
                return x.value && before[x.value].name != step.operands[0].value && makes_it(x);
              }))
            continue;
          const bool has_name = std::any_of(after[t].transforms.begin(), after[t].transforms.end(),
                                            [&](TransformId k) { return after[after[k].outputs[0]].name == name; });
          if (is_new && has_name && !has_transform_like(after, after[t], after[id], name))
            return "is transformed unlike %" + after[other.value].name;
        }
      }
      return {};
    }
    case StepKind::kParallelizeLike: {
      const auto ids = step.attrs.ints(AttrKey::kThreads);
      for (size_t i = 0; i < std::min(before.domains.size(), after.domains.size()) && !ids.empty(); ++i) {
        const ParallelType p = after.domains[i].parallel;
        if (p != before.domains[i].parallel && std::find(ids.begin(), ids.end(), static_cast<int64_t>(p)) == ids.end())
          return "copies the type " + std::string(text(p)) + ", which is not listed";
      }
      return {};
    }
    case StepKind::kCacheBefore:
    case StepKind::kCacheAfter:
    case StepKind::kCacheFork:
      if (const auto made = find_value(after, step.results[0]); made && after[*made].dtype != after[*value(0)].dtype)
        return "has a copy of another dtype";
      return {};
    default:  // any other: promises nothing that is looked at here
      return {};
  }
}

}  // namespace

void digests(OracleRun& run) {
  const Graph& g = run.fusion();
  const Defects& defects = run.options().defects;
  if (g.ops.size() < 2 || g[Graph::body()].ops.size() < 2) return;
  RandomSource random = source_of(run, 1);
  const Digest own = digest(g, defects);
  if (!(digest(rewritten(random, g), defects) == own))
    run.report("digests", "order", "", "the same program in another order, with other names, has another digest");
  if (const Compiled* c = run.compiled()) {
    const Graph other = renamed(c->concretized);
    if (!(digest(other, renamed(c->concretized, c->segmentation), defects) ==
          digest(c->concretized, c->segmentation, defects)))
      run.report("digests", "segments", "", "the same segmentation with other names has another digest");
  }
  for (int made = 0; made < run.options().field_changes; made += 2) {
    const Graph& kept = *random.pick(graphs_of(run));
    const GraphLaws laws(kept, defects);
    for (int i = 0; i < 2; ++i) {
      Graph changed = kept;
      const FieldChange change = draw_change(random, changed, {});
      Asked asked;
      report(run, "digests", change, laws.broken_in_digest(changed, asked));
    }
  }
}

namespace {

// Makes two changes of one value of the case: a graph or a value that belongs to one.
void change_one_value(OracleRun& run, RandomSource& random) {
  const Compiled* c = run.compiled();
  switch (random.below(5)) {
    case 0:
      if (!run.subject().module.step_lists.empty())
        return change_beside(run, random, run.fusion(), run.subject().module.step_lists[0]);
      break;
    case 1:
      return change_beside(run, random, run.fusion(), run.subject().inputs());
    case 2:
      if (c && !c->segmentation.segments.empty()) return change_beside(run, random, c->concretized, c->segmentation);
      break;
    default:
      break;
  }
  const Graph& kept = *random.pick(graphs_of(run));
  if (kept.values.empty()) return;
  const GraphLaws laws(kept, run.options().defects);
  for (int i = 0; i < 2; ++i) {
    Graph changed = kept;
    const FieldChange change = draw_change(random, changed, {});
    Asked asked;
    report(run, "fields", change, laws.broken_in_bytes(changed, asked));
    report(run, "fields", change, laws.broken_in_text(changed, asked));
  }
}

}  // namespace

void field_round_trips(OracleRun& run) {
  RandomSource random = source_of(run, 3);
  for (int made = 0; made < run.options().field_changes; made += 2) change_one_value(run, random);
}

void damaged_bytes(OracleRun& run) {
  const Defects& defects = run.options().defects;
  Module m = run.subject().module;
  if (m.graphs[0].ops.empty() || m.graphs[0].values.empty()) return;
  if (const Compiled* c = run.compiled())
    for (size_t i = 0; i < c->kernels.size() && i < 1; ++i)
      if (!c->kernels[i].ops.empty()) m.graphs.push_back(c->kernels[i]);
  RandomSource random = source_of(run, 2);
  const std::string bytes = encode_unchecked(m);
  for (int i = 0; i < 16; ++i) {
    std::string damaged = bytes;
    damage(random, damaged);
    // Damage may leave another valid module. Yet bytes that the full decoder refuses must be refused by every decoder.
    const auto why = decode_error(damaged, {});
    if (why && !defects.empty() && !decode_error(damaged, defects))
      return run.report("damaged-bytes", code_text(why->code), "",
                        "accepted, though " + why->place + ": " + why->what());
    if (why) continue;
    // Compared by bytes, because a NaN equals nothing.
    const std::string other = encode(decode_module_structure(bytes_of(damaged)));
    if (encode(decode_module_structure(bytes_of(other))) != other)
      return run.report("damaged-bytes", "differs", "", "what was read is another module once it was written");
  }
  Module spoiled = run.subject().module;
  spoil(random, spoiled.graphs[0]);
  if (!decode_error(encode_unchecked(spoiled), defects))
    run.report("damaged-bytes", "accepted", "", "a module with a reference or a number out of range is accepted");
}

void dtypes(OracleRun& run) {
  Graph g = run.fusion();
  for (OpId id : ops_in_order(g)) {
    const Op op = g[id];
    const auto documented = documented_dtype(g, op);
    if (!documented) continue;
    infer(g, id, {}, run.options().defects);
    const Dtype inferred = g[op.results[0]].dtype;
    g[op.results[0]].dtype = *documented;  // so that later ops are judged on their own
    if (inferred != *documented)
      run.report("dtypes", "differs", "%" + g[op.results[0]].name,
                 std::string(row_of(op.kind).text) + " gives " + std::string(text(inferred)) + ", documented is " +
                     std::string(text(*documented)));
  }
}

namespace {

// The loops of a kernel with one op: a block and a thread over all kept axes, and inside them the reduced axes in
// order. Returns what differs, or nothing.
std::string broken_nest_of_one(const Graph& g, TensorId t) {
  std::vector<std::string> wanted;
  const auto& axes = g[t].logical;
  const auto is_kept = [&](DomainId d) { return g[d].iter_type != IterType::kReduction; };
  if (std::any_of(axes.begin(), axes.end(), is_kept)) wanted = {"block", "thread"};
  for (DomainId d : axes)
    if (!is_kept(d)) wanted.push_back(g[d].name);
  const auto found = loop_names(g, t);
  if (found == wanted) return {};
  std::string list;
  for (const std::string& name : found) list += " " + name;
  return "has the loops" + list;
}

// Checks one op of the fusion as the unfused plan schedules it.
void check_nest_of_one(OracleRun& run, const Graph& fusion) {
  const Segmentation plan = plan_unfused(fusion, run.options().defects);
  if (plan.segments.empty()) return;
  RandomSource random = source_of(run, 4);
  const Segment& segment = random.pick(plan.segments);
  if (segment.executor != SegmentExecutor::kKernel) return;
  Graph g = extract(fusion, segment);
  for (const Step& step : segment.steps) apply(g, step, run.options().defects);
  const std::string& name = segment.ops[0];
  if (const std::string broken = broken_nest_of_one(g, g[*find_value(g, name)].tensor); !broken.empty())
    run.report("unfused", "loops", "%" + name, "%" + name + ", alone in a kernel, " + broken);
}

}  // namespace

void step_effects(OracleRun& run) {
  const Compiled* c = run.compiled();
  if (!c || !run.subject().steps()) return;
  check_nest_of_one(run, c->concretized);
  for (const Segment& segment : c->segmentation.segments) {
    if (segment.steps.empty()) continue;
    Graph g = extract(c->concretized, segment);
    for (const Step& step : segment.steps) {
      const Graph before = g;
      const std::string stage = "step " + std::string(row_of(step.kind).text);
      try {
        apply(g, step, run.options().defects);
        const std::string place = step.operands.empty() ? "" : "%" + step.operands[0].value;
        if (const std::string broken = broken_promise(before, g, step); !broken.empty())
          return run.report(stage, "effect", "", place + " " + broken);
        if (const auto error = find_error(g)) return run.report(stage, *error, "the graph after it does not verify");
      } catch (const Error& e) {
        return run.report(stage, e);
      }
    }
  }
}

}  // namespace fusebox::fuzz
