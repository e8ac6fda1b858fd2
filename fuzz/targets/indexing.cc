// fuzz_indexing: the bytes decide a fusion of ops that move elements and a schedule of splits, merges, swizzles and
// resizes; whatever index the lowering writes must reach the element that the unfused plan reaches.
#include "fuzz/target.h"
#include "ir/op.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fusebox;
  static const fuzz::CaseOptions options = [] {
    std::vector<OpKind> moves = {OpKind::kSet};
    for (OpKind kind : fuzz::generated_ops())
      if (demands(kind, kMetadata)) moves.push_back(kind);
    fuzz::CaseOptions result;
    result.fusion.mix = fuzz::mix_of(moves);
    result.fusion.max_ops = 4;
    result.steps = {.max_transforms = 10, .rewrites = false, .segments = false};
    return result;
  }();
  fuzz::judge_bytes(data, size, options, "host-checks,schedules", true);
  return 0;
}
