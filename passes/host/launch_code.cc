#include "passes/host/launch_code.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "ir/infer/bind.h"
#include "ir/scalar/scalar.h"
#include "ir/table/families.h"
#include "passes/host/host_errors.h"

namespace fusebox {
namespace {

// The program does not fit into a record.
struct DoesNotFit {};

class Coder {
 public:
  Coder(const Graph& host, std::span<const std::string> kernels) : g_(host), kernels_(kernels) {
    r_.kernels = fitting<uint32_t>(kernels.size());
  }

  LaunchRecord run() {
    declare_inputs();
    bind_sizes();
    for (OpId id : g_[Graph::body()].ops) {
      if (is_first_work(g_[id])) check_inputs();
      code(g_[id]);
    }
    check_inputs();
    return std::move(r_);
  }

 private:
  template <class T>
  static T fitting(size_t n) {
    if (n > std::numeric_limits<T>::max()) throw DoesNotFit();
    return static_cast<T>(n);
  }

  void put(LaunchWord w) { r_.code.push_back(pack(w)); }
  uint16_t fresh(Dtype dtype = Dtype::kIndex) {
    const uint16_t r = fitting<uint16_t>(r_.registers);
    r_.registers += is_complex(dtype) ? 2 : 1;
    if (r_.registers > std::numeric_limits<uint16_t>::max()) throw DoesNotFit();
    return r;
  }
  uint16_t error(ErrorCode code, std::string message, std::string place) {
    LaunchError e{code, std::move(message), std::move(place)};
    const auto it = std::ranges::find(r_.errors, e);
    if (it != r_.errors.end()) return fitting<uint16_t>(static_cast<size_t>(it - r_.errors.begin()));
    r_.errors.push_back(std::move(e));
    return fitting<uint16_t>(r_.errors.size() - 1);
  }
  uint16_t error(const Error& e) { return error(e.code, e.what(), e.place); }
  uint16_t name(const std::string& text) {
    r_.names.push_back(text);
    return fitting<uint16_t>(r_.names.size() - 1);
  }
  std::string place(ValueId v) const { return "%" + g_[v].name; }
  std::string place(DomainId d) const { return "%" + g_[g_[g_[d].tensor].value].name + "." + g_[d].name; }

  // -- arguments

  void declare_inputs() {
    const auto open = open_scalars();
    for (ValueId v : inputs(g_)) {
      LaunchInput in{.dtype = g_[v].dtype, .is_scalar = !g_.is_tensor(v)};
      if (in.is_scalar) {
        in.is_open = std::ranges::find(open, v) != open.end();
        arguments_[v] = fitting<uint16_t>(r_.inputs.size());
      } else {
        in.rank = fitting<uint32_t>(axes(v).size());
        const auto slot = fitting<uint16_t>(slots_.size());
        slots_[g_[v].tensor] = slot;
      }
      r_.inputs.push_back(in);
    }
  }
  std::vector<DomainId> axes(ValueId v) const { return logical_without_reductions(g_, g_.tensor_of(v)); }

  // Scalar inputs that no op but launches reads.
  std::vector<ValueId> open_scalars() const {
    std::vector<ValueId> open;
    for (ValueId v : inputs(g_))
      if (!g_.is_tensor(v)) open.push_back(v);
    for (OpId id : g_[Graph::body()].ops) {
      const Op& op = g_[id];
      const size_t first = op.kind == OpKind::kLaunch ? kDimensions : op.operands.size();
      for (size_t i = 0; i < first; ++i) std::erase(open, op.operands[i]);
    }
    return open;
  }

  // A size is the extent of the first axis that shows it; others have to equal it.
  void bind_sizes() {
    for (ValueId v : inputs(g_)) {
      if (!g_.is_tensor(v)) continue;
      const auto domains = axes(v);
      for (size_t i = 0; i < domains.size(); ++i) bind_axis(slots_.at(g_[v].tensor), fitting<uint16_t>(i), domains[i]);
    }
  }
  void bind_axis(uint16_t slot, uint16_t axis, DomainId d) {
    const IterDomain& domain = g_[d];
    const uint16_t r = fresh();
    put({.op = LaunchOp::kExtent, .a = r, .b = slot, .c = axis});
    if (domain.iter_type == IterType::kBroadcast && !domain.expanded)
      return require_equal(r, constant(1), ErrorCode::kBadInput, "this axis is a broadcast of extent 1", place(d));
    const ValueId extent = domain.size();
    if (const auto wanted = constant_integer(g_, extent))
      return require_equal(r, constant(*wanted), ErrorCode::kBadInput,
                           "this axis has extent " + std::to_string(*wanted), place(d));
    const OpId def = g_[extent].def;
    if (!def || g_[def].kind != OpKind::kSize)
      deferred_.push_back({extent, r, d});
    else if (const auto [it, is_new] = registers_.try_emplace(extent, r); !is_new)
      require_equal(r, it->second, ErrorCode::kSizeMismatch, "size " + place(extent) + " has another value elsewhere",
                    place(d));
  }
  void require_equal(uint16_t a, uint16_t b, ErrorCode code, std::string message, std::string place) {
    put({.op = LaunchOp::kRequireEqual, .a = a, .b = b, .c = error(code, std::move(message), std::move(place))});
  }

  // Facts of the inputs that need computed scalars. They stand before the first work.
  void check_inputs() {
    if (std::exchange(is_checked_, true)) return;
    for (const auto& [extent, r, d] : deferred_)
      require_equal(r, scalar(extent), ErrorCode::kSizeMismatch, "this axis has another extent than it should have",
                    place(d));
    for (ValueId v : inputs(g_))
      if (g_.is_tensor(v)) require_layout(v);
    std::vector<ValueId> overwritten;
    for (const OutputRef& out : outputs(g_))
      if (out.alias && std::ranges::count(overwritten, out.alias) == 0) overwritten.push_back(out.alias);
    for (ValueId v : overwritten)
      put({.op = LaunchOp::kRequireApart,
           .a = slots_.at(g_[v].tensor),
           .c = error(ErrorCode::kBadInput, kMeetsItself, place(v))});
  }

  void require_layout(ValueId v) {
    const Tensor& t = g_.tensor_of(v);
    const auto logical = axes(v);
    const auto allocation = allocation_of(g_, t);
    const auto contiguity = contiguity_of(g_, t);
    std::vector<uint64_t> rules;
    for (size_t k = allocation.size(); k-- > 0;) {
      const auto position = std::ranges::find(logical, allocation[k]);
      if (position == logical.end()) break;
      const DomainId d = *position;
      LaunchAxis axis{.axis = fitting<uint16_t>(static_cast<size_t>(position - logical.begin()))};
      if (g_[d].iter_type == IterType::kBroadcast)
        axis.rule = g_[d].expanded ? LaunchAxis::Rule::kExpanded : LaunchAxis::Rule::kSkipped;
      else if (contiguity[k] != Contiguity::kTrue)
        axis.rule = LaunchAxis::Rule::kFree;
      const bool is_expanded = axis.rule == LaunchAxis::Rule::kExpanded;
      axis.error = error(ErrorCode::kBadInput,
                         is_expanded ? "this axis is expanded: its stride must be 0"
                                     : "this axis is contiguous; declare it otherwise or copy the tensor",
                         place(d));
      rules.push_back(pack(axis));
    }
    if (rules.empty()) return;
    put({.op = LaunchOp::kRequireLayout,
         .a = slots_.at(g_[v].tensor),
         .b = fitting<uint16_t>(rules.size()),
         .c = error(ErrorCode::kBadInput, "the strides of this input leave 64 bits", place(v))});
    r_.code.insert(r_.code.end(), rules.begin(), rules.end());
  }

  // -- scalars

  uint16_t constant(int64_t n) {
    const auto [it, is_new] = constants_.try_emplace(n, 0);
    if (is_new) {
      it->second = fresh();
      put({.op = LaunchOp::kConstant, .a = it->second});
      r_.code.push_back(static_cast<uint64_t>(n));
    }
    return it->second;
  }
  uint16_t constant(Dtype dtype, ConstantBits bits) {
    if (!is_complex(dtype) && bits.high == 0) return constant(static_cast<int64_t>(bits.low));
    const uint16_t r = fresh(Dtype::kComplexDouble);
    for (const auto& [at, half] : {std::pair(r, bits.low), std::pair(static_cast<uint16_t>(r + 1), bits.high)}) {
      put({.op = LaunchOp::kConstant, .a = at});
      r_.code.push_back(half);
    }
    return r;
  }

  // The register of a scalar, after the code that computes it.
  uint16_t scalar(ValueId v) {
    if (g_.is_constant(v)) return constant(g_[v].dtype, *g_[v].constant);
    if (const auto it = registers_.find(v); it != registers_.end()) return it->second;
    if (const auto it = arguments_.find(v); it != arguments_.end()) return registers_[v] = argument(v, it->second);
    const OpId def = g_[v].def;
    if (!def || ++depth_ > kMostDepth) throw DoesNotFit();
    if (g_[def].kind == OpKind::kSize) {
      // No input shows this size.
      const uint16_t zero = constant(0);
      put({.op = LaunchOp::kRequire,
           .a = zero,
           .c = error(ErrorCode::kMissingInput, "no input has an axis of this extent; give an input that does",
                      place(v))});
      return registers_[v] = zero;
    }
    compute(g_[def]);
    --depth_;
    const auto it = registers_.find(v);
    if (it == registers_.end()) throw DoesNotFit();
    return it->second;
  }
  uint16_t argument(ValueId v, uint16_t at) {
    const uint16_t r = fresh(g_[v].dtype);
    put({.op = LaunchOp::kScalarInput, .a = r, .b = at, .c = 0});
    if (is_complex(g_[v].dtype))
      put({.op = LaunchOp::kScalarInput, .a = static_cast<uint16_t>(r + 1), .b = at, .c = 1});
    return r;
  }

  void compute(const Op& op) {
    const ValueId v = op.results[0];
    if (registers_.contains(v)) return;
    switch (op.kind) {
      case OpKind::kTensorStride: {
        const uint16_t slot = slot_of(op.operands[0]), r = fresh();
        put({.op = LaunchOp::kStride,
             .a = r,
             .b = slot,
             .c = fitting<uint16_t>(static_cast<size_t>(op.attrs.integer(AttrKey::kAxis)))});
        registers_[v] = r;
        return;
      }
      case OpKind::kTensorAlignment: {
        const uint16_t slot = slot_of(op.operands[0]), r = fresh();
        put({.op = LaunchOp::kAlignment, .a = r, .b = slot});
        registers_[v] = r;
        return;
      }
      case OpKind::kPrepareDiv: {
        const uint16_t divisor = scalar(op.operands[0]), r = fresh();
        put({.op = LaunchOp::kPrepareDivision, .a = r, .b = divisor});
        registers_[v] = r;
        return;
      }
      case FUSEBOX_SCALAR_OPS:
        return compute_scalar(op);
      case OpKind::kAllocateTensor:
      case OpKind::kAliasView:
      case FUSEBOX_OPEN_HOST_VALUE_OPS:
      case FUSEBOX_HOST_EFFECT_OPS:
      case FUSEBOX_STRUCTURE_OPS:
      case FUSEBOX_KERNEL_OPS:
      case FUSEBOX_FACT_OPS:
      case FUSEBOX_TENSOR_OPS:
        throw DoesNotFit();
    }
  }

  void compute_scalar(const Op& op) {
    std::vector<uint64_t> operands;
    for (ValueId o : op.operands) {
      if (!o) throw DoesNotFit();
      operands.push_back(pack(LaunchOperand{.dtype = g_[o].dtype, .at = scalar(o)}));
    }
    if (operands.size() > 3) throw DoesNotFit();
    const ValueId v = op.results[0];
    const uint16_t r = fresh(g_[v].dtype);
    put({.op = LaunchOp::kCompute,
         .small = static_cast<uint8_t>(g_[v].dtype),
         .a = r,
         .b = static_cast<uint16_t>(op.kind),
         .c = error(not_computed(g_, op))});
    r_.code.push_back(operands.size());
    r_.code.insert(r_.code.end(), operands.begin(), operands.end());
    registers_[v] = r;
  }

  // -- work

  uint16_t slot_of(ValueId v) const {
    const auto it = g_.is_tensor(v) ? slots_.find(g_[v].tensor) : slots_.end();
    if (it == slots_.end()) throw DoesNotFit();
    return it->second;
  }

  static bool is_first_work(const Op& op) {
    switch (op.kind) {
      case OpKind::kAllocateTensor:
      case OpKind::kAliasView:
      case OpKind::kOutput:
      case FUSEBOX_HOST_EFFECT_OPS:
        return true;
      case FUSEBOX_OPEN_HOST_VALUE_OPS:
      case OpKind::kTensorStride:
      case OpKind::kTensorAlignment:
      case OpKind::kPrepareDiv:
      case OpKind::kInput:
      case OpKind::kSize:
      case FUSEBOX_SCALAR_OPS:
      case FUSEBOX_KERNEL_OPS:
      case FUSEBOX_FACT_OPS:
      case FUSEBOX_TENSOR_OPS:
        return false;
    }
    return false;
  }

  void code(const Op& op) {
    switch (op.kind) {
      case OpKind::kInput:
        return;
      case OpKind::kSize:
        for (ValueId v : op.results) scalar(v);
        return;
      case OpKind::kAllocateTensor:
        return allocate(op);
      case OpKind::kAliasView:
        return view(op);
      case OpKind::kDeallocate:
        return put({.op = LaunchOp::kRelease, .a = slot_of(op.operands[0])});
      case OpKind::kCheck: {
        const uint16_t condition = scalar(op.operands[0]);
        return put({.op = LaunchOp::kRequire, .a = condition, .c = error(failed_check(g_, op))});
      }
      case OpKind::kCopyTensor:
        return put({.op = LaunchOp::kCopy, .a = slot_of(op.operands[0]), .b = slot_of(op.operands[1])});
      case OpKind::kLaunch:
        return launch(op);
      case OpKind::kRunAten: {
        // ATen gives the memory and the strides of what it makes, and no instruction of a record takes them.
        if (!op.results.empty()) throw DoesNotFit();
        const auto count = static_cast<int64_t>(op.operands.size());
        std::vector<uint64_t> arguments;
        for (ValueId v : op.operands) arguments.push_back(operand(v));
        put({.op = LaunchOp::kCallAten,
             .a = name(std::string(op.attrs.string(AttrKey::kName))),
             .b = fitting<uint16_t>(op.operands.size()),
             .c = static_cast<uint16_t>(std::clamp<int64_t>(op.attrs.integer(AttrKey::kSlot), 0, count))});
        r_.code.insert(r_.code.end(), arguments.begin(), arguments.end());
        return;
      }
      case OpKind::kOutput:
        return output(op);
      case OpKind::kTensorStride:
      case OpKind::kTensorAlignment:
      case OpKind::kPrepareDiv:
      case FUSEBOX_SCALAR_OPS:
        return compute(op);
      case FUSEBOX_OPEN_HOST_OPS:
      case FUSEBOX_TENSOR_OPS:
      case FUSEBOX_KERNEL_OPS:
      case FUSEBOX_FACT_OPS:
        throw DoesNotFit();
    }
  }

  void put_registers(const std::vector<uint16_t>& registers) {
    std::vector<uint64_t> words(words_of_registers(registers.size()));
    for (size_t i = 0; i < registers.size(); ++i) words[i / 4] |= uint64_t{registers[i]} << (16 * (i % 4));
    r_.code.insert(r_.code.end(), words.begin(), words.end());
  }
  std::vector<uint16_t> scalars(const Op& op, size_t first, size_t count) {
    std::vector<uint16_t> registers;
    for (size_t i = first; i < first + count; ++i) registers.push_back(scalar(op.operands[i]));
    return registers;
  }

  // The slot of a tensor that the program makes, of these sizes.
  uint16_t add_slot(ValueId v, std::span<const uint16_t> sizes) {
    for (const uint16_t size : sizes)
      put({.op = LaunchOp::kRequireSize,
           .a = size,
           .c = error(ErrorCode::kBadInput, "this axis gets a negative extent; it must not be negative", place(v))});
    const auto slot = fitting<uint16_t>(slots_.size());
    slots_[g_[v].tensor] = slot;
    r_.allocated.push_back({g_[v].dtype, fitting<uint32_t>(sizes.size())});
    return slot;
  }

  void allocate(const Op& op) {
    const size_t rank = op.operands.size() / 2;
    const std::vector<uint16_t> layout = scalars(op, 0, op.operands.size());
    const uint16_t slot = add_slot(op.results[0], std::span(layout).first(rank));
    put({.op = LaunchOp::kAllocate,
         .small = static_cast<uint8_t>(op.attrs.flag(AttrKey::kZero) ? 1 : 0),
         .a = slot,
         .b = fitting<uint16_t>(rank)});
    put_registers(layout);
  }

  void view(const Op& op) {
    const size_t rank = op.operands.size() / 2 - 1;
    const uint16_t base = slot_of(op.operands[0]);
    std::vector<uint16_t> layout = scalars(op, 1, 2 * rank);
    layout.push_back(op.operands.back() ? scalar(op.operands.back()) : constant(0));
    const uint16_t slot = add_slot(op.results[0], std::span(layout).first(rank));
    put({.op = LaunchOp::kView, .a = slot, .b = fitting<uint16_t>(rank), .c = base});
    put_registers(layout);
  }

  uint64_t operand(ValueId v) {
    if (g_.is_tensor(v))
      return pack(LaunchOperand{.kind = LaunchOperand::Kind::kTensor, .dtype = g_[v].dtype, .at = slot_of(v)});
    if (const auto it = arguments_.find(v); it != arguments_.end() && r_.inputs[it->second].is_open)
      return pack(LaunchOperand{.kind = LaunchOperand::Kind::kOpen, .dtype = g_[v].dtype, .at = it->second});
    return pack(LaunchOperand{.dtype = g_[v].dtype, .at = scalar(v)});
  }

  void launch(const Op& op) {
    const std::string called(op.attrs.string(AttrKey::kName));
    const auto kernel = std::ranges::find(kernels_, called);
    if (kernel == kernels_.end()) throw DoesNotFit();
    const std::vector<uint16_t> dimensions = scalars(op, 0, kDimensions);
    std::vector<uint64_t> arguments;
    for (size_t i = kDimensions; i < op.operands.size(); ++i) arguments.push_back(operand(op.operands[i]));
    put({.op = LaunchOp::kLaunch,
         .a = fitting<uint16_t>(static_cast<size_t>(kernel - kernels_.begin())),
         .b = fitting<uint16_t>(arguments.size())});
    put_registers(dimensions);
    r_.code.insert(r_.code.end(), arguments.begin(), arguments.end());
  }

  void output(const Op& op) {
    const ValueId v = op.operands[0];
    const bool overwrites = op.operands.size() > 1 && op.operands[1];
    if (g_.is_tensor(v)) {
      const uint16_t slot = slot_of(v);
      if (overwrites) require_same_shape(v, op.operands[1]);
      return put({.op = LaunchOp::kOutput,
                  .small = static_cast<uint8_t>(overwrites ? 1 : 0),
                  .a = slot,
                  .b = name(g_[v].name)});
    }
    if (overwrites) throw DoesNotFit();
    const uint16_t r = scalar(v);
    put({.op = LaunchOp::kOutputScalar, .small = static_cast<uint8_t>(g_[v].dtype), .a = r, .b = name(g_[v].name)});
  }
  void require_same_shape(ValueId v, ValueId overwritten) {
    const uint16_t from = slot_of(v), to = slot_of(overwritten);
    if (from == to) return;
    const size_t rank = std::min(axes(v).size(), axes(overwritten).size());
    for (size_t i = 0; i < rank; ++i) {
      const uint16_t a = fresh(), b = fresh();
      put({.op = LaunchOp::kExtent, .a = a, .b = from, .c = fitting<uint16_t>(i)});
      put({.op = LaunchOp::kExtent, .a = b, .b = to, .c = fitting<uint16_t>(i)});
      require_equal(a, b, ErrorCode::kSizeMismatch, "an output has another extent than the input that it overwrites",
                    place(axes(overwritten)[i]));
    }
  }

  struct Deferred {
    ValueId extent;
    uint16_t given;
    DomainId place;
  };
  static constexpr size_t kDimensions = 7;  // grid, block, shared bytes
  static constexpr int kMostDepth = 4096;   // of scalars that are needed before their place

  const Graph& g_;
  std::span<const std::string> kernels_;
  LaunchRecord r_;
  std::map<TensorId, uint16_t> slots_;
  std::map<ValueId, uint16_t> registers_, arguments_;
  std::map<int64_t, uint16_t> constants_;
  std::vector<Deferred> deferred_;
  bool is_checked_ = false;
  int depth_ = 0;
};

}  // namespace

std::optional<LaunchRecord> launch_code(const Graph& host, std::span<const std::string> kernels) {
  try {
    return Coder(host, kernels).run();
  } catch (const DoesNotFit&) {
    return std::nullopt;
  }
}

}  // namespace fusebox
