// Laws of cache records: what is written comes back; bytes with any damage are refused; bytes that somebody made, with a
// right checksum, are a usable value or a coded error.
//
// FUSEBOX_DAMAGED_CASES sets how many (default 20,000).
#include <gtest/gtest.h>
#include <map>

#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/text/parse.h"
#include "passes/pipeline/signature.h"
#include "replay/cache/compiled_record.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "serde/record_file.h"
#include "tests/support/program_text.h"
#include "tests/support/random_bundle.h"
#include "tests/support/setting.h"

namespace fusebox {
namespace {

using testing::Random;

uint64_t cases() { return testing::setting("FUSEBOX_DAMAGED_CASES", 20'000); }

// A program of two kernels, one of them with a reduction, as a run keeps it.
CacheRecord real_record() {
  const Module m = parse_module(testing::program_text("exp_over_sum"));
  const std::vector<BoundInput> inputs{{.shape = {5, 7}, .strides = {7, 1}}};
  const CompileOptions options{.inputs = inputs, .digest_plans = true};
  const Compiled c = compile(m.graphs[0], bind_sizes(m.graphs[0], inputs), options);
  KernelImage image;
  image.kernel = digest(c.kernels[0]);
  image.binary = {1, 2, 3};
  return {.key = {key_part("a", "1")},
          .compiled = compiled_fusion(c, std::vector<KernelImage>{image}, signature_of(m.graphs[0], options)),
          .image = {}};
}

TEST(CacheRecords, ComeBackAsTheyWere) {
  const CacheRecord real = real_record();
  EXPECT_EQ(real.compiled->images.size(), 1u);
  EXPECT_GT(real.compiled->plans.size(), 1u);
  EXPECT_TRUE(testing::identical(decode_record(bytes_of(encode(real))), real));
  EXPECT_EQ(real.compiled->signature.inputs.size(), 1u);
  ASSERT_TRUE(real.compiled->launch);
  EXPECT_GT(real.compiled->launch->code.size(), 10u);
  EXPECT_TRUE(compiled_fusion(compiled_of(*real.compiled), real.compiled->images, real.compiled->signature) ==
              *real.compiled);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const CacheRecord r = testing::random_record(random);
    const std::string bytes = encode(r);
    EXPECT_TRUE(testing::identical(decode_record_structure(bytes_of(bytes)), r) ||
                encode(decode_record_structure(bytes_of(bytes))) == bytes)
        << seed;
  }
}

TEST(CacheRecords, DigestsTellEveryImageAndProgramApart) {
  const CompiledFusion a = *real_record().compiled;
  CompiledFusion b = a;
  b.images[0].binary[0] ^= 1;
  EXPECT_NE(digest(a), digest(b));
  EXPECT_NE(digest(a.images[0]), digest(b.images[0]));
  EXPECT_EQ(digest(a), digest(CompiledFusion(a)));
  const auto expect_other = [&](const auto& change) {
    CompiledFusion other = a;
    change(other);
    EXPECT_NE(digest(a), digest(other));
  };
  expect_other([](CompiledFusion& c) { c.images[0].is_cooperative = true; });
  expect_other([](CompiledFusion& c) { c.images[0].opts_in_shared = true; });
  expect_other([](CompiledFusion& c) { c.images[0].is_dependent = true; });
  expect_other([](CompiledFusion& c) { c.signature.inputs[0].align = 4; });
  expect_other([](CompiledFusion& c) { c.launch->errors[0].place += "_"; });
  expect_other([](CompiledFusion& c) { c.launch.reset(); });
}

TEST(CacheRecords, KeysWithOtherPartsHaveOtherBytes) {
  EXPECT_NE(key_bytes({key_part("a", "bc")}), key_bytes({key_part("ab", "c")}));
  EXPECT_NE(key_bytes({key_part("a", "b"), key_part("", "")}), key_bytes({key_part("a", "b")}));
  EXPECT_EQ(part_of({key_part("a", "b")}, "a"), "b");
  EXPECT_EQ(part_of({key_part("a", "b")}, "b"), "");
}

TEST(CacheRecords, EveryWrongBitAndEveryCutIsRefused) {
  const std::string bytes = encode(real_record());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] ^= static_cast<char>(1 << bit % 8);
    EXPECT_THROW(decode_record_structure(bytes_of(damaged)), Error) << "bit " << bit;
  }
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_THROW(decode_record_structure(bytes_of(std::string_view(bytes).substr(0, length))), Error) << length;
}

ErrorCode refusal(std::string_view bytes) {
  try {
    decode_record(bytes_of(bytes));
  } catch (const Error& e) {
    EXPECT_FALSE(e.place.empty()) << e.what();
    return e.code;
  }
  return {};
}

TEST(CacheRecords, OtherVersionsAndContentsAreNamed) {
  const std::string bytes = encode(real_record());
  std::string other = bytes;
  other[8] = kRecordVersion + 1;
  EXPECT_EQ(refusal(other), ErrorCode::kNewerVersion);
  for (uint32_t older = 0; older < kRecordVersion; ++older) {
    other[8] = static_cast<char>(older);
    EXPECT_EQ(refusal(other), ErrorCode::kInvalidField) << older;
  }
  EXPECT_EQ(refusal(bytes.substr(0, 20)), ErrorCode::kDamagedBundle);
  EXPECT_EQ(refusal("FUSE"), ErrorCode::kNotABundle);
  CacheRecord r = real_record();
  const auto refused = [](const CacheRecord& broken) { return refusal(encode_unchecked(broken)); };
  r.image.emplace();
  EXPECT_EQ(refused(r), ErrorCode::kInvalidField) << "both";
  r.compiled.reset(), r.image.reset();
  EXPECT_EQ(refused(r), ErrorCode::kInvalidField) << "neither";
  r = real_record();
  r.key.push_back(r.key[0]);
  EXPECT_EQ(refused(r), ErrorCode::kInvalidField) << "a key's part twice";
  r = real_record();
  r.compiled->index_bits = 16;
  EXPECT_EQ(refused(r), ErrorCode::kInvalidField);
  r = real_record();
  r.compiled->code.graphs.pop_back();
  EXPECT_EQ(refused(r), ErrorCode::kInvalidField);
  r = real_record();
  r.compiled->scheduled.graphs.pop_back();
  EXPECT_EQ(refused(r), ErrorCode::kInvalidField);
  r = real_record();
  r.compiled->plans.pop_back();
  EXPECT_EQ(refused(r), ErrorCode::kInvalidField);
  r = real_record();
  ++r.compiled->launch->kernels;
  EXPECT_EQ(refused(r), ErrorCode::kInvalidField) << "a kernel that no segment is";
  r = real_record();
  r.compiled->launch->registers = 0;
  EXPECT_EQ(refused(r), ErrorCode::kInvalidField) << "instructions without their registers";
  r = real_record();
  r.compiled->signature.facts = {{"index width", "32"}, {"index width", "64"}};
  EXPECT_EQ(refused(r), ErrorCode::kInvalidField) << "a fact twice";
  r = real_record();
  std::swap(r.compiled->code.graphs[0], r.compiled->code.graphs[1]);
  EXPECT_EQ(refused(r), ErrorCode::kInvalidField) << "a kernel in the host program's place";
}

TEST(CacheRecords, DamageUnderARightChecksumGivesAValueOrACodedError) {
  std::vector<std::string> payloads;
  const auto payload_of = [](const std::string& file) { return file.substr(32); };
  payloads.push_back(payload_of(encode(real_record())));
  for (uint64_t seed = 0; seed < 16; ++seed) {
    Random random(seed);
    payloads.push_back(payload_of(encode(testing::random_record(random, {.graphs = 1, .ops = 5}))));
  }
  std::map<std::string, size_t> seen;
  for (uint64_t seed = 0; seed < cases() && !HasFatalFailure(); ++seed) {
    Random random(seed);
    std::string payload = random.one_in(2) ? payloads[0] : random.pick(payloads);
    for (size_t n = 1 + random.below(3); n > 0; --n) {
      const size_t at = random.below(payload.size());
      switch (random.below(4)) {
        case 0:
          payload[at] = static_cast<char>(random.next());
          break;
        case 1:
          payload[at] ^= static_cast<char>(1 << random.below(8));
          break;
        case 2:
          payload.resize(std::max<size_t>(at, 1));
          break;
        default:
          payload.insert(at, random.pick(payloads).substr(0, random.below(32)));
      }
    }
    try {
      const CacheRecord r = decode_record(bytes_of(record_file(payload)));
      if (r.compiled) compiled_of(*r.compiled);
      const std::string again = encode(r);
      ASSERT_EQ(encode(decode_record(bytes_of(again))), again) << seed;
      ++seen["value"];
    } catch (const Error& e) {
      ASSERT_NE(e.code, ErrorCode::kInternal) << seed << " " << e.what();
      ASSERT_FALSE(e.place.empty()) << seed << " " << e.what();
      ++seen[code_text(e.code)];
    }
  }
  for (const auto& [what, count] : seen) std::printf("  %zu %s\n", count, what.c_str());
  EXPECT_GT(seen["value"], cases() / 100);
  EXPECT_GT(seen[code_text(ErrorCode::kDamagedBundle)], cases() / 100);
  EXPECT_GT(seen[code_text(ErrorCode::kInvalidField)], cases() / 1000);
}

}  // namespace
}  // namespace fusebox
