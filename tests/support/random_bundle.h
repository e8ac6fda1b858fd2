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
  return b;
}

inline bool identical(const Bundle& a, const Bundle& b) {
  const auto same_stage = [](const StageRecord& x, const StageRecord& y) {
    return x.stage == y.stage && identical(x.module, y.module);
  };
  return a.program == b.program &&
         std::equal(a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(), same_stage) &&
         a.steps == b.steps && a.options == b.options && a.digests == b.digests && a.ranks == b.ranks &&
         a.artifacts == b.artifacts;
}

}  // namespace fusebox::testing
