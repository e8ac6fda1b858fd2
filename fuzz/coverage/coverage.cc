#include "fuzz/coverage/coverage.h"

#include <algorithm>
#include <array>

#include "fuzz/coverage/coverage_classes.h"
#include "fuzz/generate/constants.h"
#include "fuzz/generate/focus.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"

namespace fusebox::fuzz {
namespace {

enum Group : size_t {
  kOps,
  kTransforms,
  kParallels,
  kSteps,
  kExtents,
  kRanks,
  kLayouts,
  kValues,
  kFactors,
  kMemories,
  kLengths,
  kConstants,
  kFolds,
  kCasts,
  kSlices,
  kOutputs,
  kSwizzles,
  kForms,
  kFunctions,
  kIndices,
  kTensors,
  kStepParts,
  kOpParts,
  kSituations
};
constexpr size_t kNoRow = ~size_t{0};

constexpr const char* kExtentClasses[] = {
    "0", "1", "2", "prime", "power of two", "power of two - 1", "power of two + 1", "other"};
constexpr const char* kLayoutClasses[] = {"contiguous", "permuted", "gaps", "stride 0", "offset", "far apart"};
constexpr const char* kValueClasses[] = {"normal", "uniform", "integers", "boundary"};
constexpr InputGenerator kValueGenerators[] = {InputGenerator::kNormal, InputGenerator::kUniform,
                                               InputGenerator::kIntegers, InputGenerator::kBoundary};

// A split's factor compared with the extent that it splits.
constexpr const char* kFactorClasses[] = {"1",          "divides",    "leaves a rest", "extent - 1",
                                          "the extent", "extent + 1", "more"};
constexpr MemoryType kScheduleMemories[] = {MemoryType::kLocal, MemoryType::kShared, MemoryType::kGlobal};
constexpr const char* kLengthClasses[] = {"1 op", "2 to 5 ops", "6 to 15 ops", "16 to 40 ops"};

size_t factor_class(int64_t factor, int64_t extent) {
  if (factor == extent) return 4;
  if (factor == 1) return 0;
  if (factor == extent - 1) return 3;
  if (factor == extent + 1) return 5;
  if (factor > extent) return 6;
  return extent % factor == 0 ? 1 : 2;
}

bool is_prime(int64_t n) {
  for (int64_t d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return n > 1;
}
bool is_power(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

size_t extent_class(int64_t n) {
  if (n <= 2) return static_cast<size_t>(n);
  if (is_power(n)) return 4;
  if (is_power(n + 1)) return 5;
  if (is_power(n - 1)) return 6;
  return is_prime(n) ? 3 : 7;
}

// The parallel types that a schedule on one device can have.
constexpr ParallelType kScheduleTypes[] = {ParallelType::kSerial,  ParallelType::kGridX,     ParallelType::kGridY,
                                           ParallelType::kGridZ,   ParallelType::kBlockX,    ParallelType::kBlockY,
                                           ParallelType::kBlockZ,  ParallelType::kVectorize, ParallelType::kUnroll,
                                           ParallelType::kUnswitch};

}  // namespace

Coverage::Coverage() {
  const auto begin = [&] { groups_.push_back(rows_.size()); };
  begin();
  op_dtype_.assign(op_rows().size() * dtype_rows().size(), kNoRow);
  for (OpKind kind : generated_ops())
    for (const DtypeRow& d : dtype_rows()) {
      if (d.dtype == Dtype::kIndex || !accepts_dtype(kind, d.dtype)) continue;
      op_dtype_[static_cast<size_t>(kind) * dtype_rows().size() + static_cast<size_t>(d.dtype)] = rows_.size();
      rows_.push_back({"op", std::string(row_of(kind).text) + " " + std::string(d.text)});
    }
  begin();
  for (std::string_view a : enum_texts<TransformKind>())
    for (std::string_view b : enum_texts<TransformKind>())
      rows_.push_back({"transforms", std::string(a) + ", then " + std::string(b)});
  begin();
  for (ParallelType p : kScheduleTypes) rows_.push_back({"parallel", std::string(text(p))});
  begin();
  for (const StepRow& row : step_rows()) rows_.push_back({"step", std::string(row.text)});
  begin();
  for (const char* name : kExtentClasses) rows_.push_back({"extent", name});
  begin();
  for (int rank = 0; rank <= 6; ++rank) rows_.push_back({"rank", std::to_string(rank)});
  begin();
  for (const char* name : kLayoutClasses) rows_.push_back({"layout", name});
  begin();
  for (const char* name : kValueClasses) rows_.push_back({"values", name});
  begin();
  for (const char* name : kFactorClasses) rows_.push_back({"factor", name});
  begin();
  for (MemoryType m : kScheduleMemories) rows_.push_back({"memory", std::string(text(m))});
  begin();
  for (const char* name : kLengthClasses) rows_.push_back({"length", name});
  const auto names = [&](std::string group, std::span<const std::string_view> list) {
    begin();
    for (std::string_view name : list) rows_.push_back({group, std::string(name)});
  };
  names("constant", kConstantClasses);
  names("folds", kFoldClasses);
  names("casts", kCastClasses);
  names("slice", kSliceClasses);
  names("output", kOutputClasses);
  names("swizzle", kSwizzleClasses);
  const auto texts = [&](std::string group, const std::vector<std::string>& list) {
    begin();
    for (const std::string& name : list) rows_.push_back({group, name});
  };
  begin();
  for (const FormFocus& f : all_forms()) rows_.push_back({"form", text(f)});
  texts("function", function_names());
  names("index", kIndexClasses);
  names("tensor", kTensorClasses);
  texts("step with", step_part_names());
  texts("op with", op_part_names());
  names("situation", kSituationClasses);
}

void Coverage::count_row(size_t group, size_t offset) { ++rows_[groups_[group] + offset].count; }

void Coverage::count(const Case& c) {
  count_fusion(c.fusion());
  count_inputs(c);
  for (size_t i : output_classes(c)) count_row(kOutputs, i);
  for (size_t i : function_classes(c)) count_row(kFunctions, i);
  for (size_t i : index_classes(c)) count_row(kIndices, i);
  for (size_t i : situation_classes(c)) count_row(kSituations, i);
  if (!c.compiled) return;
  count_schedule(*c.compiled);
  if (const auto* steps = c.steps())
    for (const Step& s : *steps) {
      count_row(kSteps, static_cast<size_t>(s.kind));
      for (size_t i : step_part_classes(s)) count_row(kStepParts, i);
    }
  for (const Step& s : c.compiled->concretize) count_row(kSteps, static_cast<size_t>(s.kind));
}

void Coverage::count_fusion(const Graph& g) {
  size_t ops = 0;
  for (const Op& op : g.ops) ops += !demands(op.kind, kSignature) && !op.results.empty() && g.is_tensor(op.results[0]);
  if (ops > 0) count_row(kLengths, ops == 1 ? 0 : ops <= 5 ? 1 : ops <= 15 ? 2 : 3);
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    // The dtype of the computation. `where` reads its condition first, so its last tensor counts; `full`, `iota` and
    // random ops have the dtype of their result.
    ValueId v = op.operands.empty() ? ValueId() : op.operands[0];
    for (ValueId x : op.operands)
      if (x && g.is_tensor(x) && (!g.is_tensor(v) || op.kind == OpKind::kWhere)) v = x;
    if (op.kind == OpKind::kFull || op.kind == OpKind::kIota || is_random(op.kind)) v = op.results[0];
    if (!v) continue;
    const size_t row = op_dtype_[static_cast<size_t>(op.kind) * dtype_rows().size() + static_cast<size_t>(g[v].dtype)];
    if (row != kNoRow && !op.results.empty() && g.is_tensor(op.results[0])) ++rows_[row].count;
    for (ValueId x : op.operands)
      if (x && g.is_constant(x) && g[x].dtype != Dtype::kIndex && !is_storage_only(g[x].dtype))
        count_row(kConstants, static_cast<size_t>(constant_class(g[x].dtype, *g[x].constant)));
  }
  for (size_t i : fold_classes(g)) count_row(kFolds, i);
  for (size_t i : cast_classes(g)) count_row(kCasts, i);
  for (size_t i : slice_classes(g)) count_row(kSlices, i);
  for (size_t i : form_classes(g)) count_row(kForms, i);
  for (size_t i : tensor_classes(g)) count_row(kTensors, i);
  for (size_t i : op_part_classes(g)) count_row(kOpParts, i);
}

void Coverage::count_inputs(const Case& c) {
  for (const InputSpec& s : c.inputs().specs) {
    if (s.is_scalar) continue;
    if (s.shape.size() <= 6) count_row(kRanks, s.shape.size());
    for (int64_t e : s.shape) count_row(kExtents, extent_class(e));
    if (s.strides.empty()) count_row(kLayouts, 0);
    if (!std::is_sorted(s.strides.rbegin(), s.strides.rend())) count_row(kLayouts, 1);
    int64_t elements = 1, reach = 1;
    for (size_t i = 0; i < s.strides.size(); ++i) {
      elements *= s.shape[i];
      reach += (s.shape[i] - 1) * s.strides[i];
    }
    if (!s.strides.empty() && elements > 0 && reach > elements) count_row(kLayouts, 2);
    if (std::find(s.strides.begin(), s.strides.end(), 0) != s.strides.end()) count_row(kLayouts, 3);
    if (s.offset > 0) count_row(kLayouts, 4);
    if (elements > 0 && reach > (int64_t{1} << 28)) count_row(kLayouts, 5);
    for (size_t i = 0; i < std::size(kValueGenerators); ++i)
      if (s.generator == kValueGenerators[i]) count_row(kValues, i);
  }
}

void Coverage::count_schedule(const Compiled& c) {
  for (const Graph& g : c.scheduled) {
    for (size_t i : swizzle_classes(g)) count_row(kSwizzles, i);
    for (const Transform& t : g.transforms)
      for (DomainId d : t.inputs)
        if (g[d].def)
          count_row(kTransforms, static_cast<size_t>(g[g[d].def].kind) * enum_texts<TransformKind>().size() +
                                     static_cast<size_t>(t.kind));
    for (const Transform& t : g.transforms) {
      if (t.kind != TransformKind::kSplit) continue;
      const auto extent = evaluate_extent(g, t.inputs[0]);
      const auto factor = constant_integer(g, t.factor);
      if (extent && factor) count_row(kFactors, factor_class(*factor, *extent));
    }
    for (const Tensor& t : g.tensors)
      for (size_t i = 0; i < std::size(kScheduleMemories); ++i)
        if (t.memory == kScheduleMemories[i]) count_row(kMemories, i);
    for (const Tensor& t : g.tensors)
      for (DomainId d : loop_of(t))
        for (size_t i = 0; i < std::size(kScheduleTypes); ++i)
          if (g[d].parallel == kScheduleTypes[i]) count_row(kParallels, i);
  }
}

std::vector<CoverageRow> Coverage::rows() const { return rows_; }

void Coverage::add_counts(std::span<const uint64_t> counts) {
  check_internal(counts.size() == rows_.size(), "counts of another table of coverage");
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i].count += counts[i];
}

void Coverage::add(const Coverage& other) {
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i].count += other.rows_[i].count;
}

size_t Coverage::covered() const {
  return static_cast<size_t>(
      std::count_if(rows_.begin(), rows_.end(), [](const CoverageRow& r) { return r.count > 0; }));
}

}  // namespace fusebox::fuzz
