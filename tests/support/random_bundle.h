// Random bundles: random modules with every kind of record.
#pragma once

#include "ir/table/error.h"
#include "serde/bundle.h"
#include "tests/support/random_module.h"

namespace fusebox::testing {

inline Digest random_digest(Random& random) { return {random.next(), random.next()}; }

inline std::vector<uint8_t> random_bytes(Random& random, size_t count) {
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  return bytes;
}

// Numbers make the names unique, as keys must be.
inline std::vector<KeyValue> random_key_values(Random& random) {
  std::vector<KeyValue> list;
  for (size_t n = random.below(4); n > 0; --n)
    list.push_back({random_name(random) + std::to_string(n), random_name(random)});
  return list;
}

inline std::vector<int64_t> random_shape(Random& random) {
  std::vector<int64_t> shape(random.below(4));
  for (int64_t& extent : shape) extent = static_cast<int64_t>(random.below(5));
  return shape;
}

inline InputRecord random_input(Random& random) {
  InputRecord input;
  input.spec = random_input_spec(random);
  if (input.spec.is_scalar || random.one_in(2)) return input;
  int64_t count = size_bytes(input.spec.dtype);
  for (int64_t extent : input.spec.shape) count *= extent;
  input.bytes = random_bytes(random, static_cast<size_t>(count));
  return input;
}

inline Rank random_rank(Random& random) {
  Rank rank;
  rank.executor = random.one_in(2) ? "host" : "cuda";
  for (size_t n = random.below(4); n > 0; --n) rank.inputs.push_back(random_input(random));
  const auto dtype = [&] { return static_cast<Dtype>(random.below(dtype_rows().size())); };
  for (size_t n = random.below(3); n > 0; --n) {
    const auto shape = random_shape(random);
    rank.outputs.push_back({random_name(random), dtype(), shape, shape, random_digest(random)});
  }
  if (random.one_in(2)) {
    const ErrorRow& row = error_rows()[random.below(error_rows().size())];
    rank.failure = Failure{row.code, std::string(row.summary), random_name(random)};
  }
  for (size_t n = random.below(3); n > 0; --n) {
    const auto shape = random_shape(random);
    rank.crossings.push_back({random_name(random), random_name(random), dtype(), shape, shape});
  }
  rank.environment = random_key_values(random);
  return rank;
}

inline KernelImage random_image(Random& random) {
  const auto number = [&] { return static_cast<int64_t>(random.below(1000)); };
  return {.kernel = random_digest(random),
          .source = random_digest(random),
          .entry = random_name(random),
          .architecture = "sm_90a",
          .options = random_name(random),
          .compiler = random_name(random),
          .numerics = number(),
          .registers = number(),
          .local_bytes = number(),
          .shared_bytes = number(),
          .binary = random_bytes(random, random.below(200)),
          .is_cooperative = random.one_in(2),
          .opts_in_shared = random.one_in(2),
          .is_dependent = random.one_in(2)};
}

inline InputSignature random_signature(Random& random) {
  const auto number = [&] { return static_cast<int64_t>(random.below(1000)) - 1; };
  InputSignature s;
  for (size_t n = random.below(3); n > 0; --n) {
    SignatureInput& in = s.inputs.emplace_back();
    in = {random_name(random),
          static_cast<Dtype>(random.below(dtype_rows().size())),
          random.one_in(2),
          number(),
          number(),
          number(),
          {}};
    for (size_t axes = random.below(3); axes > 0; --axes) in.axes.push_back({number(), number(), number(), number()});
  }
  for (size_t n = random.below(3); n > 0; --n)
    s.facts.push_back({random_name(random) + std::to_string(n), random_name(random)});
  return s;
}

// Its instructions use every list of the record.
inline LaunchRecord random_launch(Random& random, uint32_t kernels) {
  LaunchRecord r;
  r.registers = 2 + static_cast<uint32_t>(random.below(5));
  r.kernels = kernels;
  const auto dtype = [&] { return static_cast<Dtype>(random.below(dtype_rows().size())); };
  r.inputs.push_back({dtype(), 2, false, false});
  for (size_t n = random.below(3); n > 0; --n) r.inputs.push_back({dtype(), 0, true, random.one_in(2)});
  for (size_t n = 1 + random.below(2); n > 0; --n)
    r.allocated.push_back({dtype(), static_cast<uint32_t>(random.below(3))});
  const ErrorRow& row = error_rows()[random.below(error_rows().size())];
  r.errors.push_back({row.code, std::string(row.summary), random_name(random)});
  r.names.push_back(random_name(random) + "n");
  r.code = {pack({.op = LaunchOp::kConstant, .a = 0}), random.next(), pack({.op = LaunchOp::kExtent, .a = 1, .c = 1}),
            pack({.op = LaunchOp::kRequireEqual, .a = 0, .b = 1})};
  return r;
}

// Has as many graphs of each kind as its segments ask for. Their levels are as the dice fall, so its structure is right
// and its meaning seldom is.
inline CompiledFusion random_compiled(Random& random, const RandomModuleOptions& options = {}) {
  CompiledFusion c;
  const Graph g = random_graph(random, "g", options);
  c.program.graphs = {g};
  c.program.step_lists = {random_step_list(random, options)};
  Segmentation& s = c.program.segmentations.emplace_back();
  s.graph = g.name;
  c.code.graphs = {g};
  for (size_t n = random.below(3); n > 0; --n) {
    const bool is_kernel = random.one_in(2);
    s.segments.push_back({.name = "k" + std::to_string(n),
                          .executor = is_kernel ? SegmentExecutor::kKernel : SegmentExecutor::kAten,
                          .ops = {},
                          .inputs = {},
                          .outputs = {},
                          .steps = {}});
    c.scheduled.graphs.push_back(g);
    if (is_kernel) c.code.graphs.insert(c.code.graphs.end(), 2, g);
  }
  if (random.one_in(2))
    for (size_t n = c.code.graphs.size() / 2; n > 0; --n) c.plans.push_back(random_digest(random));
  c.index_bits = random.one_in(2) ? 32 : 64;
  for (size_t n = random.below(3); n > 0; --n) c.images.push_back(random_image(random));
  c.signature = random_signature(random);
  if (random.one_in(2)) c.launch = random_launch(random, static_cast<uint32_t>(s.segments.size()));
  return c;
}

inline CacheRecord random_record(Random& random, const RandomModuleOptions& options = {}) {
  CacheRecord r;
  for (size_t n = random.below(4); n > 0; --n)
    r.key.push_back({random_name(random) + std::to_string(n), random_bytes(random, random.below(40))});
  if (random.one_in(2))
    r.compiled = random_compiled(random, options);
  else
    r.image = random_image(random);
  return r;
}

inline Bundle random_bundle(uint64_t seed, const RandomModuleOptions& options = {}) {
  Random random(seed);
  Bundle b;
  b.program = random_name(random);
  for (size_t stage = 0; stage < stage_texts().size(); ++stage)
    if (random.one_in(3)) b.stages.push_back({static_cast<Stage>(stage), random_module(random.next(), options)});
  for (size_t n = random.below(3); n > 0; --n) b.steps.push_back(random_step_list(random, options));
  b.options = random_key_values(random);
  for (std::string_view stage : stage_texts())
    if (random.one_in(2)) b.digests.push_back({std::string(stage), random_digest(random)});
  for (size_t n = random.below(3); n > 0; --n) b.ranks.push_back(random_rank(random));
  for (size_t n = random.below(3); n > 0; --n) {
    Artifact artifact{random_name(random), random.one_in(2) ? "sm_90a" : "", random_name(random), {}};
    if (random.one_in(2)) artifact.binary = random_bytes(random, 1 + random.below(200));
    b.artifacts.push_back(std::move(artifact));
  }
  if (random.one_in(2)) b.records.push_back(random_record(random, options));
  return b;
}

inline bool identical(const CacheRecord& a, const CacheRecord& b) {
  if (a.key != b.key || a.image != b.image || a.compiled.has_value() != b.compiled.has_value()) return false;
  if (!a.compiled) return true;
  return identical(a.compiled->program, b.compiled->program) &&
         identical(a.compiled->scheduled, b.compiled->scheduled) && identical(a.compiled->code, b.compiled->code) &&
         a.compiled->plans == b.compiled->plans && a.compiled->index_bits == b.compiled->index_bits &&
         a.compiled->images == b.compiled->images && a.compiled->signature == b.compiled->signature &&
         a.compiled->launch == b.compiled->launch;
}

inline bool identical(const Bundle& a, const Bundle& b) {
  const auto same_stage = [](const StageRecord& x, const StageRecord& y) {
    return x.stage == y.stage && identical(x.module, y.module);
  };
  const auto same_record = [](const CacheRecord& x, const CacheRecord& y) { return identical(x, y); };
  return a.program == b.program &&
         std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(), same_stage) &&
         a.steps == b.steps && a.options == b.options && a.digests == b.digests && a.ranks == b.ranks &&
         a.artifacts == b.artifacts &&
         std::equal(a.records.begin(), a.records.end(), b.records.begin(), b.records.end(), same_record);
}

}  // namespace fusebox::testing
