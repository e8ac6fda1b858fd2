// How the cost of each stage grows with the program: 250 to 8,000 ops, each size with its time, `us_an_op`, and
// `growth`, the cost of an op over that of an op of the size before: 1 is linear, 2 is the square of the size.
//
//   fan       every op reads the one input
//   chain     every op reads the one before it
//   views     pads of the input and slices of them by turns, of symbolic extents
//   reshapes  a chain whose axes are symbolic until the sizes are known: a step for each op
#include <benchmark/benchmark.h>
#include <chrono>
#include <map>

#include "ir/build/builder.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/infer/concretize.h"
#include "ir/module/step.h"
#include "ir/step/apply.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/host/host_program.h"
#include "passes/lower/lower.h"
#include "passes/pipeline/pipeline.h"
#include "passes/rewrite/rewrite.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/segment.h"
#include "serde/decode.h"
#include "serde/encode.h"

namespace fusebox {
namespace {

enum Shape : int64_t { kFan, kChain, kViews, kReshapes };

Graph program(Shape shape, int64_t ops) {
  Graph g = fusion("f");
  const ValueId m = size(g, "m"), n = size(g, "n");
  const ValueId p = size(g, "p"), q = size(g, "q");
  const ValueId x = input(g, "x", Dtype::kFloat, {m, n});
  input(g, "y", Dtype::kFloat, {p, q});
  ValueId v = x;
  for (int64_t i = 0; i < ops; ++i) {
    const std::string name = "t" + std::to_string(i);
    switch (shape) {
      case kFan:
        output(g, unary(g, OpKind::kNeg, x, name));
        break;
      case kChain:
        v = unary(g, OpKind::kNeg, v, name);
        break;
      case kViews:
        v = i % 2 == 0 ? pad(g, x, {1, 0}, {}, name) : slice(g, v, {0, 1}, {m, size_of(g, v, 1)}, {}, name);
        output(g, v);
        break;
      case kReshapes:
        v = reshape(g, v, i % 2 == 0 ? fusebox::Shape{p, q} : fusebox::Shape{m, n}, name);
        break;
    }
  }
  if (shape == kChain || shape == kReshapes) output(g, v);
  return g;
}

std::vector<BoundInput> given() { return {{.shape = {20, 10}}, {.shape = {40, 5}}}; }
Bindings bound(const Graph& g) { return bind_sizes(g, given()); }

Step parallelize(std::string_view tensor, std::string_view domain, ParallelType type) {
  Step s{StepKind::kParallelize, {StepOperand::domain_of(tensor, domain)}, {}, {}};
  s.attrs.set_enum(AttrKey::kParallel, type);
  return s;
}

// Merge, split and parallelize one tensor.
std::vector<Step> steps_on(const std::string& t) {
  return {{StepKind::kMerge, {StepOperand::domain_of(t, "i0"), StepOperand::domain_of(t, "i1")}, {"f"}, {}},
          {StepKind::kSplit, {StepOperand::domain_of(t, "f"), StepOperand::number(128)}, {"b", "u"}, {}},
          parallelize(t, "b", ParallelType::kGridX),
          parallelize(t, "u", ParallelType::kBlockX)};
}

std::vector<Step> steps_on_all(int64_t ops) {
  std::vector<Step> steps;
  for (int64_t i = 0; i < ops; ++i)
    for (const Step& s : steps_on("t" + std::to_string(i))) steps.push_back(s);
  return steps;
}

Step step_on(StepKind kind, std::string_view tensor) { return {kind, {StepOperand::of(tensor)}, {}, {}}; }

// One tensor scheduled, and all others like it.
std::vector<Step> steps_like(int64_t ops) {
  const std::string last = "t" + std::to_string(ops - 1);
  std::vector<Step> steps = steps_on(last);
  steps.push_back(step_on(StepKind::kTransformLike, last));
  steps.push_back(step_on(StepKind::kParallelizeLike, last));
  return steps;
}

// Runs `work` on what `prepare` makes of the program; only the work is timed.
template <class Prepare, class Work>
void grow(benchmark::State& state, const std::string& name, Shape shape, Prepare prepare, Work work) {
  static std::map<std::string, std::map<int64_t, double>> costs;  // by benchmark and size: of an op, in us
  const int64_t ops = state.range(0);
  const Graph g = program(shape, ops);
  double seconds = 0;
  for (auto _ : state) {
    auto input = prepare(g, ops);
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(work(input));
    const double once = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    state.SetIterationTime(once);
    seconds += once;
  }
  const double us = seconds * 1e6 / static_cast<double>(state.iterations()) / static_cast<double>(ops);
  state.counters["us_an_op"] = us;
  auto& known = costs[name];
  known[ops] = us;
  if (const auto it = known.find(ops / 2); it != known.end()) state.counters["growth"] = us / it->second;
}

template <class Prepare, class Work>
void add(const std::string& name, Shape shape, Prepare prepare, Work work) {
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& s) { grow(s, name, shape, prepare, work); })
      ->ArgsProduct({{250, 500, 1000, 2000, 4000, 8000}})
      ->UseManualTime()
      ->MinTime(0.05)
      ->Unit(benchmark::kMillisecond);
}

struct Planned {
  Graph fusion;
  Bindings bindings;
  Segmentation segmentation;
  std::vector<Step> steps;
};

Planned unfused(const Graph& g, int64_t) { return {g, bound(g), plan_unfused(g), {}}; }
Graph scheduled(const Graph& g, std::vector<Step> steps) {
  Graph s = g;
  apply(s, steps);
  return s;
}

void add_all() {
  const auto same = [](const Graph& g, int64_t) { return g; };
  for (const Shape shape : {kFan, kChain, kViews}) {
    const std::string of = shape == kFan ? "_fan" : shape == kChain ? "_chain" : "_views";
    const auto named = [&](const char* name) { return name + of; };
    add(
        named("build"), shape, [](const Graph&, int64_t n) { return n; },
        [shape](int64_t n) { return program(shape, n); });
    add(named("verify"), shape, same, [](const Graph& g) { return !find_error(g); });
    add(named("canonical_digest"), shape, same, [](const Graph& g) { return digest(g); });
    add(named("print"), shape, same, [](const Graph& g) { return print(g); });
    add(
        named("parse"), shape, [](const Graph& g, int64_t) { return print(g); },
        [](const std::string& text) { return parse_graph(text); });
    add(named("encode"), shape, same, [](const Graph& g) {
      Module m;
      m.graphs.push_back(g);
      return encode(m);
    });
    add(
        named("decode"), shape,
        [](const Graph& g, int64_t) {
          Module m;
          m.graphs.push_back(g);
          return encode(m);
        },
        [](const auto& bytes) { return decode_module(bytes_of(bytes)); });
    add(named("bind_sizes"), shape, same, [](const Graph& g) { return bound(g); });
    for (const RewriteRow& row : rewrite_rows())
      add(("rewrite_" + std::string(row.name) + of), shape, same, [&row](Graph& g) { return row.run(g, {}); });
    add(named("plan_unfused"), shape, same, [](const Graph& g) { return plan_unfused(g); });
    add(named("plan_single"), shape, same, [](const Graph& g) { return plan_single(g, {}); });
    add(named("compile_unfused"), shape, unfused, [](const Planned& p) { return compile(p.fusion, p.bindings, {}); });
  }
  add(
      "verify_segmentation_chain", kChain,
      [](const Graph& g, int64_t) {
        Module m;
        m.graphs.push_back(g);
        m.segmentations.push_back(plan_unfused(g));
        return m;
      },
      [](const Module& m) { return !find_error(m); });
  add(
      "plan_assigned_chain", kChain,
      [](const Graph& g, int64_t n) {
        Planned p{g, {}, {}, {}};
        // Pairs of ops, each with a schedule.
        for (int64_t i = 0; i < n; ++i) {
          Step assign = step_on(StepKind::kAssign, "t" + std::to_string(i));
          assign.attrs.set(AttrKey::kName, "s" + std::to_string(i / 2));
          p.steps.push_back(assign);
        }
        for (const Step& s : steps_on_all(n)) p.steps.push_back(s);
        return p;
      },
      [](const Planned& p) { return plan_assigned(p.fusion, p.steps); });
  add(
      "plan_assigned_to_one_fan", kFan,
      [](const Graph& g, int64_t n) {
        Planned p{g, {}, {}, {}};
        for (int64_t i = 0; i < n; ++i) {
          Step assign = step_on(StepKind::kAssign, "t" + std::to_string(i));
          assign.attrs.set(AttrKey::kName, "s");
          p.steps.push_back(assign);
        }
        return p;
      },
      [](const Planned& p) { return plan_assigned(p.fusion, p.steps); });
  add(
      "concretize_reshapes", kReshapes, [](const Graph& g, int64_t) { return Planned{g, bound(g), {}, {}}; },
      [](const Planned& p) { return plan_concretize(p.fusion, p.bindings); });
  for (const Shape shape : {kFan, kChain}) {
    const std::string of = shape == kFan ? "_fan" : "_chain";
    const auto named = [&](const char* name) { return name + of; };
    add(
        named("steps_on_each"), shape, [](const Graph& g, int64_t n) { return Planned{g, {}, {}, steps_on_all(n)}; },
        [](Planned& p) {
          apply(p.fusion, p.steps);
          return p.fusion.domains.size();
        });
    add(
        named("transform_like"), shape,
        [](const Graph& g, int64_t n) { return scheduled(g, steps_on("t" + std::to_string(n - 1))); },
        [](Graph& g) {
          const Value& last = g[g.tensors.back().value];
          apply(g, step_on(StepKind::kTransformLike, last.name));
          return g.domains.size();
        });
    add(
        named("parallelize_like"), shape,
        [](const Graph& g, int64_t n) {
          std::vector<Step> steps = steps_like(n);
          steps.pop_back();
          return scheduled(g, steps);
        },
        [](Graph& g) {
          const Value& last = g[g.tensors.back().value];
          apply(g, step_on(StepKind::kParallelizeLike, last.name));
          return g.domains.size();
        });
    add(
        named("inline_most"), shape, [](const Graph& g, int64_t n) { return scheduled(g, steps_like(n)); },
        [](Graph& g) {
          apply(g, Step{StepKind::kInlineMost, {}, {}, {}});
          return g.domains.size();
        });
    add(
        named("cache_before_each"), shape,
        [](const Graph& g, int64_t n) {
          Planned p{g, {}, {}, {}};
          for (int64_t i = 0; i < n; ++i) {
            p.steps.push_back(step_on(StepKind::kCacheBefore, "t" + std::to_string(i)));
            p.steps.back().results = {"c" + std::to_string(i)};
          }
          return p;
        },
        [](Planned& p) {
          apply(p.fusion, p.steps);
          return p.fusion.domains.size();
        });
    add(
        named("lower"), shape,
        [](const Graph& g, int64_t n) {
          std::vector<Step> steps = steps_like(n);
          steps.push_back(Step{StepKind::kInlineMost, {}, {}, {}});
          return scheduled(g, steps);
        },
        [](const Graph& g) { return lower(g); });
    add(
        named("compile_single"), shape,
        [](const Graph& g, int64_t n) {
          std::vector<Step> steps = steps_like(n);
          steps.push_back(Step{StepKind::kInlineMost, {}, {}, {}});
          return Planned{g, bound(g), {}, steps};
        },
        [](const Planned& p) { return compile(p.fusion, p.bindings, {.steps = p.steps}); });
  }
}

const bool added = (add_all(), true);

}  // namespace
}  // namespace fusebox
