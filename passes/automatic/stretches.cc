#include "passes/automatic/stretches.h"

#include <algorithm>
#include <ranges>

#include "ir/domain/axis_relation.h"
#include "ir/infer/is_library.h"
#include "ir/infer/product_call.h"
#include "ir/table/families.h"
#include "passes/schedule/arithmetic.h"

namespace fusebox {
namespace {

// Such ops that stand one behind the other and are made again where they are read, at most.
constexpr int kMostArithmetic = 4;

}  // namespace

Stretches::Stretches(const Graph& g, const Defects& defects, const std::vector<OpId>& views)
    : g_(g),
      defects_(defects),
      readers_(uses(g)),
      positions_(g.ops.size(), kNowhere),
      is_output_(g.values.size()),
      is_overwritten_(g.values.size()) {
  for (const OutputRef& out : outputs(g)) {
    is_output_[out.value.index] = true;
    if (out.alias) is_overwritten_[out.alias.index] = true;
  }
  std::vector<bool> is_view(g.ops.size());
  for (OpId op : views) {
    is_view[op.index] = true;
    is_output_[g[op].operands[0].index] = true;
  }
  for (OpId op : g[Graph::body()].ops)
    if (g[op].kind != OpKind::kInput && !g[op].results.empty() && g.is_tensor(g[op].results[0]) && !is_view[op.index]) {
      positions_[op.index] = order_.size();
      order_.push_back(op);
      arithmetic_.push_back(is_arithmetic(g[op].kind)     ? arithmetic_on(op)
                            : g[op].kind == OpKind::kCast ? arithmetic_behind(g[op].operands[0])
                                                          : 0);
      is_cheap_.push_back(is_cheap(op));
    }
}

// Whether the op is computed again wherever it is read: its large operand, if it has one, has no more bytes than its result,
// and it costs little or is read once.
bool Stretches::is_cheap(OpId op) const {
  const Op& o = g_[op];
  // What one reader wants in memory anyway is as many bytes for the others.
  if (is_arithmetic(o.kind) && arithmetic_[positions_[op.index]] <= kMostArithmetic)
    return std::ranges::none_of(readers_[o.results[0].index],
                                [&](OpId reader) { return wants_memory(o.results[0], reader); });
  switch (o.kind) {
    case OpKind::kFull:
    case OpKind::kIota:
    case OpKind::kBroadcast:
    case OpKind::kBroadcastInDim:
    case OpKind::kExpand:
    case OpKind::kSqueeze:
      return true;
    case FUSEBOX_RANDOM_OPS: {  // of one reader, which is computed once: no number is made twice
      const auto& readers = readers_[o.results[0].index];
      return readers.size() == 1 && (is_arithmetic(g_[readers[0]].kind) || !is_cheap(readers[0]));
    }
    case OpKind::kCast:
      return bits(g_[o.operands[0]].dtype) < bits(g_[o.results[0]].dtype);
    default:  // any other: storing its result is right, and never costs more than it saves by much
      return o.operands.size() == 1 && o.results.size() == 1 && o.kind != OpKind::kSegmentSet &&
             demands(o.kind, kPointwise) && !is_library(g_, o) && defects_.has(Defect::kCutCostlyAgain);
  }
}

ValueId Stretches::large_operand(OpId op) const {
  ValueId large;
  for (ValueId v : g_[op].operands)
    if (v && g_.is_tensor(v) && !is_small(v)) large = v;
  return large;
}

int Stretches::arithmetic_on(OpId op) const {
  const Op& o = g_[op];
  const ValueId large = large_operand(op);
  if (!large) return 1;
  const bool reads_two =
      std::ranges::any_of(o.operands, [&](ValueId v) { return v && g_.is_tensor(v) && v != large && !is_small(v); });
  if (reads_two || bits(g_[large].dtype) > bits(g_[o.results[0]].dtype)) return kMostArithmetic + 1;
  // Of several stretches that read an overwritten input, one would take its place from the output.
  if (readers_[o.results[0].index].size() > 1 && is_of_overwritten(large)) return kMostArithmetic + 1;
  return arithmetic_behind(large) + 1;
}

bool Stretches::is_of_overwritten(ValueId v) const {
  for (int i = 0; i < 2 * kMostArithmetic; ++i) {
    const OpId made = g_[v].def;
    if (g_[made].kind == OpKind::kInput) return is_overwritten_[v.index];
    if (!is_arithmetic(g_[made].kind) && g_[made].kind != OpKind::kCast) return false;
    v = large_operand(made);
    if (!v) return false;
  }
  return false;
}

int Stretches::arithmetic_behind(ValueId v) const {
  const Op& made = g_[g_[v].def];
  if (is_random(made.kind)) return kMostArithmetic;
  const size_t at = positions_[g_[v].def.index];
  return at == kNowhere ? 0 : arithmetic_[at];
}

bool Stretches::is_small(ValueId v) const {
  while (g_[g_[v].def].kind == OpKind::kCast) v = g_[g_[v].def].operands[0];
  switch (g_[g_[v].def].kind) {
    case OpKind::kFull:
    case OpKind::kIota:
    case OpKind::kBroadcast:
    case OpKind::kBroadcastInDim:
    case OpKind::kExpand:
      return true;
    default:  // any other: it may be of any size
      return false;
  }
}

bool Stretches::is_taken_in(size_t at, ValueId v, OpId reader) const {
  const bool may_repeat = !is_output_[v.index] || defects_.has(Defect::kCutOutputAgain);
  return is_cheap_[at] && may_repeat && !wants_memory(v, reader);
}

bool Stretches::wants_memory(ValueId v, OpId reader) const {
  const Op& o = g_[reader];
  if (is_library(g_, o)) return true;
  if (demands(o.kind, kIndexed) && o.operands[0] == v) return true;
  if (o.kind == OpKind::kCat && std::ranges::count(o.operands, v) > 1) return true;
  for (size_t i = 0; i < o.operands.size(); ++i)
    if (o.operands[i] == v && reads_by_data(g_, o, i)) return true;
  return false;
}

// By op: whether it is one of these.
std::vector<bool> Stretches::among(const std::vector<OpId>& ops) const {
  std::vector<bool> result(g_.ops.size());
  for (OpId op : ops) result[op.index] = true;
  return result;
}

std::vector<bool> Stretches::needed_of(Stretch s) const {
  std::vector<bool> needed(g_.values.size());
  std::vector<bool> again(s.size());  // ops of the stretch that others compute again
  for (size_t i = s.end; i-- > s.begin;)
    for (ValueId v : g_[order_[i]].results) {
      bool is_read = false, is_made_again = false;
      bool is_stored = is_output_[v.index];
      for (OpId reader : readers_[v.index]) {
        const size_t at = positions_[reader.index];
        if (at == kNowhere) continue;
        const bool is_outside = at < s.begin || at >= s.end;
        is_read = is_read || is_outside || again[at - s.begin];
        is_made_again = is_made_again || (is_outside ? !wants_memory(v, reader) : again[at - s.begin]);
        is_stored = is_stored || (is_outside && wants_memory(v, reader));
      }
      again[i - s.begin] = again[i - s.begin] || (is_made_again && is_cheap_[i] && !is_output_[v.index]);
      needed[v.index] = is_stored || (is_read && !is_cheap_[i]);
    }
  return needed;
}

std::vector<OpId> Stretches::ops_of(Stretch s, const std::vector<bool>& needed) const {
  std::vector<bool> taken(s.end);  // by position
  std::vector<size_t> open;
  const auto take = [&](size_t at) {
    if (taken[at]) return;
    taken[at] = true;
    open.push_back(at);
  };
  for (size_t i = s.begin; i < s.end; ++i)
    if (std::ranges::any_of(g_[order_[i]].results, [&](ValueId v) { return needed[v.index]; })) take(i);
  size_t first = s.begin, count = 0;
  while (!open.empty()) {
    const OpId op = order_[open.back()];
    first = std::min(first, open.back());
    ++count;
    open.pop_back();
    for (ValueId v : g_[op].operands) {
      if (!v || !g_[v].def || !g_.is_tensor(v)) continue;
      const size_t at = positions_[g_[v].def.index];
      if (at == kNowhere) continue;
      if (at >= s.begin || is_taken_in(at, v, op)) take(at);
    }
  }
  std::vector<OpId> ops;
  ops.reserve(count);
  for (size_t at = first; at < s.end; ++at)
    if (taken[at]) ops.push_back(order_[at]);
  return ops;
}

std::vector<ValueId> Stretches::inputs_of(const std::vector<OpId>& ops) const {
  const std::vector<bool> inside = among(ops);
  std::vector<ValueId> read;
  for (OpId op : ops)
    for (ValueId v : g_[op].operands)
      if (v && g_.is_tensor(v) && !(g_[v].def && inside[g_[v].def.index])) read.push_back(v);
  std::ranges::sort(read);
  const auto repeated = std::ranges::unique(read);
  read.erase(repeated.begin(), repeated.end());
  return read;
}

std::vector<double> Stretches::costs_until(size_t first, size_t end, double of_launch,
                                           std::span<const double> of_values) const {
  // What is needed of an op depends on its readers, which stand behind it, so where the stretch begins is no matter.
  const std::vector<bool> needed = needed_of({first, end});
  std::vector<double> costs(end - first);
  std::vector<bool> taken(end), is_read(end);  // by position
  std::vector<ValueId> reads;                  // in id order
  std::vector<ValueId> stores;                 // the last first
  std::vector<size_t> open;
  const auto take = [&](size_t at) {
    if (taken[at]) return;
    taken[at] = true;
    open.push_back(at);
  };
  for (size_t begin = end; begin-- > first;) {
    const size_t stored_before = stores.size();
    for (ValueId v : std::views::reverse(g_[order_[begin]].results))
      if (needed[v.index]) stores.push_back(v);
    if (stores.size() > stored_before || is_read[begin]) take(begin);
    while (!open.empty()) {
      const OpId op = order_[open.back()];
      open.pop_back();
      for (ValueId v : g_[op].results)
        if (const auto it = std::ranges::lower_bound(reads, v); it != reads.end() && *it == v) reads.erase(it);
      for (ValueId v : g_[op].operands) {
        if (!v || !g_.is_tensor(v)) continue;
        const size_t at = g_[v].def ? positions_[g_[v].def.index] : kNowhere;
        if (at != kNowhere && taken[at]) continue;
        if (const auto it = std::ranges::lower_bound(reads, v); it == reads.end() || *it != v) reads.insert(it, v);
        if (at == kNowhere) continue;
        is_read[at] = true;
        if (at >= begin || is_taken_in(at, v, op)) take(at);
      }
    }
    if (stores.empty()) continue;
    // In the order of ids and of ops: a sum of doubles depends on it.
    double& cost = costs[begin - first];
    cost = of_launch;
    for (ValueId v : reads) cost += of_values[v.index];
    for (ValueId v : std::views::reverse(stores)) cost += of_values[v.index];
  }
  return costs;
}

std::vector<Stretch> Stretches::independent() const {
  // By position: the last op that reads what this one makes, or what cheap ops make of it where they are computed again.
  std::vector<size_t> last(order_.size());
  for (size_t at = order_.size(); at-- > 0;)
    for (ValueId v : g_[order_[at]].results)
      for (OpId reader : readers_[v.index])
        if (const size_t to = positions_[reader.index]; to != kNowhere)
          last[at] = std::max({last[at], to, is_cheap_[to] ? last[to] : 0});
  std::vector<Stretch> result;
  size_t begin = 0, last_reader = 0;  // of what the ops so far make
  bool is_any = false;                // op that is not made again
  for (size_t at = 0; at < order_.size(); ++at) {
    is_any = is_any || !is_cheap_[at];
    for (ValueId v : g_[order_[at]].results)
      for (OpId reader : readers_[v.index])
        if (const size_t to = positions_[reader.index]; to != kNowhere && !is_taken_in(at, v, reader))
          last_reader = std::max(last_reader, last[at]);
    if (last_reader > at || !is_any) continue;
    result.push_back({begin, at + 1});
    begin = at + 1;
    is_any = false;
  }
  if (begin < order_.size()) result.push_back({begin, order_.size()});
  return result;
}

bool Stretches::is_apart(const std::vector<OpId>& ops, const std::vector<bool>& needed) const {
  const std::vector<bool> inside = among(ops);
  for (OpId op : ops) {
    const Op& o = g_[op];
    if (o.kind == OpKind::kSegmentSet && !defects_.has(Defect::kCutAcrossSegmentSet))
      for (OpId reader : readers_[o.results[0].index])
        if (inside[reader.index]) return true;
    if (is_library(g_, o) && ops.size() > 1 && !match_product_call(g_, ops, needed, defects_).call) return true;
    if (demands(o.kind, kIndexed) && ops.size() > 1) {
      const OpId made = g_[o.operands[0]].def;
      if (made && inside[made.index]) return true;
    }
  }
  return false;
}

int Stretches::depth_of(const std::vector<OpId>& ops) const {
  std::vector<int> depths(g_.ops.size());
  int most = 0;
  for (OpId op : ops) {
    int depth = 0;
    for (ValueId v : g_[op].operands)
      if (v && g_[v].def) depth = std::max(depth, depths[g_[v].def.index]);
    depths[op.index] = demands(g_[op].kind, kReduction) ? depth + 1 : depth;
    most = std::max(most, depths[op.index]);
  }
  return most;
}

}  // namespace fusebox
