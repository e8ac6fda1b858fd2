#include "passes/schedule/column_parts.h"

#include <algorithm>
#include <set>

#include "ir/domain/domain.h"

namespace fusebox {
namespace {

using Names = StepDraft::Names;

constexpr int64_t kVectorOfParts = 4;  // floats

// The first result of each op that depends on the sum, in order.
std::vector<ValueId> made_of(const Graph& g, ValueId sum) {
  std::set<ValueId> all{sum};
  std::vector<ValueId> result;
  for (OpId op : tensor_ops(g)) {
    if (std::ranges::none_of(g[op].operands, [&](ValueId v) { return all.contains(v); })) continue;
    all.insert(g[op].results.begin(), g[op].results.end());
    result.push_back(g[op].results[0]);
  }
  return result;
}

DomainId axis_in(const Graph& g, const ReductionSpace& space, ValueId v, DomainId axis) {
  for (DomainId d : g.tensor_of(v).logical)
    if (space.axis_of(d) == axis && g[d].iter_type != IterType::kBroadcast) return d;
  return {};
}

}  // namespace

bool ColumnParts::suits(const Graph& g, const ReductionSpace& space) {
  if (space.reduced.size() != 1) return false;
  std::set<ValueId> seen;
  for (ValueId sum : space.columns) {
    if (g[g[sum].def].results.size() != 1 || size_bytes(g[sum].dtype) < 4) return false;
    for (ValueId v : made_of(g, sum)) {
      // The loops of what two sums make would come from both, and those of another tensor from the rows.
      const Op& op = g[g[v].def];
      const auto tensors = std::ranges::count_if(op.operands, [&](ValueId from) { return from && g.is_tensor(from); });
      if (!seen.insert(v).second || op.results.size() != 1 || tensors != 1) return false;
      const auto& axes = g.tensor_of(v).logical;
      if (axes.size() != 1 || space.axis_of(axes[0]) != space.reduced[0]) return false;
    }
  }
  return std::ranges::none_of(outputs(g), [&](const OutputRef& out) {
    return out.alias && g.is_tensor(out.value) && space.is_of_columns(out.value);
  });
}

ColumnParts::ColumnParts(const Graph& fusion, const ReductionSpace& space, const ReductionAccess& access,
                         const Heuristics& h, FreshNames& names, StepDraft& steps)
    : g_(fusion), space_(space), access_(access), h_(h), names_(names), steps_(steps) {
  for (ValueId v : space.columns) {
    Sum sum;
    sum.name = g_[v].name;
    sum.column = g_[axis_in(g_, space_, v, space_.reduced[0])].name;
    for (ValueId made : made_of(g_, v)) sum.made.push_back(g_[made].name);
    // Copies of outputs that are read too.
    for (const Step& step : steps.steps())
      if (step.kind == StepKind::kCacheFork &&
          (step.operands[0].value == sum.name || std::ranges::count(sum.made, step.operands[0].value) > 0))
        sum.made.push_back(step.results[0]);
    sums_.push_back(std::move(sum));
  }
}

void ColumnParts::split_off() {
  for (size_t i = 0; i < sums_.size(); ++i) {
    Sum& sum = sums_[i];
    std::string rows;
    for (DomainId axis : access_.kept) {
      const std::string& next = g_[axis_in(g_, space_, space_.columns[i], axis)].name;
      const std::string both = rows.empty() ? next : domain("row");
      if (!rows.empty()) steps_.merge(sum.name, rows, next, both);
      rows = both;
    }
    const std::string row = domain("s");
    sum.groups = domain("p");
    steps_.split(sum.name, rows, h_.number("walk"), sum.groups, row);
    sum.part = names_.tensor(sum.name);
    steps_.rfactor(sum.name, {row}, {sum.part});
    sum.local = names_.tensor(sum.name);
    steps_.cache_before(sum.part, sum.local);
    steps_.set_memory_type(sum.part, MemoryType::kGlobal);
  }
}

bool ColumnParts::is_of_sums(const std::string& name) const {
  return std::ranges::any_of(sums_, [&](const Sum& sum) {
    return name == sum.name || name == sum.part || std::ranges::count(sum.made, name) > 0;
  });
}

Names ColumnParts::of_rows() const {
  Names result;
  const auto add = [&](const std::string& name) {
    if (!is_of_sums(name) && name != g_[space_.reference].name) result.push_back(name);
  };
  for (OpId op : tensor_ops(g_)) add(g_[g_[op].results[0]].name);
  for (const Step& step : steps_.steps()) switch (step.kind) {
      case StepKind::kCacheAfter:
      case StepKind::kCacheBefore:
      case StepKind::kCacheFork:
      case StepKind::kRecompute:
        add(step.results[0]);
        break;
      default:  // any other: it adds no tensor to the rows
        break;
    }
  return result;
}

void ColumnParts::schedule() {
  for (const Sum& sum : sums_) {
    schedule_parts(sum);
    schedule_sum(sum);
  }
}

void ColumnParts::schedule_parts(const Sum& sum) {
  const std::string o = domain("o"), g = domain("g"), k = domain("k"), l = domain("l");
  steps_.split(sum.part, sum.groups, h_.number("walkers"), o, g);
  std::string columns = sum.column, vector, wide;
  if (const int64_t width = h_.number("vector"); width > 1) {
    columns = domain("c");
    vector = domain("v");
    steps_.split(sum.part, sum.column, width, columns, vector);
  }
  steps_.split(sum.part, columns, h_.number("lanes"), k, l);
  std::string w = k, r;
  if (const int64_t chunks = h_.number("chunks"); chunks > 1) {
    r = domain("r");
    w = domain("w");
    vector.empty() ? steps_.split(sum.part, k, chunks, w, r) : steps_.split_outer(sum.part, k, chunks, r, w);
  }
  if (!vector.empty() && h_.number("vector") > kVectorOfParts) {
    wide = domain("x");
    const std::string inner = domain("v");
    steps_.split(sum.part, vector, kVectorOfParts, wide, inner);
    vector = inner;
  }
  Names order;
  for (const std::string& name : {g, o, vector.empty() ? std::string() : r, w, l, vector.empty() ? r : wide, vector})
    if (!name.empty()) order.push_back(name);
  steps_.reorder(sum.part, order);
  steps_.parallelize(sum.part, g, ParallelType::kGridX);
  steps_.parallelize(sum.part, w, ParallelType::kBlockY);
  steps_.parallelize(sum.part, l, ParallelType::kBlockX);
  if (!vector.empty() && size_bytes(g_[*find_value(g_, sum.name)].dtype) == 4)
    steps_.parallelize(sum.part, vector, ParallelType::kVectorize);
}

void ColumnParts::schedule_sum(const Sum& sum) {
  const std::string c = domain("c"), l = domain("l"), o = domain("o"), g = domain("g");
  steps_.split(sum.name, sum.column, h_.number("lanes"), c, l);
  steps_.split(sum.name, c, h_.number("walkers"), o, g);
  if (!sum.made.empty()) {
    steps_.reorder(sum.name, {g, o, sum.groups, l});
    steps_.transform_like(sum.name, sum.made);
  }
  const std::string q = domain("q"), w = domain("w");
  steps_.split(sum.name, sum.groups, h_.number("warps"), q, w);
  steps_.reorder(sum.name, {g, o, q, w, l});
  steps_.parallelize(sum.name, g, ParallelType::kGridX);
  steps_.parallelize(sum.name, l, ParallelType::kBlockX);
  if (!sum.made.empty()) steps_.parallelize_like(sum.name, sum.made);
  steps_.parallelize(sum.name, w, ParallelType::kBlockY);
}

}  // namespace fusebox
