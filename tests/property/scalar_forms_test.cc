// Law: `emit_form` gives the first scalar of the body whose form this is, and makes one only where there is none.
#include <gtest/gtest.h>
#include <optional>

#include "ir/build/builder.h"
#include "ir/scalar/scalar_form.h"
#include "ir/text/print.h"
#include "tests/support/random_module.h"

namespace fusebox {
namespace {

using testing::Random;

// All scalars tried in text order, each by its whole form.
std::optional<ValueId> first_of_form(const Graph& g, const ScalarForm& form) {
  for (OpId id : g[Graph::body()].ops) {
    const OpKind kind = g[id].kind;
    if (kind != OpKind::kAdd && kind != OpKind::kSub && kind != OpKind::kMul) continue;
    if (form_of(g, g[id].results[0]).equals(form)) return g[id].results[0];
  }
  return std::nullopt;
}

TEST(ScalarForms, AnEqualScalarIsFoundHoweverItIsWritten) {
  int found = 0, large = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    Graph g = fusion("f");
    std::vector<ValueId> scalars;
    // Some forms grow beyond their limits, and count as atoms from there on.
    const size_t count = 2 + random.below(seed % 4 == 0 ? 30 : 4);
    for (size_t i = 0; i < count; ++i) scalars.push_back(size(g, "n" + std::to_string(i)));
    for (int64_t c : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{3}, int64_t{1} << 40, int64_t{1} << 62})
      scalars.push_back(constant_index(g, c));
    for (int i = 0; i < 60; ++i) {
      const ValueId a = random.pick(scalars), b = random.pick(scalars);
      switch (random.below(4)) {
        case 0:
          scalars.push_back(scalar::mul(g, Graph::body(), a, b));
          break;
        case 1:
          scalars.push_back(scalar::sub(g, Graph::body(), a, b));
          break;
        default:
          scalars.push_back(scalar::add(g, Graph::body(), a, b));
      }
    }
    for (int i = 0; i < 40; ++i) {
      const ScalarForm a = form_of(g, random.pick(scalars)), b = form_of(g, random.pick(scalars));
      const auto form = random.one_in(2) ? std::optional(a) : random.one_in(2) ? add(a, b) : mul(a, b);
      if (!form || form->is_constant() || form->as_atom()) continue;
      large += form->terms.size() > 8;
      const auto expected = first_of_form(g, *form);
      const size_t before = g.ops.size();
      const ValueId emitted = emit_form(g, Graph::body(), *form);
      if (expected) {
        ASSERT_EQ(emitted, *expected) << "seed " << seed << "\n" << print(g);
        ASSERT_EQ(g.ops.size(), before);
        ++found;
      }
    }
  }
  EXPECT_GT(found, 2000);
  EXPECT_GT(large, 100);
}

}  // namespace
}  // namespace fusebox
