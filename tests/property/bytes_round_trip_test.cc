// Law: decode returns exactly what encode was given, including ids and dead nodes; the same value gives the same bytes.
// The round trips cover every row of every table that a file can hold.
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "serde/decode.h"
#include "serde/encode.h"
#include "serde/features.h"
#include "tests/support/random_bundle.h"
#include "tests/support/real_programs.h"
#include "tests/support/seen_rows.h"

namespace fusebox {
namespace {

using testing::identical;

constexpr uint64_t kSeeds = 2000;

// The row numbers that occur, by the name of their table.
class Coverage : public testing::SeenRows {
 public:
  void add(const Bundle& b) {
    for (const StageRecord& s : b.stages) {
      see("stage", s.stage);
      add(s.module);
    }
    for (const StepList& list : b.steps) add(list.steps);
    for (const Rank& rank : b.ranks) {
      for (const InputRecord& i : rank.inputs) add(i.spec);
      for (const OutputRecord& o : rank.outputs) see("dtype of an output", o.dtype);
      for (const CrossingLayout& c : rank.crossings) see("dtype of a crossing", c.dtype);
      if (rank.failure) see("error", rank.failure->code);
    }
    for (const FeatureRow& row : feature_rows())
      if (features_of(b) & bit_of(row.feature)) see("feature", row.feature);
  }

  void add(const Module& m) {
    for (const Graph& g : m.graphs) add(g);
    for (const StepList& list : m.step_lists) add(list.steps);
    for (const Segmentation& segmentation : m.segmentations)
      for (const Segment& s : segmentation.segments) {
        see("SegmentExecutor", s.executor);
        add(s.steps);
      }
    for (const InputSpecs& specs : m.input_specs)
      for (const InputSpec& spec : specs.specs) add(spec);
  }

 private:
  void add(const Graph& g) {
    see_structure(g);
    for (const Value& v : g.values) see(v.constant ? "dtype of a constant" : "dtype of a value", v.dtype);
    for (const Op& op : g.ops) {
      see("op", op.kind);
      add(op.attrs);
    }
  }

  void add(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      see("step", step.kind);
      add(step.attrs);
    }
  }

  void add(const Attrs& attrs) {
    for (const Attr& attr : attrs.list()) {
      see("attr", attr.key);
      if (const Dtype* dtype = std::get_if<Dtype>(&attr.value)) see("dtype of an attribute", *dtype);
      switch (row_of(attr.key).kind) {
#define FUSEBOX_TYPE(type)                     \
  case AttrKind::k##type:                      \
    see(#type, std::get<int64_t>(attr.value)); \
    break;
        FUSEBOX_ENUM_TYPES(FUSEBOX_TYPE)
#undef FUSEBOX_TYPE
        default:  // any other: holds no enumerator
          break;
      }
    }
  }

  void add(const InputSpec& spec) {
    see("dtype of an input", spec.dtype);
    see("InputGenerator", spec.generator);
  }
};

TEST(BytesRoundTrip, ModulesComeBackIdentical) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Module m = testing::random_module(seed);
    const std::string bytes = encode(m);
    const Module back = decode_module_structure(bytes_of(bytes));
    ASSERT_TRUE(identical(m, back)) << "seed " << seed;
    ASSERT_TRUE(m == back) << "seed " << seed;
    ASSERT_EQ(encode(back), bytes) << "seed " << seed;
  }
}

TEST(BytesRoundTrip, BundlesComeBackIdenticalAndMeetEveryRow) {
  Coverage covered;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Bundle b = testing::random_bundle(seed);
    const std::string bytes = encode(b);
    const Bundle back = decode_bundle_structure(bytes_of(bytes));
    ASSERT_TRUE(identical(b, back)) << "seed " << seed;
    ASSERT_TRUE(b == back) << "seed " << seed;
    ASSERT_EQ(encode(back), bytes) << "seed " << seed;
    covered.add(back);
  }
  for (const OpRow& row : op_rows()) EXPECT_TRUE(covered.has("op", static_cast<size_t>(row.kind))) << "op " << row.text;
  for (const StepRow& row : step_rows())
    EXPECT_TRUE(covered.has("step", static_cast<size_t>(row.kind))) << "step " << row.text;
  for (const AttrRow& row : attr_rows())
    EXPECT_TRUE(covered.has("attr", static_cast<size_t>(row.key))) << "attr " << row.text;
  for (const ErrorRow& row : error_rows())
    EXPECT_TRUE(covered.has("error", static_cast<size_t>(row.code))) << "error " << row.name;
  for (const DtypeRow& row : dtype_rows())
    for (const char* of : {"a value", "a constant", "an attribute", "an input", "an output", "a crossing"})
      EXPECT_TRUE(covered.has("dtype of " + std::string(of), static_cast<size_t>(row.dtype)))
          << row.text << " of " << of;
#define FUSEBOX_TYPE(type)                               \
  for (size_t i = 0; i < enum_texts<type>().size(); ++i) \
    EXPECT_TRUE(covered.has(#type, i)) << #type << " " << enum_texts<type>()[i];
  FUSEBOX_ENUM_TYPES(FUSEBOX_TYPE)
#undef FUSEBOX_TYPE
  for (size_t i = 0; i < stage_texts().size(); ++i)
    EXPECT_TRUE(covered.has("stage", i)) << "stage " << stage_texts()[i];
  for (const FeatureRow& row : feature_rows())
    EXPECT_TRUE(covered.has("feature", static_cast<size_t>(row.feature))) << "feature " << row.text;
}

TEST(BytesRoundTrip, RealProgramsPassTheWholeGate) {
  const auto programs = testing::real_programs();
  EXPECT_GT(programs.size(), 15u);
  for (const testing::RealProgram& program : programs) {
    SCOPED_TRACE(program.path);
    const std::string bytes = encode(program.module);
    const Module back = decode_module(bytes_of(bytes));
    EXPECT_TRUE(identical(program.module, back));
    EXPECT_TRUE(program.module == back);
    EXPECT_EQ(encode(back), bytes);
    Bundle b;
    b.stages.push_back({Stage::kFusion, program.module});
    EXPECT_TRUE(decode_bundle(bytes_of(encode(b))) == b);
  }
}

}  // namespace
}  // namespace fusebox
