#include "replay/run/launch_machine.h"

#include <algorithm>
#include <utility>

#include "ir/infer/bind.h"
#include "ir/scalar/numeric.h"
#include "ir/scalar/prepared_division.h"
#include "ir/scalar/scalar.h"
#include "replay/run/arena_places.h"

namespace fusebox {
namespace {

constexpr size_t kDimensions = 7;  // grid, block, shared bytes
constexpr int64_t kMostBytes = int64_t{1} << 40;

class Machine {
 public:
  Machine(const LaunchRecord& record, std::span<const Argument> arguments, std::span<const uint64_t> addresses,
          const LaunchMachineOptions& options)
      : r_(record), arguments_(arguments), addresses_(addresses), options_(options), registers_(record.registers) {}

  ResolvedCall run() {
    take_arguments();
    for (at_ = 0; at_ < r_.code.size();) {
      if (++steps_ > options_.step_limit)
        throw Error(ErrorCode::kStepLimit, "a launch record ran for more instructions than allowed", "launch record");
      const LaunchWord w = unpack_word(r_.code[at_]);
      next_ = at_ + 1 + words_behind(r_.code, at_);
      execute(w);
      if (!call_.refused.empty()) break;
      at_ = next_;
    }
    finish();
    return std::move(call_);
  }

 private:
  [[noreturn]] static void misused(const char* what) { throw Error(ErrorCode::kInvalidGraph, what, "launch record"); }

  void take_arguments() {
    if (arguments_.size() != r_.inputs.size())
      throw Error(arguments_.size() < r_.inputs.size() ? ErrorCode::kMissingInput : ErrorCode::kBadInput,
                  std::to_string(arguments_.size()) + " inputs are given to a program that takes " +
                      std::to_string(r_.inputs.size()),
                  "launch record");
    call_.is_open_scalar.resize(r_.inputs.size());
    call_.tensors.reserve(r_.inputs.size() + r_.allocated.size());
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const Argument& a = arguments_[i];
      const LaunchInput& wanted = r_.inputs[i];
      const std::string place = "input " + std::to_string(i);
      if (a.is_scalar != wanted.is_scalar)
        throw Error(ErrorCode::kBadInput, wanted.is_scalar ? "this input is a scalar" : "this input is a tensor",
                    place);
      call_.is_open_scalar[i] = wanted.is_open;
      if (a.is_scalar) continue;
      if (a.tensor.shape.size() != wanted.rank || a.tensor.strides.size() != wanted.rank)
        throw Error(ErrorCode::kBadInput,
                    "this input has rank " + std::to_string(wanted.rank) + ", and is given rank " +
                        std::to_string(a.tensor.shape.size()),
                    place);
      for (const int64_t n : a.tensor.shape)
        if (n < 0) throw Error(ErrorCode::kBadInput, "an extent is negative", place);
      add(a.dtype, a.tensor.shape, a.tensor.strides);
      call_.tensors.back().is_input = true;
    }
    input_tensors_ = call_.tensors.size();
    slots_.resize(input_tensors_ + r_.allocated.size());
    views_.resize(slots_.size());
    for (size_t i = 0; i < input_tensors_; ++i) slots_[i] = static_cast<uint32_t>(i);
    for (size_t i = input_tensors_; i < slots_.size(); ++i) slots_[i] = kNoSlot;
  }

  uint32_t add(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    ResolvedTensor t;
    t.dtype = dtype;
    t.shape = std::move(shape);
    t.strides = std::move(strides);
    t.bytes = span_elems(t.shape, t.strides) * size_bytes(dtype);
    if (t.bytes >= kMostBytes) refuse("a tensor is larger than any memory");
    call_.tensors.push_back(std::move(t));
    return static_cast<uint32_t>(call_.tensors.size() - 1);
  }
  void refuse(std::string why) {
    if (call_.refused.empty()) call_.refused = std::move(why);
  }

  // The tensor of the call that a slot holds now.
  uint32_t slot(uint16_t s) const {
    if (s >= slots_.size() || slots_[s] == kNoSlot)
      misused("a launch record uses a tensor that it has not, or not any more");
    return slots_[s];
  }
  const std::vector<int64_t>& shape(uint16_t s) const {
    const ResolvedTensor& t = call_.tensors[slot(s)];
    return views_[s] ? views_[s]->layout.shape : t.shape;
  }
  const std::vector<int64_t>& strides(uint16_t s) const {
    const ResolvedTensor& t = call_.tensors[slot(s)];
    return views_[s] ? views_[s]->layout.strides : t.strides;
  }
  TensorLayout layout(uint16_t s) const { return {shape(s), strides(s)}; }
  int64_t number(uint16_t r) const { return static_cast<int64_t>(registers_[r]); }
  ConstantBits bits(uint16_t r, Dtype dtype) const {
    return {registers_[r], is_complex(dtype) ? registers_[static_cast<size_t>(r) + 1] : 0};
  }
  [[noreturn]] void fail(uint16_t error) const {
    const LaunchError& e = r_.errors[error];
    throw Error(e.code, e.message, e.place);
  }
  const uint64_t* behind() const { return &r_.code[at_ + 1]; }

  void execute(const LaunchWord& w) {
    switch (w.op) {
      case LaunchOp::kConstant:
        registers_[w.a] = *behind();
        return;
      case LaunchOp::kScalarInput:
        registers_[w.a] = w.c == 0 ? arguments_[w.b].bits.low : arguments_[w.b].bits.high;
        return;
      case LaunchOp::kExtent:
        registers_[w.a] = static_cast<uint64_t>(shape(w.b)[w.c]);
        return;
      case LaunchOp::kStride:
        registers_[w.a] = static_cast<uint64_t>(strides(w.b)[w.c]);
        return;
      case LaunchOp::kAlignment:
        registers_[w.a] = static_cast<uint64_t>(alignment(w.b));
        return;
      case LaunchOp::kCompute:
        return compute(w);
      case LaunchOp::kPrepareDivision:
        registers_[w.a] = static_cast<uint64_t>(prepare_division(number(w.b)));
        return;
      case LaunchOp::kMove:
        registers_[w.a] = registers_[w.b];
        return;
      case LaunchOp::kJump:
        next_ = w.target();
        return;
      case LaunchOp::kJumpIfZero:
        if (registers_[w.a] == 0) next_ = w.target();
        return;
      case LaunchOp::kRequire:
        if (registers_[w.a] == 0) fail(w.c);
        return;
      case LaunchOp::kRequireEqual:
        if (registers_[w.a] != registers_[w.b]) fail(w.c);
        return;
      case LaunchOp::kRequireSize:
        if (number(w.a) < 0) fail(w.c);
        return;
      case LaunchOp::kRequireLayout:
        return require_layout(w);
      case LaunchOp::kRequireApart:
        if (meets_itself(shape(w.a), strides(w.a))) fail(w.c);
        return;
      case LaunchOp::kAllocate:
        return allocate(w);
      case LaunchOp::kView:
        return make_view(w);
      case LaunchOp::kRelease:
        release(w.a);
        return;
      case LaunchOp::kCopy:
        return copy(w);
      case LaunchOp::kLaunch:
        return launch(w);
      case LaunchOp::kCallAten:
        return refuse("a segment runs by ATen");
      case LaunchOp::kOutput:
        if (views_[w.a]) refuse("an output is a view");
        call_.outputs.push_back({.name = r_.names[w.b], .overwrites_input = w.small == 1, .slot = slot(w.a)});
        call_.outputs.back().dtype = call_.tensors[slot(w.a)].dtype;
        return;
      case LaunchOp::kOutputScalar: {
        const Dtype dtype = static_cast<Dtype>(w.small);
        call_.outputs.push_back({.name = r_.names[w.b], .is_scalar = true, .dtype = dtype, .bits = bits(w.a, dtype)});
        return;
      }
      case FUSEBOX_STREAM_LAUNCH_OPS:
        return refuse("streams, events and communication are not run yet");
    }
    misused("a launch record has an instruction that there is not");
  }

  int64_t alignment(uint16_t s) const {
    const uint32_t tensor = slot(s);
    const bool is_given = tensor < addresses_.size();
    if (is_given && call_.tensors[tensor].bytes == 0) return alignment_of(0);
    const int64_t before = views_[s] ? views_[s]->first * size_bytes(call_.tensors[tensor].dtype) : 0;
    const uint64_t address = is_given ? addresses_[tensor] : uint64_t{kArenaAlign};
    return alignment_of_view(address + static_cast<uint64_t>(before), before);
  }

  void compute(const LaunchWord& w) {
    const uint64_t* words = behind();
    const size_t count = static_cast<size_t>(words[0] & 0xff);
    const Dtype result = static_cast<Dtype>(w.small);
    const OpKind kind = static_cast<OpKind>(w.b);
    std::array<TypedBits, 3> operands;
    for (size_t i = 0; i < count; ++i) {
      const LaunchOperand o = unpack_operand(words[1 + i]);
      operands[i] = {o.dtype, o.kind == LaunchOperand::Kind::kOpen ? arguments_[o.at].bits : bits(o.at, o.dtype)};
    }
    const auto value = evaluate_op(kind, result, {operands.data(), count});
    if (!value) fail(w.c);
    if (result == Dtype::kIndex && count == 2) require_fits(kind, operands[0], operands[1], w.c);
    registers_[w.a] = value->low;
    if (is_complex(result)) registers_[static_cast<size_t>(w.a) + 1] = value->high;
  }
  // As in the host program: extents and kernels' indices are made of such scalars by rules that do not hold where one
  // wraps.
  void require_fits(OpKind kind, const TypedBits& a, const TypedBits& b, uint16_t error) const {
    if (kind != OpKind::kAdd && kind != OpKind::kSub && kind != OpKind::kMul) return;
    const auto integer = [](const TypedBits& x) {
      return to_int64(Dtype::kIndex, convert(x.dtype, x.bits, Dtype::kIndex));
    };
    int64_t result = 0;
    const bool overflows = kind == OpKind::kAdd   ? __builtin_add_overflow(integer(a), integer(b), &result)
                           : kind == OpKind::kSub ? __builtin_sub_overflow(integer(a), integer(b), &result)
                                                  : __builtin_mul_overflow(integer(a), integer(b), &result);
    if (overflows)
      throw Error(ErrorCode::kScalarOverflow,
                  "`" + std::string(row_of(kind).text) + "` of " + std::to_string(integer(a)) + " and " +
                      std::to_string(integer(b)) + " leaves 64 bits; give smaller sizes or scalars",
                  r_.errors[error].place);
  }

  void require_layout(const LaunchWord& w) {
    const std::vector<int64_t>&shape = this->shape(w.a), &strides = this->strides(w.a);
    if (std::ranges::find(shape, 0) != shape.end()) return;
    int64_t expected = 1;
    for (size_t i = 0; i < w.b; ++i) {
      const LaunchAxis axis = unpack_axis(behind()[i]);
      const int64_t size = shape[axis.axis], stride = strides[axis.axis];
      switch (axis.rule) {
        case LaunchAxis::Rule::kSkipped:
          break;
        case LaunchAxis::Rule::kExpanded:
          if (size > 1 && stride != 0) fail(axis.error);
          break;
        case LaunchAxis::Rule::kFree:
          if (__builtin_mul_overflow(stride, size, &expected)) fail(w.c);
          break;
        case LaunchAxis::Rule::kContiguous:
          if (size != 1 && stride != expected) fail(axis.error);
          if (__builtin_mul_overflow(expected, size, &expected)) fail(w.c);
          break;
      }
    }
  }

  // -- work

  size_t now() const { return call_.steps.size(); }

  // The sizes and strides that follow an instruction.
  TensorLayout given_layout(const LaunchWord& w) const {
    TensorLayout given{std::vector<int64_t>(w.b), std::vector<int64_t>(w.b)};
    for (size_t i = 0; i < w.b; ++i) {
      given.shape[i] = number(register_in(behind(), i));
      given.strides[i] = number(register_in(behind(), i + w.b));
    }
    return given;
  }

  // A view's place counts from the tensor of the call in whose memory it lies.
  void make_view(const LaunchWord& w) {
    const TensorLayout base = layout(w.c);
    ResolvedView view{given_layout(w), number(register_in(behind(), size_t{2} * w.b))};
    if (std::ranges::count(view.layout.shape, 0) > 0) view.first = 0;
    if (!lies_within(view.layout.shape, view.layout.strides, view.first, base))
      misused("a view reaches beyond the tensor in whose memory it lies");
    const uint32_t tensor = slot(w.c);
    if (r_.allocated[w.a - input_tensors_].dtype != call_.tensors[tensor].dtype)
      misused("a view has another dtype than the tensor in whose memory it lies");
    if (views_[w.c]) view.first += views_[w.c]->first;
    slots_[w.a] = tensor;
    views_[w.a].reset();
    const bool is_whole = view.first == 0 && view.layout == layout(w.a);
    if (!is_whole) views_[w.a] = std::move(view);
    has_views_ = true;
  }

  void allocate(const LaunchWord& w) {
    auto [shape, strides] = given_layout(w);
    views_[w.a].reset();
    const uint32_t made = add(r_.allocated[w.a - input_tensors_].dtype, std::move(shape), std::move(strides));
    slots_[w.a] = made;
    lives_.push_back({.slot = made, .begin = now()});
    if (w.small == 1 && call_.tensors[made].bytes > 0)
      call_.steps.push_back({.kind = ResolvedStep::Kind::kZero, .to = made});
  }

  void release(uint16_t s) {
    const uint32_t tensor = slot(s);
    slots_[s] = kNoSlot;
    if (has_views_ && std::ranges::count(slots_, tensor) > 0) return;  // it is still in use as another view
    for (TensorLife& life : lives_)
      if (life.slot == tensor) life.end = now();
  }

  void copy(const LaunchWord& w) {
    const uint32_t to = slot(w.a), from = slot(w.b);
    if (views_[w.a] || views_[w.b]) return refuse("a view is copied");
    if (call_.tensors[to].strides != call_.tensors[from].strides)
      return refuse("an output is stored in another layout than the input it overwrites");
    const ResolvedTensor& t = call_.tensors[to];
    if (t.bytes > element_count(t.shape) * size_bytes(t.dtype))
      return refuse("an output overwrites an input with gaps");
    if (call_.tensors[to].bytes > 0) call_.steps.push_back({.kind = ResolvedStep::Kind::kCopy, .to = to, .from = from});
  }

  void launch(const LaunchWord& w) {
    ResolvedStep step{.kind = ResolvedStep::Kind::kLaunch, .kernel = w.a};
    for (size_t i = 0; i < 3; ++i) {
      step.dims.grid[i] = number(register_in(behind(), i));
      step.dims.block[i] = number(register_in(behind(), 3 + i));
    }
    step.dims.shared_bytes = number(register_in(behind(), 6));
    for (size_t i = 0; i < 3; ++i)
      if (step.dims.grid[i] == 0 || step.dims.block[i] == 0) return;
    const uint64_t* words = behind() + words_of_registers(kDimensions);
    step.arguments.reserve(w.b);
    for (size_t i = 0; i < w.b; ++i) {
      const LaunchOperand o = unpack_operand(words[i]);
      ResolvedArgument a{.dtype = o.dtype};
      switch (o.kind) {
        case LaunchOperand::Kind::kRegister:
          a.bits = bits(o.at, o.dtype);
          break;
        case LaunchOperand::Kind::kTensor:
          a.kind = ResolvedArgument::Kind::kTensor;
          a.from = slot(o.at);
          a.view = views_[o.at];
          break;
        case LaunchOperand::Kind::kOpen:
          a.kind = ResolvedArgument::Kind::kScalar;
          a.from = o.at;
          a.bits = arguments_[o.at].bits;
          break;
      }
      step.arguments.push_back(a);
    }
    call_.steps.push_back(std::move(step));
  }

  void finish() {
    for (const ResolvedOutput& out : call_.outputs)
      if (!out.is_scalar) call_.tensors[out.slot].is_output = true;
    for (TensorLife& life : lives_) life.end = std::min(life.end, now());
    if (call_.refused.empty()) place_in_arena(call_, lives_, options_.defects);
  }

  static constexpr uint32_t kNoSlot = UINT32_MAX;

  const LaunchRecord& r_;
  std::span<const Argument> arguments_;
  std::span<const uint64_t> addresses_;
  const LaunchMachineOptions& options_;
  std::vector<uint64_t> registers_;
  std::vector<uint32_t> slots_;                     // by tensor of the record: the tensor of the call
  std::vector<std::optional<ResolvedView>> views_;  // by tensor of the record, that are views
  bool has_views_ = false;
  std::vector<TensorLife> lives_;
  size_t input_tensors_ = 0;
  size_t at_ = 0, next_ = 0;
  int64_t steps_ = 0;
  ResolvedCall call_;
};

}  // namespace

ResolvedCall evaluate_launch(const LaunchRecord& record, std::span<const Argument> arguments,
                             std::span<const uint64_t> addresses, const LaunchMachineOptions& options) {
  return Machine(record, arguments, addresses, options).run();
}

}  // namespace fusebox
