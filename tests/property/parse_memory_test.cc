// Law: reading a text takes at most 64 bytes for each of its bytes plus 1 MiB. A text that would take more is refused.
// The texts here get the most out of each byte.
#include <gtest/gtest.h>

#include "ir/table/error.h"
#include "ir/text/parse.h"
// It replaces operator new, so it belongs in programs and in no library.
#include "fuzz/targets/shared/memory_bound.cc"

namespace fusebox {
namespace {

std::string lines(const std::string& head, const std::string& line, size_t count, const std::string& tail) {
  std::string text = head;
  for (size_t i = 0; i < count; ++i) {
    // Every # becomes the number of the line.
    for (char c : line) c == '#' ? void(text += std::to_string(i)) : text.push_back(c);
  }
  return text + tail;
}

// The most memory that reading took, also if the text was refused.
int64_t peak_of(const std::string& text, std::string& answer) {
  const fuzz::MemoryBound bound(size_t{1} << 40);
  try {
    parse_module(text);
    answer = "read";
  } catch (const Error& e) {
    answer = code_text(e.code);
  }
  return fuzz::MemoryBound::peak();
}

TEST(ParseMemory, StaysWithinItsBound) {
  const std::string wide = "fusion @f {\n%a=input f32[" + lines("", "1,", 255, "1]\n");
  for (const size_t n : {10, 300, 3000, 30000}) {
    const std::string texts[] = {
        std::string(8 * n, '{'),
        lines("fusion @f {\n", "%#=size\n", n, "}"),
        lines("fusion @f {\n%a=size\n", "%b#=neg %a\n", n, "}"),
        lines("fusion @f {\n%a=input f32[]\n", "%b#=exp %a\n", n, "}"),
        lines("fusion @f {\n%a=input f32[3,3,3,3,3]\n", "%b#=exp %a\n", n, "}"),
        lines("fusion @f {\n", "%#=input f32[1,1,1,1]\n", n, "}"),
        lines("fusion @f {\n%a=input f32[3]\n", "%b#=reshape %a to [1,3]\n", n, "}"),
        lines("fusion @f {\n%a=input f32[3]\n%b=reshape %a to [", "1,", n, "3]\n}"),
        lines(wide, "%b#=exp %a\n", n, "}"),
        lines("", "fusion @f#{}\n", n, ""),
        lines("", "fusion @f#{%a=size}\n", n, ""),
        lines("steps @f {\n", "split %a.b by 2->c,d\n", n, "}"),
        lines("", "steps @f#{}\n", n, ""),
        lines("inputs @f {\n", "%#=f32[]\n", n, "}"),
        lines("inputs @f {\n%a=f32[", "1,", n, "1]\n}"),
        lines("kernel @f {\n", "for %# {\n", n, ""),
        lines("fusion @\"", "\\n", n, "\"{}"),
    };
    for (const std::string& text : texts) {
      std::string answer;
      const int64_t peak = peak_of(text, answer);
      EXPECT_LE(peak, 64 * static_cast<int64_t>(text.size()) + (1 << 20)) << answer << ": " << text.substr(0, 80);
    }
  }
}

// Ordinary texts stay far from the bound.
TEST(ParseMemory, LongProgramsAreRead) {
  std::string answer;
  const std::string text = lines("fusion @f {\n  %x0 = input f32[3, 3, 3, 3, 3]\n", "  %value_# = cast %x0 as bf16\n",
                                 20000, "  output %value_7\n}\n");
  peak_of(text, answer);
  EXPECT_EQ(answer, "read");
}

}  // namespace
}  // namespace fusebox
