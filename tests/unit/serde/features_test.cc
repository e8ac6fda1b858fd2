// The header: errors of a reader that is too old, and headers that contradict themselves.
#include "serde/features.h"

#include <gtest/gtest.h>
#include <set>

#include "ir/text/parse.h"
#include "serde/bundle_generated.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

using testing::expect_error;

struct Name {
  uint8_t bit;
  uint32_t since;
  std::string name;
};

std::string file_with(uint32_t version, uint64_t features, const std::vector<Name>& names) {
  Writer w;
  std::vector<flatbuffers::Offset<wire::Feature>> list;
  for (const Name& n : names) {
    const auto text = w.b.CreateString(n.name);
    list.push_back(wire::CreateFeature(w.b, n.bit, n.since, text));
  }
  const auto header = wire::CreateHeader(w.b, version, features, w.b.CreateVector(list));
  const auto module = wire::CreateModule(w.b);
  return w.finish(wire::CreateModuleFile(w.b, header, module), wire::ModuleFileIdentifier());
}

std::string message_of(const std::string& bytes) {
  try {
    decode_module(bytes_of(bytes));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Features, TheTableIsWellFormed) {
  std::set<unsigned> bits;
  std::set<std::string_view> names;
  for (const FeatureRow& row : feature_rows()) {
    EXPECT_LT(row.bit, 64);
    EXPECT_TRUE(bits.insert(row.bit).second) << row.text;
    EXPECT_TRUE(names.insert(row.text).second) << row.text;
    EXPECT_GE(row.since, 1u);
    EXPECT_LE(row.since, format_version());
  }
}

TEST(Features, AFileNamesWhatItUses) {
  EXPECT_EQ(features_of(Module{}), bit_of(Feature::kModule));
  Bundle b;
  EXPECT_EQ(features_of(b), bit_of(Feature::kModule) | bit_of(Feature::kRecord));
  b.ranks.emplace_back().inputs.emplace_back().bytes = std::vector<uint8_t>(4);
  EXPECT_EQ(features_of(b), bit_of(Feature::kModule) | bit_of(Feature::kRecord) | bit_of(Feature::kExactInputs));
  b.artifacts.emplace_back();
  EXPECT_TRUE(features_of(b) & bit_of(Feature::kArtifacts));
}

TEST(Features, RandomNumbersNeedAReaderOfTheirOps) {
  const uint64_t expected = bit_of(Feature::kModule) | bit_of(Feature::kRandom);
  EXPECT_EQ(
      features_of(parse_module("fusion @f {\n  %y = uniform 0.0_f32, 1.0_f32 seed 1_i64 offset 0_i64 of [5] as f32\n"
                               "  output %y\n}")),
      expected);
  EXPECT_EQ(features_of(parse_module("kernel @k index 32 {\n  %i = thread_index on block.x\n"
                                     "  %w = philox 1_u64, 0_u64, %i slot 0 : u32\n}")),
            expected);
}

TEST(Features, RowsOfPartOfAWarpNeedAReaderOfThem) {
  const Module m =
      parse_module("kernel @k index 32 {\n  %x = input f32\n  %y = warp_reduce value [%x] reduce sum width 8 : f32\n}");
  EXPECT_EQ(features_of(m), bit_of(Feature::kModule) | bit_of(Feature::kLanes));
  EXPECT_TRUE(decode_module(bytes_of(encode(m))) == m);
}

TEST(Features, OpsThatAtenComputesNeedAReaderOfThem) {
  const Module m = parse_module("fusion @f {\n  %x = input f32[3, 4]\n  %y = cumsum %x axis 1\n  output %y\n}");
  EXPECT_EQ(features_of(m), bit_of(Feature::kModule) | bit_of(Feature::kLibraryOps));
  EXPECT_TRUE(decode_module(bytes_of(encode(m))) == m);
}

TEST(Features, FunctionsOfComplexTensorsNeedAReaderOfThem) {
  const uint64_t expected = bit_of(Feature::kModule) | bit_of(Feature::kComplexFunctions);
  for (const char* op : {"exp %x", "triu %x, 1"}) {
    const auto text = [&](const char* dtype) {
      return std::string("fusion @f {\n  %x = input ") + dtype + "[3, 4]\n  %y = " + op + "\n  output %y\n}";
    };
    EXPECT_EQ(features_of(parse_module(text("c64"))), expected) << op;
    EXPECT_EQ(features_of(parse_module(text("f32"))), bit_of(Feature::kModule)) << op;
  }
  const Module m = parse_module(
      "fusion @f {\n  %x = input f32[3, 4]\n  %i = input i64[2, 4]\n  %s = input f32[2, 4]\n"
      "  %y = scatter_add %x, %i, %s axis 0\n  output %y\n}");
  EXPECT_EQ(features_of(m), expected | bit_of(Feature::kLibraryOps));
  EXPECT_TRUE(decode_module(bytes_of(encode(m))) == m);
}

TEST(Features, WhatAtenMakesNeedsAReaderOfItsResults) {
  EXPECT_EQ(features_of(parse_module("host @h {\n  %x = input f32[4] global\n"
                                     "  %y = run_aten with [%x] name \"part\" slot 1 : f32[4] global\n  output %y\n}")),
            bit_of(Feature::kModule) | bit_of(Feature::kAtenResults));
}

TEST(Features, WhatALaunchNeedsNeedsAReaderOfIt) {
  CacheRecord r;
  r.image.emplace();
  EXPECT_FALSE(features_of(r) & bit_of(Feature::kLaunchRecords));
  r.image->is_dependent = true;
  EXPECT_TRUE(features_of(r) & bit_of(Feature::kLaunchRecords));
  EXPECT_TRUE(features_of(r) & bit_of(Feature::kDependentLaunches));
  r.image->is_dependent = false;
  r.image->is_cooperative = true;
  EXPECT_TRUE(features_of(r) & bit_of(Feature::kLaunchRecords));
  r.image.reset();
  r.compiled.emplace();
  EXPECT_FALSE(features_of(r) & bit_of(Feature::kLaunchRecords));
  r.compiled->launch.emplace();
  EXPECT_TRUE(features_of(r) & bit_of(Feature::kLaunchRecords));
  Bundle b;
  EXPECT_FALSE(features_of(b) & bit_of(Feature::kLaunchRecords));
  b.records.push_back(r);
  EXPECT_TRUE(features_of(b) & bit_of(Feature::kLaunchRecords));
}

TEST(Features, AKernelThatChecksAnIndexNeedsAReaderOfItsOp) {
  const Module m = parse_module(
      "kernel @k index 32 {\n  %n = input index\n  %i = thread_index on block.x\n  within %i below %n axis 0\n}");
  EXPECT_EQ(features_of(m), bit_of(Feature::kModule) | bit_of(Feature::kIndexChecks));
  Bundle b;
  b.stages.push_back({Stage::kFusion, {}});
  EXPECT_FALSE(features_of(b) & bit_of(Feature::kIndexChecks));
  b.stages.push_back({Stage::kKernel, m});
  EXPECT_TRUE(features_of(b) & bit_of(Feature::kIndexChecks));
  EXPECT_EQ(row_of(Feature::kIndexChecks).since, 2u);
  EXPECT_TRUE(decode_module(bytes_of(encode(m))) == m);
}

TEST(Features, AGoodHeaderByHandIsRead) {
  EXPECT_TRUE(decode_module(bytes_of(file_with(1, 1, {{0, 1, "module"}}))) == Module{});
}

TEST(Features, AFileOfTheFutureIsRefusedByTheNameOfWhatItNeeds) {
  const auto bytes = file_with(7, 1 | uint64_t{1} << 40, {{0, 1, "module"}, {40, 7, "time_travel"}});
  expect_error(ErrorCode::kNewerVersion, "module.header.features", [&] { decode_module(bytes_of(bytes)); });
  EXPECT_NE(message_of(bytes).find("'time_travel' of format 7"), std::string::npos) << message_of(bytes);
  const auto unnamed = file_with(7, 1 | uint64_t{1} << 41, {{0, 1, "module"}});
  expect_error(ErrorCode::kNewerVersion, "module.header.features", [&] { decode_module(bytes_of(unnamed)); });
  EXPECT_NE(message_of(unnamed).find("feature 41"), std::string::npos) << message_of(unnamed);
  const auto newer = file_with(format_version() + 1, 1, {{0, 1, "module"}});
  expect_error(ErrorCode::kNewerVersion, "module.header.version", [&] { decode_module(bytes_of(newer)); });
}

TEST(Features, ANameFromTheFileIsMadeFitForAMessage) {
  const auto bytes = file_with(9, uint64_t{1} << 50, {{50, 9, "a\n\x1b[31m" + std::string(500, 'x')}});
  const std::string message = message_of(bytes);
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_LT(message.size(), 250u);
}

TEST(Features, HeadersThatContradictThemselves) {
  const auto refused = [](const std::string& field, const std::string& bytes) {
    expect_error(ErrorCode::kInvalidField, "module.header." + field, [&] { decode_module(bytes_of(bytes)); });
  };
  refused("names[0].bit", file_with(1, 1, {{64, 1, "module"}}));
  refused("names[1].bit", file_with(1, 1, {{0, 1, "module"}, {0, 1, "module"}}));
  refused("names[1].bit", file_with(1, 3, {{1, 1, "record"}, {0, 1, "module"}}));
  refused("names[0].name", file_with(1, 1, {{0, 1, "record"}}));
  refused("names[0].since", file_with(1, 1, {{0, 2, "module"}}));
  refused("features", file_with(1, 3, {{0, 1, "module"}}));
  refused("features", file_with(1, 1, {{0, 1, "module"}, {1, 1, "record"}}));
  refused("features", file_with(1, 0, {}));
  refused("version", file_with(0, 1, {{0, 1, "module"}}));
}

TEST(Features, AMissingVersionIsRefused) {
  Writer w;
  const auto header = wire::CreateHeader(w.b);
  const auto module = wire::CreateModule(w.b);
  const std::string bytes = w.finish(wire::CreateModuleFile(w.b, header, module), wire::ModuleFileIdentifier());
  expect_error(ErrorCode::kInvalidField, "module.header.version", [&] { decode_module(bytes_of(bytes)); });
}

TEST(Features, AFileThatIsSomethingElse) {
  for (const std::string& bytes : {std::string(), std::string("short"), std::string(1000, 'x'), encode(Bundle{})})
    expect_error(ErrorCode::kNotABundle, "module", [&] { decode_module(bytes_of(bytes)); });
  for (const std::string& bytes : {std::string(), encode(Module{})})
    expect_error(ErrorCode::kNotABundle, "bundle", [&] { decode_bundle(bytes_of(bytes)); });
  EXPECT_TRUE(is_module(bytes_of(encode(Module{}))));
  EXPECT_TRUE(is_bundle(bytes_of(encode(Bundle{}))));
  EXPECT_FALSE(is_bundle(bytes_of(encode(Module{}))));
}

TEST(Features, ACutFileDoesNotVerify) {
  const std::string bytes = encode(Bundle{});
  // The last bytes may be padding.
  for (size_t size = 8; size + 4 <= bytes.size(); ++size)
    expect_error(ErrorCode::kDamagedBundle, "bundle",
                 [&] { decode_bundle(bytes_of(std::string_view(bytes).substr(0, size))); });
}

}  // namespace
}  // namespace fusebox
