// fuzz_fusion: the bytes decide a fusion and its inputs; the unfused plan, the text form and the bytes are judged.
#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fusebox::fuzz::judge_bytes(data, size, {.fusion = {.max_ops = 12}}, "aten,text,bytes,rewrites,invalid", false);
  return 0;
}
