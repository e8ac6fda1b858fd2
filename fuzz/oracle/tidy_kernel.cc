#include "fuzz/oracle/tidy_kernel.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>

#include "fuzz/oracle/kernel_points.h"
#include "ir/domain/domain.h"
#include "ir/table/families.h"

namespace fusebox::fuzz {
namespace {

// With fewer points, too many different functions would look alike.
constexpr int kFewestPoints = 16;
// Functions with more divisions than this need not be recognised as equal.
constexpr size_t kMostDivisions = 2;

class TidyKernel {
 public:
  TidyKernel(const Graph& kernel, const TidyOptions& options)
      : g_(kernel), options_(options), outside_(g_.regions.size()), is_address_(g_.values.size()) {
    for (size_t r = 0; r < g_.regions.size(); ++r)
      for (OpId id : g_.regions[r].ops)
        for (RegionId inside : g_[id].regions) outside_[inside.index] = RegionId(r);
    find_addresses();
  }

  std::vector<Untidy> run() {
    for (const Region& region : g_.regions) judge_ops(region);
    judge_forwarding();
    if (options_.launch) {
      auto launch = *options_.launch;
      // A dimension with one thread keeps its checks like any other, so pretend that it has two.
      for (int64_t& n : launch) n = n == 1 ? 2 : n;
      const KernelPoints points(g_, launch, options_.seed);
      points_ = &points;
      judge_functions(Graph::body());
    }
    return std::move(found_);
  }

 private:
  bool is_index(ValueId v) const {
    return !g_.is_tensor(v) && (g_[v].dtype == Dtype::kIndex || g_[v].dtype == Dtype::kBool);
  }

  // Finds the values that addresses, bounds and conditions are computed from.
  void find_addresses() {
    const auto mark = [&](ValueId v) {
      if (v) is_address_[v.index] = true;
    };
    const auto order = ops_in_order(g_);
    for (size_t i = order.size(); i-- > 0;) {
      const Op& op = g_[order[i]];
      switch (op.kind) {
        case OpKind::kLoad:
        case OpKind::kStore:
          mark(op.operands[1]);
          mark(op.operands[op.kind == OpKind::kLoad ? 2 : 3]);
          break;
        case OpKind::kCopy:
          mark(op.operands[1]);
          mark(op.operands[3]);
          mark(op.operands[4]);
          break;
        case OpKind::kFor:
        case OpKind::kIf:
        case OpKind::kAllocate:
          for (ValueId v : op.operands) mark(v);
          break;
        case FUSEBOX_COORDINATE_OPS:
        case FUSEBOX_BARRIER_OPS:
        case FUSEBOX_EXCHANGE_OPS:
        case OpKind::kWelfordCombine:
        case OpKind::kWithin:
        case OpKind::kPhilox:
        case FUSEBOX_SCALAR_OPS:
        case FUSEBOX_TENSOR_OPS:
        case FUSEBOX_STRUCTURE_OPS:
        case FUSEBOX_HOST_OPS:
        case FUSEBOX_FACT_OPS:
        case OpKind::kPreparedDiv:
          if (op.results.size() == 1 && is_address_[op.results[0].index] && is_index(op.results[0]))
            for (ValueId v : op.operands) mark(v);
      }
    }
  }

  bool is_judged(const Op& op) const {
    return op.results.size() == 1 && demands(op.kind, kPointwise) && is_index(op.results[0]) &&
           is_address_[op.results[0].index];
  }

  // -- by inspection
  void judge_ops(const Region& region) {
    std::map<std::tuple<OpKind, std::vector<ValueId>, bool>, ValueId> seen;
    for (OpId id : region.ops) {
      const Op& op = g_[id];
      if (op.kind == OpKind::kFor) judge_loop(id);
      if (!is_judged(op)) continue;
      // Complex numbers and storage-only dtypes are not folded; the kernel computes them.
      const auto is_known = [&](ValueId v) {
        return v && g_.is_constant(v) && !is_complex(g_[v].dtype) && !is_storage_only(g_[v].dtype);
      };
      if (std::all_of(op.operands.begin(), op.operands.end(), is_known)) tell("constants", id, "has constants alone");
      const auto [first, is_new] =
          seen.try_emplace({op.kind, op.operands, op.attrs.flag(AttrKey::kNonNegative)}, op.results[0]);
      if (!is_new) tell("twice", id, "is %" + g_[first->second].name + " again");
      if (op.kind == OpKind::kLogicalAnd) judge_conjunction(id);
    }
  }

  void judge_loop(OpId id) {
    const auto& bounds = g_[id].operands;
    const auto start = constant_integer(g_, bounds[0]), stop = constant_integer(g_, bounds[1]),
               step = constant_integer(g_, bounds[2]);
    if (start && stop && step && *start < *stop && *stop - *start <= *step) tell("loop", id, "has one iteration");
  }

  // Checks a conjunction, a chain that grows at one end by one condition each.
  void judge_conjunction(OpId id) {
    // On numbers, it is an op of the program and no condition.
    for (ValueId v : g_[id].operands)
      if (g_[v].dtype != Dtype::kBool) return;
    const ValueId last = g_[id].operands[1];
    if (g_.is_constant(last) || g_.is_constant(g_[id].operands[0])) tell("conjunct", id, "has a constant part");
    for (ValueId v = g_[id].operands[0];;) {
      if (v == last) return tell("conjunct", id, "has %" + g_[last].name + " twice");
      const OpId def = g_[v].def;
      if (!def || g_[def].kind != OpKind::kLogicalAnd) return;
      if (g_[def].operands[1] == last) return tell("conjunct", id, "has %" + g_[last].name + " twice");
      v = g_[def].operands[0];
    }
  }

  struct Use {
    OpId op;
    RegionId region;
  };
  struct Buffer {
    OpId allocate;
    std::vector<Use> stores, loads;
    bool is_other = false;
  };

  void collect(RegionId region, std::map<ValueId, Buffer>& buffers) const {
    for (OpId id : g_[region].ops) {
      const Op& op = g_[id];
      if (op.kind == OpKind::kAllocate && g_.tensor_of(op.results[0]).memory == MemoryType::kLocal &&
          constant_integer(g_, op.operands[0]) == 1)
        buffers[op.results[0]].allocate = id;
      for (size_t k = 0; k < op.operands.size(); ++k) {
        const auto it = op.operands[k] ? buffers.find(op.operands[k]) : buffers.end();
        if (it == buffers.end()) continue;
        Buffer& b = it->second;
        if (op.kind == OpKind::kLoad && !op.operands[2] && !b.stores.empty())
          b.loads.push_back({id, region});
        else if (op.kind == OpKind::kStore && !op.operands[3] && b.loads.empty())
          b.stores.push_back({id, region});
        else
          b.is_other = true;
      }
      for (RegionId inside : op.regions) collect(inside, buffers);
    }
  }

  bool is_inside(RegionId r, RegionId of) const {
    while (r != of && r != Graph::body()) r = outside_[r.index];
    return r == of;
  }

  void judge_forwarding() {
    std::map<ValueId, Buffer> buffers;
    collect(Graph::body(), buffers);
    for (const auto& [v, b] : buffers) {
      if (b.is_other || b.stores.size() != 1) continue;
      const Use& store = b.stores[0];
      if (std::all_of(b.loads.begin(), b.loads.end(), [&](const Use& u) { return is_inside(u.region, store.region); }))
        tell("forward", b.allocate, "is stored once, and read where that was done");
    }
  }

  // -- by evaluation at points
  void judge_functions(RegionId region) {
    const size_t visible = visible_.size();
    if (const ValueId index = g_[region].index; index && points_->has_function(index)) visible_.push_back(index);
    for (OpId id : g_[region].ops) {
      const Op& op = g_[id];
      if (op.results.size() == 1 && points_->has_function(op.results[0])) {
        if (is_judged(op)) judge_function(id, region);
        visible_.push_back(op.results[0]);
      }
      for (RegionId inside : op.regions) judge_functions(inside);
    }
    visible_.resize(visible);
  }

  void judge_function(OpId id, RegionId region) {
    const ValueId v = g_[id].results[0];
    const uint64_t live = points_->live(region);
    if (!points_->is_closed(v) || __builtin_popcountll(live) < kFewestPoints) return;
    const bool is_condition = g_[v].dtype == Dtype::kBool;
    if (is_condition && options_.is_resized) return;
    const auto first = static_cast<size_t>(__builtin_ctzll(live));
    const auto& row = points_->row(v);
    const auto looks_like = [&](auto other) {
      for (size_t i = first; i < KernelPoints::kPoints; ++i)
        if ((live >> i & 1) != 0 && row[i] != other(i)) return false;
      return true;
    };
    const int64_t n = row[first];
    if (looks_like([&](size_t) { return n; })) {
      const ValueId asked[] = {v};
      // Nothing runs under a condition that is never true, so simplifying it gains nothing.
      if (is_condition && n == 0) return;
      if (points_->holds(asked, region, [&](auto x) { return x[0] == n; }).value_or(false))
        tell(is_condition ? "needless" : "constant", id, "is always " + std::to_string(n));
      return;
    }
    if (is_condition) return;
    // Two ops may be the same function without one being simpler. Only the index of a loop or thread is simpler.
    const auto& operands = g_[id].operands;
    for (ValueId other : visible_) {
      if (g_[other].dtype != g_[v].dtype || !points_->is_closed(other)) continue;
      const bool is_operand = std::find(operands.begin(), operands.end(), other) != operands.end();
      if (!is_operand && !points_->is_variable(other)) continue;
      const auto& known = points_->row(other);
      if (row[first] != known[first] || !looks_like([&](size_t i) { return known[i]; })) continue;
      const ValueId asked[] = {v, other};
      if (divisions(v) > kMostDivisions ||
          !points_->holds(asked, region, [](auto x) { return x[0] == x[1]; }).value_or(false))
        continue;
      return tell(is_operand ? "operand" : "known", id, "is always %" + g_[other].name);
    }
  }

  // The number of dividing ops that a value is computed from.
  size_t divisions(ValueId v) const {
    std::set<ValueId> cone = {v};
    size_t count = 0;
    for (std::vector<ValueId> open = {v}; !open.empty();) {
      const OpId def = g_[open.back()].def;
      open.pop_back();
      if (!def) continue;
      count +=
          g_[def].kind == OpKind::kFloorDiv || g_[def].kind == OpKind::kFloorMod || g_[def].kind == OpKind::kCeilDiv;
      for (ValueId operand : g_[def].operands)
        if (operand && cone.insert(operand).second) open.push_back(operand);
    }
    return count;
  }

  void tell(std::string_view check, OpId id, const std::string& what) {
    if (std::any_of(found_.begin(), found_.end(), [&](const Untidy& u) { return u.check == check; })) return;
    const Op& op = g_[id];
    const std::string name = op.results.empty() ? "" : "%" + g_[op.results[0]].name + ", ";
    found_.push_back({check, id, name + std::string(row_of(op.kind).text) + ", " + what});
  }

  const Graph& g_;
  const TidyOptions& options_;
  std::vector<RegionId> outside_;  // for each region: the enclosing one
  std::vector<bool> is_address_;
  const KernelPoints* points_ = nullptr;
  std::vector<ValueId> visible_;
  std::vector<Untidy> found_;
};

// The tensor of a buffer name such as T7; an invalid id if the name belongs to no tensor.
TensorId tensor_of_name(const Graph& scheduled, std::string_view name) {
  uint32_t index = 0;
  if (!name.starts_with("T")) return {};
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), index);
  if (error != std::errc() || end != name.data() + name.size() || index >= scheduled.tensors.size()) return {};
  return TensorId(index);
}

// The number of elements that the tensor's loops make it keep; empty if a broadcast may take another extent.
std::optional<int64_t> most_elements(const Graph& g, ValueId v, bool is_shared, const Bindings& sizes) {
  const OpId def = g[v].def;
  if (!def) return std::nullopt;
  const Tensor& leader = g.tensor_of(g[def].results[0]);
  if (!leader.allocation.empty()) return std::nullopt;
  int64_t elements = 1;
  bool is_own = !leader.inline_at;
  for (DomainId d : loop_of(leader)) {
    const ParallelType p = g[d].parallel;
    // A shared loop has the parallel type of its consumer.
    const bool kept = is_shared ? !is_grid(p) : is_own && !is_thread(p);
    is_own = is_own || d == leader.inline_at;
    if (!kept || g[d].iter_type == IterType::kReduction) continue;
    for (DomainId leaf : leaves(g, d))
      if (g[leaf].iter_type == IterType::kBroadcast) return std::nullopt;
    auto extent = evaluate_extent(g, d);
    if (!extent) extent = evaluate_extent(g, d, sizes);
    if (!extent || __builtin_mul_overflow(elements, std::max<int64_t>(*extent, 1), &elements)) return std::nullopt;
  }
  return elements;
}

}  // namespace

std::vector<Untidy> find_untidy(const Graph& kernel, const TidyOptions& options) {
  return TidyKernel(kernel, options).run();
}

std::vector<Untidy> find_large_buffers(const Graph& kernel, const Graph& scheduled, const Bindings& sizes) {
  std::vector<Untidy> found;
  for (OpId id : ops_in_order(kernel)) {
    const Op& op = kernel[id];
    if (op.kind != OpKind::kAllocate) continue;
    const auto elements = constant_integer(kernel, op.operands[0]);
    const TensorId t = tensor_of_name(scheduled, kernel[op.results[0]].name);
    if (!elements || !t) continue;
    const bool is_shared = kernel.tensor_of(op.results[0]).memory == MemoryType::kShared;
    const auto most = most_elements(scheduled, scheduled[t].value, is_shared, sizes);
    if (most && *elements > *most)
      found.push_back({"buffer-size", id,
                       "%" + kernel[op.results[0]].name + " of %" + scheduled[scheduled[t].value].name + " has " +
                           std::to_string(*elements) + " elements where its loops have " + std::to_string(*most)});
  }
  return found;
}

}  // namespace fusebox::fuzz
