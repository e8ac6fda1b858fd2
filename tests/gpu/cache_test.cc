// The cache of compiled fusions on a GPU: a second process compiles nothing and gives the same bits, and a binary that
// does not fit is compiled again.
#include <gtest/gtest.h>

#include "ir/text/parse.h"
#include "replay/cache/fusion_cache.h"
#include "replay/cache/pack.h"
#include "replay/device/cuda_loader.h"
#include "replay/run/run.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "tests/support/program_text.h"

namespace fusebox {
namespace {

bool has_gpu() {
  try {
    return !cuda_backend().devices().empty();
  } catch (const Error&) {
    return false;
  }
}

const Module& softmax() {
  static const Module m = parse_module(testing::program_text("exp_over_sum") + R"(inputs @f host {
  %x = f32[5, 37] normal seed 1
})");
  return m;
}

Run run_with(const std::shared_ptr<MemoryStore>& store, bool only_cached) {
  const Module& m = softmax();
  RunOptions options{.executor = Executor::kCuda};
  options.cache = std::make_shared<FusionCache>(store);
  options.only_cached = only_cached;
  return run_program(m, make_arguments(m.graphs[0], find_input_specs(m, "f", "host"), {}), options);
}

// Each test begins with a store that has the records of one run.
class CacheOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU";
    cold = run_with(store, false);
  }

  const std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  fusebox::Run cold;
};

void expect_same(const fusebox::Run& cold, const fusebox::Run& warm) {
  ASSERT_FALSE(warm.failure) << warm.failure->message;
  EXPECT_TRUE(cold.digests == warm.digests);
}

TEST_F(CacheOnGpu, ASecondProcessCompilesNothing) {
  ASSERT_FALSE(cold.failure) << cold.failure->message;
  EXPECT_FALSE(cold.is_from_cache);
  EXPECT_FALSE(cold.images.empty());
  const fusebox::Run warm = run_with(store, true);
  expect_same(cold, warm);
  EXPECT_TRUE(warm.is_from_cache);
}

TEST_F(CacheOnGpu, TheFusionsRecordSuffices) {
  std::erase_if(store->records, [](const auto& r) { return r.first.ends_with(kKernelSuffix); });
  const fusebox::Run warm = run_with(store, true);
  expect_same(cold, warm);
}

TEST_F(CacheOnGpu, TheKernelsRecordsServeBelowIt) {
  std::erase_if(store->records, [](const auto& r) { return r.first.ends_with(kFusionSuffix); });
  const fusebox::Run warm = run_with(store, false);
  expect_same(cold, warm);
  EXPECT_FALSE(warm.is_from_cache);
}

TEST_F(CacheOnGpu, ABinaryThatTheDriverDoesNotTakeIsCompiledAgain) {
  for (auto& [name, bytes] : store->records) {
    CacheRecord r = decode_record(bytes_of(bytes));
    if (r.image) r.image->binary.assign(64, 0);
    if (r.compiled)
      for (KernelImage& image : r.compiled->images) image.binary.assign(64, 0);
    bytes = encode(r);
  }
  const fusebox::Run only = run_with(store, true);
  ASSERT_TRUE(only.failure);
  EXPECT_EQ(only.failure->code, ErrorCode::kNotCached);
  const fusebox::Run warm = run_with(store, false);
  expect_same(cold, warm);
}

TEST_F(CacheOnGpu, AnImportCompilesTheKernelsToTheSameBinaries) {
  std::vector<CacheRecord> records;
  for (const auto& [name, bytes] : store->records) records.push_back(decode_record(bytes_of(bytes)));
  const Bundle bundle = decode_bundle(bytes_of(encode(pack(records))));
  for (const bool trusts : {false, true}) {
    const auto other = std::make_shared<MemoryStore>();
    const auto unpacked = unpack(bundle, *other, {.trust_binaries = trusts});
    ASSERT_EQ(unpacked.size(), 1u);
    EXPECT_EQ(unpacked[0].compiled, trusts ? 0 : unpacked[0].kernels);
    const fusebox::Run warm = run_with(other, true);
    expect_same(cold, warm);
  }
}

}  // namespace
}  // namespace fusebox
