// The invariants of bundle.h, each broken in one field, and what a bundle keeps.
#include "serde/bundle.h"

#include <functional>
#include <gtest/gtest.h>

#include "serde/decode.h"
#include "serde/encode.h"
#include "tests/support/expect_error.h"
#include "tests/support/random_bundle.h"

namespace fusebox {
namespace {

using testing::expect_error;

Bundle good() {
  Bundle b;
  b.program = "f";
  b.stages.push_back({Stage::kFusion, {}});
  b.stages.push_back({Stage::kKernel, {}});
  b.options = {{"defect", "drop_barrier"}, {"planner", "unfused"}};
  b.digests = {{"fusion", {1, 2}}, {"kernel", {3, 4}}};
  b.steps.emplace_back().graph = "f";
  Rank& rank = b.ranks.emplace_back();
  rank.executor = "host";
  InputRecord& input = rank.inputs.emplace_back();
  input.spec.name = "x";
  input.spec.shape = {2, 3};
  input.bytes = std::vector<uint8_t>(24, 7);
  rank.outputs.push_back({"y", Dtype::kFloat, {2, 3}, {3, 1}, {5, 6}});
  rank.failure = Failure{ErrorCode::kRace, "two threads", "%y"};
  rank.crossings.push_back({"s0", "t", Dtype::kHalf, {2, 3}, {3, 1}});
  rank.environment = {{"gpu", "none"}, {"compiler", "none"}};
  b.artifacts.push_back({"k0", "sm_80", "text", {1, 2, 3}});
  return b;
}

struct Case {
  const char* place;
  std::function<void(Bundle&)> damage;
};

const Case kCases[] = {
    {"stages[1].stage", [](Bundle& b) { b.stages[1].stage = Stage::kFusion; }},
    {"stages[1].stage", [](Bundle& b) { std::swap(b.stages[0], b.stages[1]); }},
    {"options", [](Bundle& b) { b.options[1].key = b.options[0].key; }},
    {"digests", [](Bundle& b) { b.digests[1].name = b.digests[0].name; }},
    {"ranks[0].environment", [](Bundle& b) { b.ranks[0].environment[1].key = "gpu"; }},
    {"ranks[0].inputs[0].bytes", [](Bundle& b) { b.ranks[0].inputs[0].bytes->pop_back(); }},
    {"ranks[0].inputs[0].bytes", [](Bundle& b) { b.ranks[0].inputs[0].spec.dtype = Dtype::kDouble; }},
    {"ranks[0].inputs[0].bytes", [](Bundle& b) { b.ranks[0].inputs[0].spec.shape = {int64_t{1} << 62}; }},
    {"ranks[0].inputs[0].bytes", [](Bundle& b) { b.ranks[0].inputs[0].spec.is_scalar = true; }},
    {"ranks[0].inputs[0].spec.shape[0]", [](Bundle& b) { b.ranks[0].inputs[0].spec.shape[0] = -2; }},
    {"ranks[0].outputs[0].strides", [](Bundle& b) { b.ranks[0].outputs[0].strides.pop_back(); }},
    {"ranks[0].crossings[0].shape[1]", [](Bundle& b) { b.ranks[0].crossings[0].shape[1] = -2; }},
    {"ranks[0].failure.code", [](Bundle& b) { b.ranks[0].failure->code = static_cast<ErrorCode>(999); }},
};

TEST(Bundle, ComesBack) {
  const Bundle b = good();
  const std::string bytes = encode(b);
  EXPECT_TRUE(decode_bundle(bytes_of(bytes)) == b);
  EXPECT_EQ(encode(decode_bundle(bytes_of(bytes))), bytes);
}

TEST(Bundle, EveryDamagedFieldIsRefusedByItsPlace) {
  for (const Case& c : kCases) {
    Bundle b = good();
    c.damage(b);
    const std::string place = "bundle." + std::string(c.place);
    expect_error(ErrorCode::kInvalidField, place, [&] { decode_bundle(bytes_of(encode_unchecked(b))); });
    expect_error(ErrorCode::kInvalidField, place, [&] { encode(b); });
  }
}

TEST(Bundle, NumbersThatAreNoRow) {
  Bundle b = good();
  b.stages[1].stage = static_cast<Stage>(stage_texts().size());
  expect_error(ErrorCode::kInvalidField, "bundle.stages[1].stage",
               [&] { decode_bundle(bytes_of(encode_unchecked(b))); });
  b = good();
  b.ranks[0].outputs[0].dtype = static_cast<Dtype>(dtype_rows().size());
  expect_error(ErrorCode::kInvalidField, "bundle.ranks[0].outputs[0].dtype",
               [&] { decode_bundle(bytes_of(encode_unchecked(b))); });
  b = good();
  b.ranks[0].crossings[0].dtype = static_cast<Dtype>(dtype_rows().size());
  expect_error(ErrorCode::kInvalidField, "bundle.ranks[0].crossings[0].dtype",
               [&] { decode_bundle(bytes_of(encode_unchecked(b))); });
}

TEST(Bundle, AGraphInAStageIsCheckedToo) {
  Bundle b = good();
  b.stages[0].module.graphs.emplace_back().regions.clear();
  const std::string place = "bundle.stages[0].module.graphs[0].regions";
  expect_error(ErrorCode::kInvalidField, place, [&] { decode_bundle_structure(bytes_of(encode_unchecked(b))); });
  expect_error(ErrorCode::kInvalidField, place, [&] { encode(b); });
}

TEST(Bundle, NoBytesAreNotTheSameAsNone) {
  Bundle b = good();
  b.ranks[0].inputs[0].spec.shape = {0, 3};
  b.ranks[0].inputs[0].bytes.emplace();
  EXPECT_TRUE(decode_bundle(bytes_of(encode(b))) == b);
  b.ranks[0].inputs[0].bytes.reset();
  EXPECT_TRUE(decode_bundle(bytes_of(encode(b))) == b);
}

TEST(Bundle, EveryErrorCodeTravels) {
  for (const ErrorRow& row : error_rows()) {
    Bundle b = good();
    b.ranks[0].failure->code = row.code;
    EXPECT_TRUE(decode_bundle(bytes_of(encode(b))) == b) << row.name;
  }
}

TEST(Bundle, IsFoundByName) {
  const Bundle b = good();
  EXPECT_EQ(find_stage(b, Stage::kKernel), &b.stages[1].module);
  EXPECT_EQ(find_stage(b, Stage::kHost), nullptr);
  EXPECT_EQ(*find_digest(b, "kernel"), (Digest{3, 4}));
  EXPECT_EQ(find_digest(b, "host"), nullptr);
  EXPECT_EQ(*find_value(b.options, "planner"), "unfused");
  EXPECT_EQ(find_value(b.options, "seed"), nullptr);
}

TEST(Bundle, BytesAtAnyAddressAreRead) {
  const Bundle b = testing::random_bundle(3);
  const std::string bytes = encode(b);
  for (size_t shift = 0; shift < 8; ++shift) {
    const std::string moved = std::string(shift, '\0') + bytes;
    EXPECT_TRUE(testing::identical(decode_bundle_structure(bytes_of(std::string_view(moved).substr(shift))), b));
  }
}

}  // namespace
}  // namespace fusebox
