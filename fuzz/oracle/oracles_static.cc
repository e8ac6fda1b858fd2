// The oracles that do not run the case.
#include "fuzz/base/error_form.h"
#include "fuzz/oracle/oracle.h"
#include "ir/infer/infer.h"
#include "ir/scalar/scalar.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/lower/lower.h"
#include "serde/decode.h"
#include "serde/encode.h"

namespace fusebox::fuzz {
namespace {

// Changes one thing in a graph: an operand, a dtype, an extent, an attribute, a list, or the order of ops.
void break_somewhere(RandomSource& random, Graph& g) {
  const auto any_value = [&] {
    return random.one_in(4) ? ValueId(g.values.size() + random.below(3)) : ValueId(random.below(g.values.size()));
  };
  Op& op = g.ops[random.below(g.ops.size())];
  switch (random.below(9)) {
    case 0:
      if (!op.operands.empty()) op.operands[random.below(op.operands.size())] = any_value();
      return;
    case 1:
      g.values[random.below(g.values.size())].dtype = static_cast<Dtype>(random.below(dtype_rows().size()));
      return;
    case 2:
      if (!g.domains.empty()) g.domains[random.below(g.domains.size())].extent = any_value();
      return;
    case 3:
      op.kind = op_rows()[random.below(op_rows().size())].kind;
      return;
    case 4:
      if (!op.operands.empty()) op.operands.pop_back();
      return;
    case 5: {
      auto& body = g[Graph::body()].ops;
      std::swap(body[random.below(body.size())], body[random.below(body.size())]);
      return;
    }
    case 6:
      if (!g.tensors.empty())
        if (Tensor& t = g.tensors[random.below(g.tensors.size())]; !t.logical.empty()) t.logical.pop_back();
      return;
    case 7:
      if (!g.domains.empty()) g.domains[random.below(g.domains.size())].iter_type = random.pick<IterType>();
      return;
    default:
      for (const AttrKey key : {AttrKey::kAxis, AttrKey::kAxes, AttrKey::kDims, AttrKey::kOrder, AttrKey::kMask})
        if (op.attrs.has(key)) {
          if (row_of(key).kind == AttrKind::kInt)
            op.attrs.set(key, random.between(-9, 9));
          else
            op.attrs.set(key, std::vector<int64_t>{random.between(-2, 2), random.between(-2, 2)});
        }
  }
}

// An op whose result has a constant extent that differs from the inferred one.
struct OtherExtents {
  OpKind kind;
  std::string what;  // `%y.i0 is 3 where 5 is inferred`
};
std::optional<OtherExtents> op_of_other_extents(const Graph& g) {
  for (OpId id : ops_in_order(g)) {
    const Op& op = g[id];
    if (op.results.empty() || !g.is_tensor(op.results[0]) || !demands(op.kind, kPointwise)) continue;
    Graph copy = g;
    try {
      infer(copy, id);
    } catch (const Error& e) {
      if (e.code == ErrorCode::kShapeMismatch)
        return OtherExtents{op.kind, "%" + g[op.results[0]].name + ": " + e.what()};
      continue;
    }
    const auto is = logical_without_reductions(g, g.tensor_of(op.results[0]));
    const auto wanted = logical_without_reductions(copy, copy.tensor_of(op.results[0]));
    for (size_t i = 0; i < is.size() && i < wanted.size(); ++i) {
      const auto n = evaluate_size(g, is[i]), m = evaluate_size(copy, wanted[i]);
      // A sum with a part beyond 32 bits is one symbol to the verifier (hides_sum), though folding may find it.
      if (n && m && *n != *m && *m <= INT32_MAX)
        return OtherExtents{op.kind, "%" + g[op.results[0]].name + "." + g[is[i]].name + " is " + std::to_string(*n) +
                                         " where " + std::to_string(*m) + " is inferred"};
    }
  }
  return std::nullopt;
}

}  // namespace

void text_round_trip(OracleRun& run) {
  const Module& m = run.subject().module;
  const Defects& defects = run.options().defects;
  try {
    if (!(parse_module(print(m, defects)) == m))
      run.report("text", "differs", "", "the module that was parsed is another one");
    const Compiled* c = run.compiled();
    for (size_t i = 0; c && i < c->kernels.size(); ++i)
      for (const Graph* g : {&c->kernels[i], &c->scheduled[i]})
        if (!g->ops.empty() && !(parse_graph(print(*g, defects)) == *g))
          run.report("text", "differs", std::string(text(g->level)),
                     "a graph of level " + std::string(text(g->level)) + " that was parsed is another one");
  } catch (const Error& e) {
    run.report("text", code_text(e.code), "", code_text(e.code) + " " + e.place + ": " + e.what());
  }
}

void bytes_round_trip(OracleRun& run) {
  Module m = run.subject().module;
  if (const Compiled* c = run.compiled()) m.graphs.insert(m.graphs.end(), c->kernels.begin(), c->kernels.end());
  try {
    // Kernels of several segments may share a name, and an ATen segment has none. The program itself may have no op.
    m.graphs.erase(std::remove_if(m.graphs.begin() + 1, m.graphs.end(), [](const Graph& g) { return g.ops.empty(); }),
                   m.graphs.end());
    for (size_t i = 1; i < m.graphs.size(); ++i) m.graphs[i].name = "k" + std::to_string(i);
    const Defects& defects = run.options().defects;
    const std::string bytes = encode(m, defects);
    const Module back = decode_module(bytes_of(bytes), defects);
    if (!(back == m)) run.report("bytes", "differs", "", "the module that was decoded is another one");
    if (encode(back, defects) != bytes) run.report("bytes", "unstable", "", "encoded again, the bytes differ");
  } catch (const Error& e) {
    run.report("bytes", e);
  }
}

void invalid_refused(OracleRun& run) {
  // The seed makes this repeatable.
  RandomSource random = run.random(31);
  Graph g = run.fusion();
  if (g.values.empty() || g.ops.empty()) return;
  // The verifier refuses most at once, so try a few times for a graph that it accepts.
  for (int tries = 0;; ++tries) {
    break_somewhere(random, g);
    const auto error = find_error(g, run.options().defects);
    if (!error) break;
    if (!is_well_formed(*error)) return run.report("invalid", *error, "the verifier");
    if (tries == 4) return;
    g = run.fusion();
  }
  if (const auto op = op_of_other_extents(g))
    return run.report("invalid", "extents", std::string(row_of(op->kind).text),
                      "a graph verifies, though a result has other extents than its operands give it: " + op->what);
  try {
    compile(g, sizes_of(g, run.subject().inputs()), {.defects = run.options().defects});
  } catch (const Error& e) {
    if (row_of(e.code).outcome == Outcome::kInternal || !is_well_formed(e))
      run.report("invalid", e, "a graph that verifies, though one thing of it was changed");
  }
}

}  // namespace fusebox::fuzz
