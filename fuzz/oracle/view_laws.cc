#include "fuzz/oracle/view_laws.h"

#include <algorithm>
#include <numeric>

#include "ir/build/builder.h"
#include "ir/domain/domain.h"
#include "ir/infer/bind.h"
#include "ir/infer/is_library.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "passes/automatic/cut_views.h"
#include "passes/schedule/apply_steps.h"
#include "passes/segment/assign_step.h"
#include "passes/segment/crossing_layouts.h"
#include "passes/segment/segment.h"

namespace fusebox::fuzz {
namespace {

constexpr int64_t kMostElements = 4096;
constexpr int kLayouts = 4;  // of each operand

class ViewLaws {
 public:
  ViewLaws(OracleRun& run, const Graph& g, Bindings sizes)
      : run_(run), g_(g), sizes_(std::move(sizes)), random_(run.random(97)) {}

  void judge_ops() {
    for (OpId op : g_[Graph::body()].ops) {
      if (g_[op].kind != OpKind::kReshape && g_[op].kind != OpKind::kSlice) continue;
      for (int i = 0; i < kLayouts; ++i) judge_elements(op);
      judge_overwritten(op);
    }
  }

  // What planning takes the memory of a view of an input to be.
  void judge_memory() {
    const std::vector<OpId> ops = CutViews::find(g_, defects());
    const std::vector<BoundInput> given = bound_inputs(run_.arguments());
    const auto all = inputs(g_);
    const CutViews views(g_, ops, SizeClasses(g_, sizes_, defects()), memory_classes(g_, given, defects()), defects());
    for (OpId op : ops) {
      const ValueId from = g_[op].operands[0];
      const auto at = static_cast<size_t>(std::ranges::find(all, from) - all.begin());
      const auto shape = shape_of(from), to = shape_of(g_[op].results[0]);
      const auto found = find_view(g_, op, defects());
      const View* view = std::get_if<View>(&found);
      const auto claimed = views.memory().find(g_[g_[op].results[0]].name);
      if (at >= given.size() || !view || !shape || !to || element_count(*to) == 0 || claimed == views.memory().end())
        continue;
      const std::vector<int64_t> strides = given[at].strides.empty() ? contiguous_strides(*shape) : given[at].strides;
      const int64_t bytes = first_of(*view, strides) * size_bytes(g_[from].dtype);
      const int64_t of_input = given[at].align > 0 ? given[at].align : MemoryClass().align;
      if (bytes % claimed->second.align != 0 || of_input % claimed->second.align != 0)
        report("view-alignment", op, "begins " + std::to_string(bytes) + " bytes behind its operand");
    }
  }

 private:
  const Defects& defects() const { return run_.options().defects; }
  std::string name(OpId op) const { return "%" + g_[g_[op].results[0]].name; }
  void report(std::string_view check, OpId op, const std::string& message) {
    run_.report("meta", check, row_of(g_[op].kind).text, name(op) + " " + message);
  }

  std::optional<std::vector<int64_t>> shape_of(ValueId v) const {
    std::vector<int64_t> shape;
    for (DomainId d : logical_without_reductions(g_, g_.tensor_of(v))) {
      const auto size = evaluate_extent(g_, d, sizes_);
      if (!size) return std::nullopt;
      shape.push_back(*size);
    }
    return shape;
  }

  // Any layout that the operand may have in memory.
  MemoryOrder any_order(ValueId v) {
    const auto axes = logical_without_reductions(g_, g_.tensor_of(v));
    MemoryOrder in;
    in.order.resize(axes.size());
    std::iota(in.order.begin(), in.order.end(), int64_t{0});
    if (random_.one_in(3)) random_.shuffle(in.order);
    for (int64_t axis : in.order) {
      const bool is_broadcast = g_[axes[static_cast<size_t>(axis)]].iter_type == IterType::kBroadcast;
      in.contiguity.push_back(is_broadcast        ? Contiguity::kNone
                              : random_.one_in(4) ? Contiguity::kFalse
                                                  : Contiguity::kTrue);
    }
    return in;
  }

  TensorLayout any_layout(const std::vector<int64_t>& shape, const MemoryOrder& in) {
    TensorLayout layout{shape, std::vector<int64_t>(shape.size())};
    int64_t next = 1;
    for (size_t k = in.order.size(); k-- > 0;) {
      if (in.contiguity[k] == Contiguity::kNone) continue;
      if (in.contiguity[k] == Contiguity::kFalse) next += static_cast<int64_t>(random_.below(4));
      const auto axis = static_cast<size_t>(in.order[k]);
      layout.strides[axis] = next;
      next *= std::max<int64_t>(shape[axis], 1);
    }
    return layout;
  }

  int64_t stride_of(const View::Stride& stride, const std::vector<int64_t>& given) const {
    int64_t result = given[stride.axis];
    for (DomainId d : stride.times) result *= evaluate_extent(g_, d, sizes_).value_or(0);
    return result;
  }
  std::vector<int64_t> strides_of(const View& view, const std::vector<int64_t>& given) const {
    std::vector<int64_t> result;
    for (const auto& stride : view.strides) result.push_back(stride ? stride_of(*stride, given) : 0);
    return result;
  }
  int64_t first_of(const View& view, const std::vector<int64_t>& given) const {
    int64_t first = 0;
    for (const View::Shift& shift : view.shifts)
      first -= evaluate_integer(g_, shift.left, sizes_).value_or(0) * stride_of(shift.by, given);
    return first;
  }

  static std::vector<int64_t> index_of(int64_t number, const std::vector<int64_t>& shape) {
    std::vector<int64_t> index(shape.size());
    for (size_t i = shape.size(); i-- > 0; number /= shape[i]) index[i] = number % shape[i];
    return index;
  }
  static int64_t place(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
    return std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
  }

  // Where a slice begins, as ATen takes its bounds; zeros for a reshape.
  std::optional<std::vector<int64_t>> begins_of(OpId op, const std::vector<int64_t>& shape) const {
    std::vector<int64_t> begins(shape.size(), 0);
    if (g_[op].kind != OpKind::kSlice) return begins;
    for (size_t i = 0; i < shape.size(); ++i) {
      const auto from = evaluate_integer(g_, g_[op].operands[1 + i], sizes_);
      if (!from) return std::nullopt;
      begins[i] = std::clamp<int64_t>(*from < 0 ? *from + shape[i] : *from, 0, shape[i]);
    }
    return begins;
  }

  // The view has each element where the operand has the one that the op takes for it.
  void judge_elements(OpId op) {
    const auto from = shape_of(g_[op].operands[0]), to = shape_of(g_[op].results[0]);
    if (!from || !to || element_count(*to) == 0 || element_count(*to) > kMostElements) return;
    const auto begins = begins_of(op, *from);
    const MemoryOrder in = any_order(g_[op].operands[0]);
    const auto found = find_view(g_, op, in, defects());
    const View* view = std::get_if<View>(&found);
    if (!view || !begins) return;
    const std::vector<int64_t> given = any_layout(*from, in).strides, strides = strides_of(*view, given);
    const int64_t first = first_of(*view, given);
    for (int64_t number = 0; number < element_count(*to); ++number) {
      const std::vector<int64_t> index = index_of(number, *to);
      std::vector<int64_t> taken = g_[op].kind == OpKind::kSlice ? index : index_of(number, *from);
      for (size_t i = 0; i < taken.size(); ++i) taken[i] += (*begins)[i];
      if (first + place(index, strides) != place(taken, given))
        return report("view-elements", op, "has its element " + std::to_string(number) + " at another place");
    }
    if (!has_order({*to, strides}, view->in_memory.order, view->in_memory.contiguity))
      report("view-contiguity", op, "has gaps where it is taken to have none");
  }

  void judge_overwritten(OpId op) {
    const ValueId from = g_[op].operands[0];
    const auto given = outputs(g_);
    if (std::ranges::none_of(given, [&](const OutputRef& out) { return out.alias == from; })) return;
    std::vector<Step> steps;
    for (OpId id : g_[Graph::body()].ops) {
      if (g_[id].kind == OpKind::kInput || g_[id].results.empty() || !g_.is_tensor(g_[id].results[0])) continue;
      steps.push_back(assign_step({g_[g_[id].results[0]].name}, "s" + std::to_string(steps.size()),
                                  id == op                 ? SegmentExecutor::kView
                                  : is_library(g_, g_[id]) ? SegmentExecutor::kAten
                                                           : SegmentExecutor::kKernel));
    }
    try {
      plan_assigned(g_, steps, defects());
      report("view-overwritten", op, "is a view of an input that is overwritten");
    } catch (const Error& e) {
      if (e.code == ErrorCode::kInternal) run_.report("meta", e, "a view of an input that is overwritten");
    }
  }

  OracleRun& run_;
  const Graph& g_;
  const Bindings sizes_;
  RandomSource random_;
};

// A slice of an input and a reshape of it, whose axes of one element come and go, and outputs over the input. Programs seldom
// have them together.
Graph made_views(RandomSource& random) {
  Graph g = fusion("views");
  Shape shape, starts, stops, to;
  const size_t rank = 1 + random.below(4);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t extent = random.between(1, 4), start = random.between(0, extent - 1);
    const int64_t left = random.between(1, extent - start);
    shape.emplace_back(extent);
    starts.emplace_back(start);
    stops.emplace_back(start + left);
    if (left == 1 && random.one_in(2)) continue;
    if (random.one_in(6)) to.emplace_back(1);
    const bool merges = !to.empty() && random.one_in(4);
    if (merges)
      to.back() = Scalar(to.back().number * left);
    else
      to.emplace_back(left);
  }
  const ValueId x = input(g, "x", Dtype::kFloat, shape), s = slice(g, x, starts, stops);
  output(g, unary(g, OpKind::kNeg, reshape(g, s, to)));
  const ValueId over = unary(g, OpKind::kAbs, x);
  if (random.one_in(2)) output(g, over, x);
  if (random.one_in(2)) output(g, over, input(g, "w", Dtype::kFloat, shape));
  return g;
}

}  // namespace

void judge_views(OracleRun& run) {
  if (const Compiled* c = run.compiled()) {
    ViewLaws laws(run, c->concretized, rebind(run.fusion(), run.sizes(), c->concretized));
    laws.judge_ops();
    laws.judge_memory();
  }
  RandomSource random = run.random(98);
  const Graph made = made_views(random);
  ViewLaws(run, made, Bindings(made.values.size())).judge_ops();
}

}  // namespace fusebox::fuzz
