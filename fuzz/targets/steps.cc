// fuzz_steps: a step that is not refused applies and leaves a graph that verifies. The first line's byte picks the
// fusion; the rest is the text of a list of steps.
#include <cstdlib>

#include "fuzz/case.h"
#include "fuzz/target.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "passes/apply_steps.h"

using namespace fusebox;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  fuzz::expect_coded([&] {
    fuzz::RandomSource random(uint64_t{data[0]});
    Graph g = fuzz::generate_fusion(random, {.symbolic = false}).graph;
    for (const Step& step : parse_steps({reinterpret_cast<const char*>(data + 1), size - 1})) {
      if (step_refusal(g, step)) continue;
      try {
        apply_step(g, step);
      } catch (const Error&) {
        std::abort();  // what is not refused applies
      }
      if (find_error(g)) std::abort();
    }
  });
  return 0;
}
