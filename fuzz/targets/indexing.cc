// fuzz_indexing: compares values of domains, their checks and the id graphs with enumeration (index_laws/law.h). The
// bytes are records of chains of transforms. A bundle is a fusion of ops that move elements, with a schedule of splits,
// merges, swizzles, resizes and inlined broadcasts; each index that lowering writes must reach the same element as in
// the unfused plan.
#include "fuzz/case_bytes/target.h"
#include "fuzz/index_laws/law.h"
#include "fuzz/index_laws/records.h"
#include "fuzz/targets/shared/mutator.h"
#include "ir/table/op.h"
#include "serde/decode.h"

namespace {

using namespace fusebox;

const fuzz::CaseOptions& moves_and_transforms() {
  static const fuzz::CaseOptions options = [] {
    std::vector<OpKind> moves = {OpKind::kSet};
    for (OpKind kind : fuzz::generated_ops())
      if (demands(kind, kMetadata)) moves.push_back(kind);
    fuzz::CaseOptions result;
    result.fusion.mix = fuzz::mix_of(moves);
    result.fusion.max_ops = 4;
    result.steps = {.max_transforms = 10, .rewrites_one_in = 0, .segments = false};
    return result;
  }();
  return options;
}

constexpr int64_t kMostPoints = 600;

void check_law(std::span<const uint8_t> bytes) {
  static index_laws::Law law;
  const index_laws::Records records = index_laws::read_records(bytes);
  const index_laws::Case c = index_laws::case_of(records);
  law.check(c, index_laws::bindings_of(records), kMostPoints);
  law.counts.missed.clear();
  if (law.counts.violations == 0) return;
  for (const std::string& violation : law.violations) std::fprintf(stderr, "%s\n", violation.c_str());
  std::abort();
}

fuzz::Bytes records_or_case(fuzz::RandomSource& random, std::span<const uint8_t> bytes, size_t max_size) {
  if (is_bundle(bytes) || random.one_in(32))
    return fuzz::mutate_case_bytes(random, bytes, moves_and_transforms(), max_size);
  index_laws::Records r = index_laws::read_records(bytes);
  for (size_t n = 1 + random.below(3); n > 0; --n) index_laws::mutate_records(random, r);
  return index_laws::write_records(r);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  if (is_bundle(bytes))
    fuzz::judge_bytes(bytes, moves_and_transforms(), "host-checks,schedules,id-graphs", true);
  else
    fuzz::expect_coded([&] { check_law(bytes); });
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  fuzz::RandomSource random(seed);
  if (random.one_in(8)) return LLVMFuzzerMutate(data, size, max_size);
  return fuzz::put(records_or_case(random, {data, size}, max_size), data, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  fuzz::RandomSource random(seed);
  const std::span<const uint8_t> first(a, a_size), second(b, b_size);
  if (is_bundle(first) || is_bundle(second))
    return fuzz::put(fuzz::cross_case_bytes(random, first, second, moves_and_transforms(), max_size), out, max_size);
  return fuzz::put(index_laws::write_records(index_laws::cross_records(random, index_laws::read_records(first),
                                                                       index_laws::read_records(second))),
                   out, max_size);
}
