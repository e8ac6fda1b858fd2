#include "fuzz/generate/generate_fusion.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "fuzz/base/error_form.h"
#include "fuzz/generate/fusion_maker.h"
#include "ir/infer/bind.h"
#include "ir/infer/concretize.h"
#include "ir/table/error.h"
#include "ir/table/type_rule.h"

namespace fusebox::fuzz {
namespace {

// Rows of the math level that make tensors. Euclidean division is only for sizes.
bool is_generated(const OpRow& row) {
  return row.at(Level::kMath) && !demands(row.kind, kSignature) && row.kind != OpKind::kFloorDiv &&
         row.kind != OpKind::kFloorMod && row.kind != OpKind::kCeilDiv;
}

uint32_t default_weight(const OpRow& row) {
  if (!is_generated(row)) return 0;
  if (demands(row.kind, kLibrary)) return 1;
  if (row.kind == OpKind::kCast) return 16;
  if (row.kind == OpKind::kScatter) return 4;
  if (row.kind == OpKind::kIota || row.kind == OpKind::kLogicalRightShift) return 6;
  if (demands(row.kind, kReduction)) return 16;
  if (demands(row.kind, kMetadata)) return 12;
  if (demands(row.kind, kIndexed)) return 6;
  if (row.kind == OpKind::kAdd || row.kind == OpKind::kMul || row.kind == OpKind::kSet) return 12;
  return 2;
}

// Three dtypes for a chain of casts: integers and floats alternating, or any.
CastFocus draw_casts(RandomSource& random) {
  std::vector<Dtype> integers, floats, all;
  for (const DtypeRow& d : dtype_rows()) {
    if (d.dtype == Dtype::kIndex || is_storage_only(d.dtype)) continue;
    all.push_back(d.dtype);
    if (is_integer(d.dtype)) integers.push_back(d.dtype);
    if (is_floating(d.dtype)) floats.push_back(d.dtype);
  }
  if (random.one_in(3)) return {random.pick(all), random.pick(all), random.pick(all)};
  if (random.one_in(3)) return {random.pick(floats), random.pick(integers), random.pick(floats)};
  return {random.pick(integers), random.pick(floats), random.pick(integers)};
}

}  // namespace

OpMix default_mix() {
  OpMix mix;
  for (const OpRow& row : op_rows()) mix.push_back(default_weight(row));
  return mix;
}

OpMix mix_of(const std::vector<OpKind>& kinds) {
  OpMix mix(op_rows().size());
  for (OpKind kind : kinds) mix[static_cast<size_t>(kind)] = 1;
  return mix;
}

std::vector<OpKind> generated_ops() {
  std::vector<OpKind> kinds;
  for (const OpRow& row : op_rows())
    if (is_generated(row)) kinds.push_back(row.kind);
  return kinds;
}

GeneratedFusion generate_fusion(RandomSource& random, const FusionOptions& options) {
  return FusionMaker(random, options).run();
}

FusionMaker::FusionMaker(RandomSource& random, const FusionOptions& options)
    : random_(random), options_(options), g_(fusion("f")) {}

GeneratedFusion FusionMaker::run() {
  GeneratedFusion result;
  const size_t wanted =
      std::min(options_.max_ops, 1 + (random_.one_in(16) ? random_.below(options_.max_ops) : random_.below(6)));
  if (options_.long_sum_one_in > 0 && options_.mix[static_cast<size_t>(OpKind::kSum)] > 0 &&
      random_.one_in(options_.long_sum_one_in)) {
    begin_long_sum();
    result.sums_many = true;
  }
  const bool is_model = options_.model_one_in > 0 && random_.one_in(options_.model_one_in) && begin_model(result);
  begin_focus(result);
  const bool is_rare = options_.focus.rare && !begin_rare(*options_.focus.rare, result);
  const bool may_go_on = !is_rare && begin_situation(result) && (!is_model || random_.one_in(3));
  // A few refusals are normal. The limit ends the loop if nothing in the mix fits.
  const bool is_whole = !may_go_on || (options_.focus.swizzle && options_.focus.swizzle->is_far);
  while (!is_whole && result.accepted < wanted && result.attempts < 4 * wanted + 8) {
    const size_t drawn = random_.weighted(options_.mix);
    if (drawn == options_.mix.size()) break;
    OpKind kind = static_cast<OpKind>(drawn);
    const bool is_neighbour = !made_.empty() && random_.one_in(is_open(made_.back()) ? 2 : 8);
    if (is_neighbour) kind = begin_neighbour(kind);
    ++result.attempts;
    const bool is_accepted = attempt(kind);
    result.accepted += is_accepted;
    result.neighbours += is_neighbour && is_accepted;
    first_operand_ = {};
    partner_ = Partner::kAny;
    under_.reset();
    neighbour_ = Neighbour::kNone;
    wanted_.reset();
  }
  add_outputs();
  if (random_.one_in(24)) spread_over_devices();
  result.folds = folds_;
  result.ranges = std::move(ranges_);
  result.graph = std::move(g_);
  sizes_.resize(result.graph.values.size());
  result.sizes = std::move(sizes_);
  return result;
}

// Puts tensors on a mesh. Their loops are not spread over it, so each device holds a whole tensor.
void FusionMaker::spread_over_devices() {
  for (size_t count = 1 + random_.below(2); count > 0; --count) {
    const OpId def = g_[ValueId(random_.below(g_.values.size()))].def;
    if (!def) continue;
    std::vector<int64_t> devices;
    for (int64_t d = random_.between(0, 2); d < 6; d += random_.between(1, 3)) devices.push_back(d);
    if (random_.one_in(3)) random_.shuffle(devices);
    for (ValueId v : g_[def].results)
      if (g_.is_tensor(v)) g_.tensor_of(v).devices = devices;
  }
}

// Chooses a pattern that rewrites look for: the same op again, maybe with other attributes; an op on its own result;
// one op on another's result; a neutral operand. Or one that schedules are made for: a tensor next to its own
// reduction.
OpKind FusionMaker::begin_neighbour(OpKind kind) {
  const auto is_offered = [&](OpKind k) { return options_.mix[static_cast<size_t>(k)] > 0; };
  const auto one_of = [&](std::initializer_list<OpKind> kinds) {
    std::vector<OpKind> offered;
    std::copy_if(kinds.begin(), kinds.end(), std::back_inserter(offered), is_offered);
    return offered.empty() ? kind : random_.pick(offered);
  };
  neighbour_ = Neighbour::kOp;
  // These ops infer their axes again once symbolic axes are resolved.
  if (is_open(made_.back()) && random_.one_in(2)) {
    first_operand_ = made_.back();
    return one_of({OpKind::kSlice, OpKind::kSlice, OpKind::kSqueeze});
  }
  const size_t place = random_.below(9);
  if (place >= 7) {
    static const std::vector<FormFocus> forms = all_forms();
    form_ = random_.pick(forms);
    if (is_offered(form_.kind) && is_offered(form_.second)) {
      neighbour_ = Neighbour::kForm;
      return form_.kind;
    }
  }
  const ValueId made = random_.pick(made_);
  const Op& op = g_[g_[made].def];
  const bool is_one = op.kind != OpKind::kInput && is_offered(op.kind);
  switch (place) {
    case 0:
      if (random_.one_in(4)) {
        neighbour_ = Neighbour::kAlongEqualAxes;
        return one_of({OpKind::kSum, OpKind::kProd, OpKind::kMax, OpKind::kMin, OpKind::kWelford, OpKind::kPermute,
                       OpKind::kTakeAlongAxis, OpKind::kIndexSelect, OpKind::kSelect});
      }
      if (is_one && random_.one_in(2)) {
        neighbour_ = Neighbour::kAgain;
        twin_ = g_[made].def;
        return op.kind;
      }
      if (!is_one || op.operands.empty() || !op.operands[0] || !g_.is_tensor(op.operands[0])) return kind;
      first_operand_ = op.operands[0];
      return op.kind;
    case 1:
      first_operand_ = made;
      // Permutations of two axes always commute.
      if (rank_of(g_, made) > 2 && op.kind != OpKind::kPermute && random_.one_in(2)) return one_of({OpKind::kPermute});
      return is_one ? op.kind : kind;
    case 2: {
      first_operand_ = made;
      if (random_.one_in(2)) return kind;
      // Two ops that may cancel or repeat each other.
      const std::initializer_list<OpKind> signs = {OpKind::kNeg,  OpKind::kNeg,  OpKind::kAbs,   OpKind::kAbs,
                                                   OpKind::kRelu, OpKind::kSign, OpKind::kFloor, OpKind::kCeil};
      under_ = one_of(signs);
      return one_of(signs);
    }
    case 3:
      first_operand_ = made;
      partner_ = Partner::kConstant;
      return one_of({OpKind::kAdd, OpKind::kAdd, OpKind::kAdd, OpKind::kSub, OpKind::kMul, OpKind::kMul, OpKind::kDiv,
                     OpKind::kMaximum, OpKind::kMinimum, OpKind::kPow, OpKind::kBitwiseAnd, OpKind::kBitwiseOr,
                     OpKind::kBitwiseXor, OpKind::kLogicalAnd, OpKind::kLogicalOr});
    case 4:
      if (rank_of(g_, made) == 0 || !is_offered(OpKind::kSlice)) return kind;
      first_operand_ = made;
      neighbour_ = Neighbour::kThereAndBack;
      return OpKind::kSlice;
    case 5:
      if (!is_offered(OpKind::kCast)) return kind;
      casts_ = draw_casts(random_);
      neighbour_ = Neighbour::kCasts;
      return OpKind::kCast;
    default:
      if (!demands(op.kind, kReduction) || op.operands.empty()) return kind;
      first_operand_ = op.operands[0];
      partner_ = Partner::kReduction;
      reduction_ = made;
      return one_of({OpKind::kSub, OpKind::kDiv, OpKind::kMul, OpKind::kAdd, OpKind::kMaximum});
  }
}

std::vector<std::pair<size_t, size_t>> FusionMaker::equal_axes(ValueId tensor) {
  const auto axes = logical_without_reductions(g_, g_.tensor_of(tensor));
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < axes.size(); ++i)
    for (size_t k = i + 1; k < axes.size(); ++k)
      if (g_[axes[i]].extent && g_[axes[i]].extent == g_[axes[k]].extent) pairs.emplace_back(i, k);
  return pairs;
}

bool FusionMaker::is_open(ValueId tensor) const {
  const auto& axes = g_.tensor_of(tensor).logical;
  return std::any_of(axes.begin(), axes.end(), [&](DomainId d) { return g_[d].iter_type == IterType::kSymbolic; });
}

FusionMaker::Mark FusionMaker::mark() const {
  return {g_.values.size(),     g_.tensors.size(), g_.domains.size(),
          g_.transforms.size(), g_.ops.size(),     g_[Graph::body()].ops.size(),
          made_.size(),         symbols_.size(),   ranges_.size()};
}

void FusionMaker::take_back(const Mark& m) {
  g_.values.resize(m.values);
  g_.tensors.resize(m.tensors);
  g_.domains.resize(m.domains);
  g_.transforms.resize(m.transforms);
  g_.ops.resize(m.ops);
  g_[Graph::body()].ops.resize(m.body);
  made_.resize(m.made);
  symbols_.resize(m.symbols);
  ranges_.resize(m.ranges);
  if (sizes_.size() > m.values) sizes_.resize(m.values);
}

bool FusionMaker::attempt(OpKind kind) {
  return attempt([&] { return make(kind); });
}

bool FusionMaker::attempt(const std::function<std::vector<ValueId>()>& make) {
  const Mark before = mark();
  try {
    const std::vector<ValueId> results = make();
    if (!results.empty() && keeps_small(before)) {
      for (ValueId v : results)
        if (g_.is_tensor(v)) made_.push_back(v);
      return true;
    }
  } catch (const Error& e) {
    expect_refusal(e);
  }
  take_back(before);
  return false;
}

bool FusionMaker::keeps_small(const Mark& m) {
  for (size_t i = m.values; i < g_.values.size(); ++i) {
    if (!g_.is_tensor(ValueId(i))) continue;
    int64_t elements = 1;
    sizes_.resize(g_.values.size());
    const auto extents = evaluate_shape(g_, ValueId(i), sizes_);
    if (!extents || extents->size() > options_.max_rank) return false;
    for (int64_t e : *extents) {
      if (e < 0 || e > options_.max_elements) return false;
      elements *= std::max<int64_t>(e, 1);
      if (elements > options_.max_elements) return false;
    }
  }
  // Operands that fit pairwise may not fit together.
  check_sizes(g_, sizes_);
  return true;
}

FusionMaker::Extents FusionMaker::extents_of(ValueId tensor) {
  sizes_.resize(g_.values.size());
  auto extents = evaluate_shape(g_, tensor, sizes_);
  check_internal(extents.has_value(), "a generated tensor has a size that is not known");
  return *std::move(extents);
}

FusionMaker::Extents FusionMaker::draw_extents() {
  Extents extents(random_.one_in(8) ? random_.below(options_.max_rank + 1) : std::min<size_t>(2, options_.max_rank));
  if (random_.one_in(3)) extents.resize(std::min<size_t>(1 + random_.below(3), options_.max_rank));
  // Mostly few elements: a bug that shows with 1000 nearly always shows with 200.
  int64_t room = random_.one_in(8) ? options_.max_elements : std::min<int64_t>(options_.max_elements, 256);
  for (int64_t& e : extents) {
    e = random_.pick(kBoundaryExtents);
    // Stay within the limit, and rarely have an extent of 0.
    if (e == 0 && !random_.one_in(3)) e = 1;
    if (e > room || (extents.size() > 3 && e > 5))
      e = std::min<int64_t>(room, 1 + static_cast<int64_t>(random_.below(4)));
    room /= std::max<int64_t>(e, 1);
  }
  // Sometimes make all extents equal: then a mix-up of two axes still gives a valid shape.
  if (extents.size() > 1 && random_.one_in(8)) {
    const int64_t least = *std::min_element(extents.begin(), extents.end());
    std::fill(extents.begin(), extents.end(), least);
  }
  random_.shuffle(extents);
  return extents;
}

ValueId FusionMaker::symbol(int64_t extent) {
  if (!random_.one_in(8))
    for (const Symbol& s : symbols_)
      if (s.extent == extent) return s.value;
  const ValueId v = size(g_);
  sizes_.resize(g_.values.size());
  sizes_[v.index] = ConstantBits{static_cast<uint64_t>(extent), 0};
  symbols_.push_back({v, extent});
  return v;
}

Scalar FusionMaker::extent_scalar(int64_t extent, bool broadcast_too) {
  const bool constant = random_.one_in(4) && (extent != 1 || broadcast_too);
  return constant ? Scalar(extent) : Scalar(symbol(extent));
}

ValueId FusionMaker::index_input(int64_t value) {
  const Dtype dtype = random_.one_in(2) ? Dtype::kIndex : Dtype::kInt64;
  const ValueId v = input_scalar(g_, "", dtype);
  sizes_.resize(g_.values.size());
  sizes_[v.index] = ConstantBits{static_cast<uint64_t>(value), 0};
  return dtype == Dtype::kIndex ? v : cast(g_, v, Dtype::kIndex);
}

namespace {

// Returns the b for which `a kind b` equals the value, if that is easy to compute.
std::optional<int64_t> second_operand(OpKind kind, int64_t a, int64_t value) {
  switch (kind) {
    case OpKind::kAdd:
      return value - a;
    case OpKind::kSub:
      return a - value;
    case OpKind::kMinimum:
      return value <= a ? std::optional(value) : std::nullopt;
    case OpKind::kMaximum:
      return value >= a ? std::optional(value) : std::nullopt;
    case OpKind::kFloorDiv:
      return value > 0 && a >= value && a / (a / value) == value ? std::optional(a / value) : std::nullopt;
    case OpKind::kFloorMod:
      return value >= 0 && a - value > value ? std::optional(a - value) : std::nullopt;
    default:  // any other: is not as simple as that
      return std::nullopt;
  }
}

}  // namespace

Scalar FusionMaker::index_scalar(int64_t value) {
  if (!options_.symbolic) return Scalar(value);
  if (options_.focus.far_indices && !random_.one_in(3)) return far_index(value);
  if (options_.focus.computed_sizes && !random_.one_in(4)) return computed_index(value);
  if (!random_.one_in(4)) return Scalar(value);
  if (random_.one_in(16)) return far_index(value);
  if (random_.one_in(8)) return computed_index(value);
  if (symbols_.empty() || random_.one_in(3)) return Scalar(index_input(value));
  for (const Symbol& s : symbols_)
    if (s.extent == value && random_.one_in(2)) return Scalar(s.value);
  constexpr OpKind kKinds[] = {OpKind::kAdd,     OpKind::kSub,      OpKind::kMinimum,
                               OpKind::kMaximum, OpKind::kFloorDiv, OpKind::kFloorMod};
  const Symbol of = random_.pick(symbols_);
  const OpKind kind = random_.pick(kKinds);
  const auto by = second_operand(kind, of.extent, value);
  if (!by) return Scalar(value);
  return Scalar(pointwise(g_, kind, {of.value, random_.one_in(2) ? index_input(*by) : constant_index(g_, *by)}));
}

ValueId FusionMaker::new_input(Dtype dtype, const Extents& extents, const std::vector<bool>& broadcast) {
  Shape shape;
  InputOptions input_options;
  for (size_t i = 0; i < extents.size(); ++i)
    shape.push_back(!broadcast.empty() && broadcast[i] ? Scalar(1) : extent_scalar(extents[i], broadcast.empty()));
  if (options_.layouts && random_.one_in(4))
    for (size_t i = 0; i < extents.size(); ++i)
      input_options.contiguity.push_back(random_.one_in(2) ? Contiguity::kFalse : Contiguity::kTrue);
  if (options_.layouts && extents.size() > 1 && random_.one_in(6))
    input_options.allocation_order = permutation(extents.size());
  // Axes that are already expanded, with one element in memory.
  if (options_.layouts && random_.one_in(24)) {
    for (size_t i = 0; i < extents.size(); ++i) {
      const bool is_expanded = extents[i] != 1 && random_.one_in(2);
      input_options.expanded.push_back(is_expanded ? shape[i] : Scalar(1));
      if (is_expanded) shape[i] = Scalar(1);
    }
  }
  const ValueId v = input(g_, "", dtype, shape, input_options);
  made_.push_back(v);
  return v;
}

ValueId FusionMaker::input_beside(ValueId x, Dtype dtype, bool may_broadcast) {
  const Extents extents = extents_of(x);
  const auto axes = logical_without_reductions(g_, g_.tensor_of(x));
  std::vector<bool> broadcast(extents.size());
  for (size_t i = 0; i < extents.size(); ++i)
    broadcast[i] = may_broadcast && (random_.one_in(4) || g_[axes[i]].iter_type == IterType::kBroadcast);
  return new_input(dtype, extents, broadcast);
}

}  // namespace fusebox::fuzz
