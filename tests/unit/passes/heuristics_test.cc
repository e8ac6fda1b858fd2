// Choices of schedulers as text: what is printed reads back, and nothing else does.
#include "passes/schedule/heuristics.h"

#include <gtest/gtest.h>

#include "ir/table/error.h"

namespace fusebox {
namespace {

TEST(Heuristics, ReadsBackWhatItPrints) {
  Heuristics h{.scheduler = "reduction", .choices = {}};
  h.set("vector", 8);
  h.set("slices", -1);
  h.set("form", "registers");
  h.set("in_vectors", ",");
  h.set("%x_in", 4);
  EXPECT_EQ(text(h), "reduction vector 8 slices -1 form registers in_vectors , %x_in 4");
  EXPECT_EQ(parse_heuristics(text(h)), h);
}

TEST(Heuristics, NamesOfAnyCharactersReadBack) {
  for (const std::string name : {"a b", "a\"b", "\\", "12", "-3", "\t", " ", "\"", "ü"}) {
    Heuristics h{.scheduler = "pointwise", .choices = {}};
    h.set("reference", name);
    h.set("%" + name, 2);
    EXPECT_EQ(parse_heuristics(text(h)), h) << text(h);
  }
}

TEST(Heuristics, RefusesWhatIsNoChoice) {
  for (const std::string bad : {"", "  ", "pointwise vector", "pointwise vector \"\"", "pointwise a 1 b"}) {
    try {
      (void)parse_heuristics(bad);
      ADD_FAILURE() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::kSyntax) << bad;
    }
  }
}

}  // namespace
}  // namespace fusebox
