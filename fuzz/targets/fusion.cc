// fuzz_fusion: judges a fusion with its inputs by the unfused plan, the text form and the bytes.
#include "fuzz/targets/shared/case_target.h"

using namespace fusebox;

fuzz::CaseOptions fuzz::target_options() { return {.fusion = {.max_ops = 12}}; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::judge_bytes({data, size}, fuzz::target_options(), "aten,text,bytes,rewrites,invalid", false);
  return 0;
}
