// fuzz_steps: a step that is not refused applies and leaves a graph that verifies. The first byte picks the fusion; the
// rest is the text of a list of steps.
#include <cstdlib>

#include "fuzz/bytes/mutate_text.h"
#include "fuzz/case_bytes/target.h"
#include "fuzz/generate/generate_fusion.h"
#include "fuzz/generate/generate_steps.h"
#include "fuzz/targets/shared/mutator.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "passes/schedule/apply_steps.h"

namespace {

using namespace fusebox;

Graph fusion_of(uint8_t number) {
  fuzz::RandomSource random(uint64_t{number});
  return fuzz::generate_fusion(random, {.symbolic = false}).graph;
}

// Inserts a step drawn for its place, or exchanges two steps. Only steps that apply come before it.
std::string mutate_steps(fuzz::RandomSource& random, uint8_t number, std::string_view text) {
  std::vector<Step> steps = parse_steps(text);
  const auto place = [&](size_t i) { return steps.begin() + static_cast<std::ptrdiff_t>(i); };
  if (steps.size() > 1 && random.one_in(4)) {
    std::swap(steps[random.below(steps.size())], steps[random.below(steps.size())]);
  } else if (!steps.empty() && (steps.size() > 24 || random.one_in(4))) {
    steps.erase(place(random.below(steps.size())));
  } else {
    Graph g = fusion_of(number);
    const size_t at = random.below(steps.size() + 1);
    for (size_t i = 0; i < at; ++i)
      if (!step_refusal(g, steps[i])) apply_step(g, steps[i]);
    if (auto step = fuzz::draw_step(random, g)) steps.insert(place(at), *std::move(step));
  }
  std::string result;
  for (const Step& step : steps) result += print(step) + "\n";
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  fuzz::expect_coded([&] {
    Graph g = fusion_of(data[0]);
    for (const Step& step : parse_steps(fuzz::text_of(data + 1, size - 1))) {
      if (step_refusal(g, step)) continue;
      try {
        apply_step(g, step);
      } catch (const Error& e) {
        std::fprintf(stderr, "%s\nis not refused, and applied it throws %s: %s\n", print(step).c_str(),
                     code_text(e.code).c_str(), e.what());
        std::abort();
      }
      if (const auto error = find_error(g)) {
        std::fprintf(stderr, "after %s\nthe graph does not verify: %s\n", print(step).c_str(), error->what());
        std::abort();
      }
    }
  });
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  fuzz::RandomSource random(seed);
  if (size < 1 || random.one_in(8)) return LLVMFuzzerMutate(data, size, max_size);
  const uint8_t number = random.one_in(16) ? static_cast<uint8_t>(random.below(256)) : data[0];
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  std::string next;
  if (!random.one_in(4)) {
    try {
      next = mutate_steps(random, number, text);
    } catch (const Error&) {
      // The text is no list of steps, or the target itself would stop at it.
    }
  }
  if (next.empty()) next = fuzz::mutate_text(random, text);
  return fuzz::put(std::string(1, static_cast<char>(number)) + next, data, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                            uint8_t* out, size_t max_size, unsigned seed) {
  fuzz::RandomSource random(seed);
  if (a_size < 1 || b_size < 1) return fuzz::put(fuzz::text_of(a, a_size), out, max_size);
  const std::string text = fuzz::cross_text(random, fuzz::text_of(a + 1, a_size - 1), fuzz::text_of(b + 1, b_size - 1));
  return fuzz::put(std::string(1, static_cast<char>(a[0])) + text, out, max_size);
}
