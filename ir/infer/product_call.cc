#include "ir/infer/product_call.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/domain/domain.h"
#include "ir/infer/gelu_form.h"
#include "ir/scalar/constant_number.h"
#include "ir/scalar/numeric.h"

namespace fusebox {
namespace {

bool makes_tensor(const Graph& g, OpId op) {
  return g[op].kind != OpKind::kInput && !g[op].results.empty() && g.is_tensor(g[op].results[0]);
}

bool has_epilogue_dtype(Dtype d) { return d == Dtype::kHalf || d == Dtype::kBfloat16 || d == Dtype::kFloat; }
bool is_narrow(Dtype d) { return d == Dtype::kHalf || d == Dtype::kBfloat16; }

bool is_broadcast(const Graph& g, DomainId d) { return g[d].iter_type == IterType::kBroadcast; }

// Follows the ops behind a product, as long as they are parts of one call.
class Walk {
 public:
  Walk(const Graph& g, std::span<const OpId> ops, const std::vector<bool>& needed, const Defects& defects)
      : g_(g), ops_(ops), needed_(needed), defects_(defects), inside_(ops.begin(), ops.end()) {
    for (OpId op : ops)
      for (ValueId v : g[op].operands)
        if (v && g.is_tensor(v))
          if (auto& readers = readers_[v]; readers.empty() || readers.back() != op) readers.push_back(op);
  }

  // Takes parts until the product's last reader, or an op that is no part. Then `why` says what it is.
  void run(OpId product) {
    const Op& op = g_[product];
    call_.product = product;
    call_.result = op.results[0];
    taken_.insert(product);
    why_ = why_no_product(op);
    if (!why_.empty()) return;
    if (op.operands.size() > 2) call_.bias = op.operands[2];
    while (why_.empty() && readers_.contains(call_.result)) {
      if (needed_[call_.result.index] && !defects_.has(Defect::kEpilogueReadElsewhere)) {
        why_ = "%" + name(call_.result) + " is stored too, for other readers";
        return;
      }
      take();
    }
  }

  // Why the last result is not what the library stores; empty if it is.
  std::string why_not_stored() const {
    const Dtype from = product_dtype(), to = g_[call_.result].dtype;
    if (from == to || !has_parts()) return {};
    return "%" + name(call_.result) + " is of " + std::string(text(to)) + ", and the library stores an epilogue in " +
           std::string(text(from));
  }

  const ProductCall& call() const { return call_; }
  const std::string& why() const { return why_; }
  size_t taken() const { return taken_.size(); }
  bool takes(OpId op) const { return taken_.contains(op); }

 private:
  const std::string& name(ValueId v) const { return g_[v].name; }
  Dtype product_dtype() const { return g_[g_[call_.product].results[0]].dtype; }
  bool has_parts() const { return call_.scale || call_.bias || call_.activation != Activation::kNone; }

  std::string why_no_product(const Op& op) const {
    const std::string made = "%" + name(op.results[0]);
    if (op.kind != OpKind::kMatmul && op.kind != OpKind::kLinear) return made + " is no product with an epilogue";
    if (!has_epilogue_dtype(g_[op.results[0]].dtype))
      return made + " is of " + std::string(text(g_[op.results[0]].dtype)) + ", and epilogues are of f16, bf16 and f32";
    const auto axes = logical_without_reductions(g_, g_.tensor_of(op.results[0]));
    if (rank_of(g_, op.operands[1]) != 2 || axes.size() < 2) return made + " is no product of rows with one matrix";
    if (is_broadcast(g_, axes.back())) return made + " has a row of one broadcast element";
    return {};
  }

  void take() {
    const std::vector<OpId>& readers = readers_.at(call_.result);
    if (take_gelu()) return;
    if (!why_.empty()) return;
    if (readers.size() > 1) {
      why_ = "%" + name(call_.result) + " is read by %" + name(g_[readers[0]].results[0]) + " and by %" +
             name(g_[readers[1]].results[0]);
      return;
    }
    const OpId id = readers[0];
    const Op& op = g_[id];
    switch (op.kind) {
      case OpKind::kCast:
        return take_cast(id);
      case OpKind::kMul:
        return take_scale(id);
      case OpKind::kAdd:
        return take_bias(id);
      case OpKind::kRelu:
        if (call_.activation != Activation::kNone) return refuse(id, "stands behind an activation");
        call_.activation = Activation::kRelu;
        return advance(id);
      default:  // any other: no part of an epilogue
        return refuse(id, "is none of scale, bias, relu, gelu by tanh and cast");
    }
  }

  void refuse(OpId op, const std::string& what) { why_ = "%" + name(g_[op].results[0]) + " " + what; }

  void advance(OpId op) {
    taken_.insert(op);
    call_.result = g_[op].results[0];
    is_own_ = false;
  }

  // Whether the program rounds what the op reads, so that a call would leave out a rounding that counts.
  bool is_rounded_before(OpId op) {
    if (is_own_ || !is_narrow(g_[call_.result].dtype)) return false;
    refuse(op, "reads %" + name(call_.result) + ", which is rounded to " + std::string(text(g_[call_.result].dtype)) +
                   "; cast the product to f32 first");
    return true;
  }
  bool has_other_dtype(OpId op) {
    if (g_[g_[op].results[0]].dtype == g_[call_.result].dtype) return false;
    refuse(op, "is of another dtype than %" + name(call_.result));
    return true;
  }

  void take_cast(OpId id) {
    const Dtype from = g_[call_.result].dtype, to = g_[g_[id].results[0]].dtype;
    if (from == to) {  // it changes and rounds nothing
      const bool is_own = is_own_;
      advance(id);
      is_own_ = is_own;
      return;
    }
    const bool is_up = is_narrow(from) && to == Dtype::kFloat && is_own_;
    const bool is_down = from == Dtype::kFloat && to == product_dtype() && is_narrow(to);
    if (!is_up && !is_down) return refuse(id, "is a cast to " + std::string(text(to)) + ", which no epilogue has here");
    advance(id);
  }

  void take_scale(OpId id) {
    const Op& op = g_[id];
    const ValueId number = op.operands[op.operands[0] == call_.result ? 1 : 0];
    if (g_.is_tensor(number)) return refuse(id, "multiplies by a tensor");
    if (has_other_dtype(id) || is_rounded_before(id)) return;
    if (call_.scale) return refuse(id, "is a second scale");
    if (call_.bias && !defects_.has(Defect::kEpilogueScaleEarly)) return refuse(id, "scales what has a bias");
    if (call_.activation == Activation::kGelu ||
        (call_.activation == Activation::kRelu && !defects_.has(Defect::kEpilogueScaleSwapped)))
      return refuse(id, "stands behind an activation");
    const Dtype dtype = g_[number].dtype;
    if (is_complex(dtype) || is_storage_only(dtype)) return refuse(id, "multiplies by no real number");
    if (const auto& bits = g_[number].constant) {
      const double value = to_double(Dtype::kFloat, convert(dtype, *bits, Dtype::kFloat));
      if (value == 0 || !std::isfinite(value)) return refuse(id, "multiplies by 0 or by no finite number");
    }
    if (!defects_.has(Defect::kEpilogueScaleDropped)) call_.scale = number;
    advance(id);
  }

  void take_bias(OpId id) {
    const Op& op = g_[id];
    const ValueId other = op.operands[op.operands[0] == call_.result ? 1 : 0];
    if (!g_.is_tensor(other)) return refuse(id, "adds a number, and a bias is a tensor");
    if (other == call_.result) return refuse(id, "adds the product to itself");
    if (has_other_dtype(id) || is_rounded_before(id)) return;
    if (call_.bias) return refuse(id, "is a second bias");
    if (call_.activation != Activation::kNone) return refuse(id, "stands behind an activation");
    ValueId bias = other;
    std::vector<OpId> on_the_way;
    while (rank_of(g_, bias) != 1 || g_[bias].dtype != product_dtype()) {
      const OpId def = g_[bias].def;
      if (!inside_.contains(def) || !is_bias_form(g_[def]) || readers_.at(bias).size() != 1 || needed_[bias.index])
        return refuse(id, "adds %" + name(other) + ", which is no bias of " + std::string(text(product_dtype())) +
                              " and rank 1 for each row");
      on_the_way.push_back(def);
      bias = g_[def].operands[0];
    }
    if (!has_shape_of_product(op.results[0])) return refuse(id, "has another shape than the product");
    call_.bias = bias;
    taken_.insert(on_the_way.begin(), on_the_way.end());
    advance(id);
  }

  bool has_shape_of_product(ValueId v) const {
    const auto of = [&](ValueId t) { return logical_without_reductions(g_, g_.tensor_of(t)); };
    return std::ranges::equal(of(v), of(call_.result), [&](DomainId a, DomainId b) {
      return g_[a].iter_type == g_[b].iter_type && !g_[a].expanded && !g_[b].expanded;
    });
  }

  // A cast to f32, or a broadcast that keeps the last axis.
  bool is_bias_form(const Op& op) const {
    if (op.kind == OpKind::kCast)
      return is_narrow(g_[op.operands[0]].dtype) && g_[op.results[0]].dtype == Dtype::kFloat;
    if (op.kind == OpKind::kBroadcastInDim) {
      const auto dims = op.attrs.ints(AttrKey::kDims);
      return dims.size() == 1 && dims[0] + 1 == static_cast<int64_t>(rank_of(g_, op.results[0]));
    }
    if (op.kind != OpKind::kBroadcast) return false;
    const auto mask = op.attrs.ints(AttrKey::kMask);
    return !mask.empty() && mask.back() == 0 && std::ranges::count(mask, 0) == 1;
  }

  // Whether gelu follows. If it does and cannot be a part, `why` says so.
  bool take_gelu() {
    if (g_[call_.result].dtype != Dtype::kFloat || call_.activation != Activation::kNone) return false;
    const bool by_erf = defects_.has(Defect::kEpilogueExactGelu);
    const auto form = find_gelu(g_, ops_, call_.result, {.by_erf = by_erf});
    if (!form) return false;
    const std::set<OpId> parts(form->ops.begin(), form->ops.end());
    std::vector<ValueId> between = {call_.result};
    for (OpId op : form->ops)
      if (g_[op].results[0] != form->result) between.push_back(g_[op].results[0]);
    for (ValueId v : between) {
      if (needed_[v.index] && v != call_.result) why_ = "%" + name(v) + " is stored too, for other readers";
      for (OpId reader : readers_.at(v))
        if (!parts.contains(reader))
          why_ = "%" + name(v) + " is read by %" + name(g_[reader].results[0]) + " too, which is no part of the gelu";
    }
    const ValueId curve = g_[form->tanh].results[0];
    if (why_.empty() && !g_[form->tanh].attrs.flag(AttrKey::kFast) && g_[form->tanh].kind == OpKind::kTanh)
      why_ = "%" + name(curve) + " is exact, and libraries approximate tanh; `precision of [%" + name(curve) +
             "] fast` allows it";
    if (!why_.empty()) return false;
    call_.activation = Activation::kGelu;
    call_.result = form->result;
    is_own_ = false;
    taken_.insert(parts.begin(), parts.end());
    return true;
  }

  const Graph& g_;
  const std::span<const OpId> ops_;
  const std::vector<bool>& needed_;
  const Defects& defects_;
  const std::set<OpId> inside_;
  std::map<ValueId, std::vector<OpId>> readers_;  // tensors: the ops that read them, each once
  std::set<OpId> taken_;
  ProductCall call_;
  bool is_own_ = true;  // whether the last result has the product's own numbers
  std::string why_;
};

std::vector<OpId> tensor_ops(const Graph& g) {
  std::vector<OpId> ops;
  for (OpId op : g[Graph::body()].ops)
    if (makes_tensor(g, op)) ops.push_back(op);
  return ops;
}

std::vector<bool> output_values(const Graph& g) {
  std::vector<bool> is_output(g.values.size());
  for (const OutputRef& out : outputs(g)) is_output[out.value.index] = true;
  return is_output;
}

// The product, ops that need it, and casts and broadcasts that those read: as many as an epilogue may have. Ops of a graph
// in canonical order stand in the order of their ids.
std::vector<OpId> ops_near(const Graph& g, OpId product, const std::vector<std::vector<OpId>>& readers) {
  constexpr size_t kMost = 48;
  std::set<OpId> found{product};
  std::vector<OpId> open{product};
  for (size_t i = 0; i < open.size(); ++i)
    for (ValueId v : g[open[i]].results)
      for (OpId reader : readers[v.index])
        if (found.size() < kMost && makes_tensor(g, reader) && found.insert(reader).second) open.push_back(reader);
  for (size_t i = 1; i < open.size(); ++i)
    for (ValueId v : g[open[i]].operands) {
      if (!v || !g[v].def) continue;
      const OpKind kind = g[g[v].def].kind;
      const bool is_bias = kind == OpKind::kCast || kind == OpKind::kBroadcast || kind == OpKind::kBroadcastInDim;
      if (is_bias && g.is_tensor(v) && found.insert(g[v].def).second) open.push_back(g[v].def);
    }
  return {found.begin(), found.end()};
}

}  // namespace

ProductMatch match_product_call(const Graph& g, std::span<const OpId> ops, const std::vector<bool>& needed,
                                const Defects& defects) {
  const auto is_here = [&](OpId op) { return g[op].kind == OpKind::kMatmul || g[op].kind == OpKind::kLinear; };
  if (std::ranges::count_if(ops, is_here) != 1) return {std::nullopt, "a call has one product"};
  Walk walk(g, ops, needed, defects);
  walk.run(*std::ranges::find_if(ops, is_here));
  if (!walk.why().empty()) return {std::nullopt, walk.why()};
  for (OpId op : ops)
    if (!walk.takes(op)) return {std::nullopt, "%" + g[g[op].results[0]].name + " is no part of the call"};
  if (std::string why = walk.why_not_stored(); !why.empty()) return {std::nullopt, std::move(why)};
  if (epilogue_text(g, walk.call()).empty()) return {std::nullopt, "nothing follows the product"};
  return {walk.call(), {}};
}

std::optional<ProductCall> product_call(const Graph& segment, const Defects& defects) {
  const std::vector<OpId> ops = tensor_ops(segment);
  if (ops.size() < 2) return std::nullopt;
  return match_product_call(segment, ops, output_values(segment), defects).call;
}

std::string why_no_epilogue(const Graph& g, OpId product, const std::vector<std::vector<OpId>>& readers) {
  if (g[product].kind != OpKind::kMatmul && g[product].kind != OpKind::kLinear) return {};
  const std::vector<OpId> ops = ops_near(g, product, readers);
  if (ops.size() == 1) return {};
  const std::vector<bool> is_output = output_values(g);
  const Defects none;
  Walk walk(g, ops, is_output, none);
  walk.run(product);
  // What stands behind a whole epilogue is no reason against it.
  if (walk.taken() > 1 && walk.why_not_stored().empty()) return {};
  return walk.why().empty() ? walk.why_not_stored() : walk.why();
}

std::string epilogue_text(const Graph& g, const ProductCall& call) {
  std::string out;
  const auto add = [&](const char* part) { out += std::string(out.empty() ? "" : " ") + part; };
  if (call.scale) add("scale");
  if (call.bias) add("bias");
  switch (call.activation) {
    case Activation::kNone:
      break;
    case Activation::kRelu:
      add("relu");
      break;
    case Activation::kGelu:
      add("gelu");
      break;
  }
  if (g[call.result].dtype != g[g[call.product].results[0]].dtype) add("cast");
  return out;
}

namespace {

// Whether the op casts one of these, or gives it back in another place or as it is: a rewrite may leave such an op out.
bool keeps_numbers(const Graph& g, const Op& op, const std::set<ValueId>& same) {
  if (op.operands.empty()) return false;
  if (op.kind == OpKind::kCast || op.kind == OpKind::kSet || demands(op.kind, kMetadata))
    return same.contains(op.operands[0]);
  if (op.kind != OpKind::kMul && op.kind != OpKind::kDiv && op.kind != OpKind::kTruediv) return false;
  if (same.contains(op.operands[0])) return is_number(g, op.operands[1], 1);
  return op.kind == OpKind::kMul && same.contains(op.operands[1]) && is_number(g, op.operands[0], 1);
}

}  // namespace

std::vector<ValueId> scales_of(const Graph& g, OpId product) {
  std::set<ValueId> same = {g[product].results[0]};
  std::vector<ValueId> scales;
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (keeps_numbers(g, op, same)) same.insert(op.results[0]);
    if (op.kind != OpKind::kMul) continue;
    for (size_t i = 0; i < 2; ++i)
      if (same.contains(op.operands[i]) && !g.is_tensor(op.operands[1 - i])) scales.push_back(op.operands[1 - i]);
  }
  return scales;
}

bool may_stay_wide(const Graph& g, OpId product) {
  const Op& op = g[product];
  if (op.kind != OpKind::kMatmul && op.kind != OpKind::kLinear) return false;
  if (!is_narrow(g[op.results[0]].dtype)) return false;
  return std::ranges::none_of(outputs(g), [&](const OutputRef& out) { return out.value == op.results[0]; });
}

}  // namespace fusebox
