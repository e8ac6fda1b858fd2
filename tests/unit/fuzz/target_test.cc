// Inputs of the libFuzzer targets: any bytes are valid, and mutations of cases are cases.
#include "fuzz/case_bytes/target.h"

#include <gtest/gtest.h>

#include "fuzz/index_laws/law.h"
#include "fuzz/index_laws/records.h"
#include "fuzz/mutate/mutate.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "serde/decode.h"

namespace fusebox::fuzz {
namespace {

// A bundle with a long sum is refused, so none is drawn.
const CaseOptions kSmall = {.fusion = {.max_ops = 5, .long_sum_one_in = 0}, .steps = {.max_transforms = 6}};
constexpr size_t kMaxSize = 32768;

TEST(CaseInput, ABundleGivesTheCaseAgain) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Case c = generate_case(seed, kSmall).value;
    c.lineage = {{"extent", {"1", "7"}}, {"splice", {"0", "split %T1.i0 by 4 -> o, t"}}};
    const auto back = case_of_bytes(bytes_of_case(c), kSmall);
    ASSERT_TRUE(back) << seed << "\n" << print(c.module);
    EXPECT_EQ(print(back->module), print(c.module));
    EXPECT_EQ(back->seed, c.seed);
    EXPECT_EQ(back->lineage, c.lineage);
  }
}

TEST(CaseInput, MutationsAreCasesWithTheirLineage) {
  size_t cases = 0, mutated = 0, spliced = 0;
  Bytes bytes = {1, 2, 3};
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    RandomSource random(seed), again(seed);
    const Bytes next = mutate_case_bytes(random, bytes, kSmall, kMaxSize);
    ASSERT_EQ(next, mutate_case_bytes(again, bytes, kSmall, kMaxSize));
    ASSERT_LE(next.size(), kMaxSize);
    if (is_bundle(next)) {
      const auto c = case_of_bytes(next, kSmall);
      ASSERT_TRUE(c) << seed;
      EXPECT_FALSE(find_error(c->fusion()));
      ++cases;
      mutated += !c->lineage.empty();
      const auto crossed = case_of_bytes(cross_case_bytes(random, next, bytes, kSmall, kMaxSize), kSmall);
      spliced += crossed && !crossed->lineage.empty() && crossed->lineage.back().name == "splice";
    }
    bytes = next;
  }
  EXPECT_GT(cases, 150u);
  EXPECT_GT(mutated, 60u);
  EXPECT_GT(spliced, 10u);
}

TEST(CaseInput, AnyBytesAreChoicesOrRefused) {
  RandomSource random(5);
  Bytes bundle = bytes_of_case(generate_case(3, kSmall).value);
  for (int i = 0; i < 300; ++i) {
    const Bytes damaged = i % 2 == 0 ? mutate_wire(random, bundle) : Bytes(random.below(64), static_cast<uint8_t>(i));
    try {
      if (const auto c = case_of_bytes(damaged, kSmall)) {
        EXPECT_FALSE(find_error(c->fusion()));
      }
    } catch (const Error& e) {
      EXPECT_NE(row_of(e.code).outcome, Outcome::kInternal) << e.what();
    }
  }
}

TEST(IndexRecords, BytesAndRecordsAreOne) {
  RandomSource random(7);
  index_laws::Records r = index_laws::read_records({});
  index_laws::Law law;
  size_t chains = 0, kept = 0;
  for (int i = 0; i < 4000; ++i) {
    index_laws::mutate_records(random, r);
    const auto bytes = index_laws::write_records(r);
    const index_laws::Records back = index_laws::read_records(bytes);
    ASSERT_EQ(index_laws::write_records(back),
              index_laws::write_records(index_laws::read_records(index_laws::write_records(back))));
    const index_laws::Case c = index_laws::case_of(back);
    law.check(c, index_laws::bindings_of(back), 200);
    for (const index_laws::Tensor& t : c.tensors) chains += t.chain.size() + t.down.size();
    kept += back.transforms.size();
    if (i % 50 == 0) r = index_laws::read_records({});
  }
  EXPECT_EQ(law.counts.violations, 0);
  for (const std::string& violation : law.violations) ADD_FAILURE() << violation;
  // Many records are transforms.
  EXPECT_GT(chains, kept / 3);
  EXPECT_GT(law.counts.points, 20000);
}

}  // namespace
}  // namespace fusebox::fuzz
