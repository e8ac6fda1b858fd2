// Mutations give a valid case or none, and their records repeat them.
#include "fuzz/mutate/mutate.h"

#include <gtest/gtest.h>
#include <map>

#include "ir/table/error.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"

namespace fusebox::fuzz {
namespace {

TEST(Mutate, WhatComesBackIsValidAndItsLineageGivesItAgain) {
  std::map<std::string, int> kinds;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const Case from = generate_case(seed, {}).value, other = generate_case(seed + 10000, {}).value;
    if (!from.compiled) continue;
    RandomSource random(seed);
    const auto c = mutate(random, from, other, {});
    if (!c) continue;
    ASSERT_FALSE(find_error(c->fusion())) << seed;
    ASSERT_FALSE(c->lineage.empty());
    Case again = from;
    for (const Mutation& m : c->lineage) {
      ++kinds[m.name];
      auto next = apply_mutation(again, m);
      ASSERT_TRUE(next) << seed << " " << m.name;
      again = *std::move(next);
    }
    EXPECT_EQ(print(again.module), print(c->module)) << seed << "\n" << print_lineage(*c);
  }
  for (const MutationRow& row : mutation_rows()) EXPECT_GT(kinds[std::string(row.text)], 0) << row.text;
}

TEST(Mutate, ARecordThatDoesNotFitGivesNothing) {
  const Case from = generate_case(3, {}).value;
  for (const MutationRow& row : mutation_rows())
    for (const std::vector<std::string>& p :
         {std::vector<std::string>{}, {"999999"}, {"-1", "x"}, {"nothing", "add", "%"}})
      EXPECT_FALSE(apply_mutation(from, {std::string(row.text), p})) << row.text;
  EXPECT_THROW(apply_mutation(from, {"paint", {}}), Error);
}

}  // namespace
}  // namespace fusebox::fuzz
