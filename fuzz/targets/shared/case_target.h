// The mutator and the crossover of a target whose inputs are cases. The target's only source includes this and defines
// `target_options`.
#pragma once

#include "fuzz/case_bytes/target.h"
#include "fuzz/targets/shared/mutator.h"

namespace fusebox::fuzz {
CaseOptions target_options();
}  // namespace fusebox::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace fusebox::fuzz;
  RandomSource random(seed);
  // Some mutations are libFuzzer's own, for choices and for damaged bundles.
  if (size > 0 && random.one_in(8)) return LLVMFuzzerMutate(data, size, max_size);
  return put(mutate_case_bytes(random, {data, size}, target_options(), max_size), data, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  using namespace fusebox::fuzz;
  RandomSource random(seed);
  return put(cross_case_bytes(random, {a, a_size}, {b, b_size}, target_options(), max_size), out, max_size);
}
