// Values by name: an index finds what a search through all values finds, while values are added too.
#include "ir/graph/name_index.h"

#include <gtest/gtest.h>

#include "ir/build/builder.h"

namespace fusebox {
namespace {

TEST(NameIndex, FindsWhatASearchFinds) {
  Graph g = fusion("f");
  NameIndex names(g);
  for (int i = 0; i < 400; ++i) {
    add_scalar(g, Dtype::kIndex, "a" + std::to_string(i));
    constant_index(g, i);
    for (int k = std::max(0, i - 3); k < i + 3; ++k) {
      const std::string name = "a" + std::to_string(k);
      ASSERT_EQ(names.find(name), find_value(g, name)) << name;
    }
  }
  for (const char* name : {"", "a", "a400", "b7", "a0"}) EXPECT_EQ(names.find(name), find_value(g, name)) << name;
}

TEST(NameIndex, TheFirstOfTwoIsFound) {
  Graph g = fusion("f");
  for (int i = 0; i < 100; ++i) add_scalar(g, Dtype::kIndex, "a" + std::to_string(i));
  g.values[70].name = g.values[60].name = g.values[80].name = "twice";
  NameIndex names(g);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(names.find("twice"), ValueId(60u));
}

TEST(NameIndex, AddedValuesHaveTheNamesThatTheyHaveWithoutIt) {
  Graph g = fusion("f"), h = fusion("f");
  NameIndex names(g);
  for (int i = 0; i < 100; ++i)
    for (const char* name : {"a", "b", ""}) {
      const std::string wanted = name + std::string(*name ? std::to_string(i / 2) : "");
      EXPECT_EQ(add_scalar(g, names, Dtype::kIndex, wanted), add_scalar(h, Dtype::kIndex, wanted));
      EXPECT_EQ(add_tensor(g, names, Dtype::kFloat, wanted), add_tensor(h, Dtype::kFloat, wanted));
    }
  EXPECT_EQ(g.values, h.values);
  EXPECT_EQ(g.tensors, h.tensors);
}

}  // namespace
}  // namespace fusebox
