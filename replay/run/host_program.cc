#include "replay/run/host_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/domain/domain.h"
#include "ir/infer/bind.h"
#include "ir/scalar/numeric.h"
#include "ir/scalar/prepared_division.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "passes/host/host_errors.h"
#include "passes/pipeline/pipeline.h"
#include "passes/segment/crossing_layouts.h"
#include "replay/device/nvtx.h"
#include "replay/device/overlap.h"

namespace fusebox {
namespace {

class Interpreter {
 public:
  Interpreter(const Graph& host, std::span<const NamedKernel> kernels, Device& device, std::span<const Argument> inputs,
              const HostProgramOptions& options, bool download)
      : host_(host),
        kernels_(kernels),
        device_(device),
        options_(options),
        download_(download),
        tensors_(host.tensors.size()) {
    bindings_ = bind_inputs(host, bound_inputs(inputs));
    for (OpId id : host[Graph::body()].ops)
      if (host[id].kind == OpKind::kOutput) check_sizes(host, id, bindings_);
    size_t next = 0, next_tensor = 0;
    for (OpId id : host[Graph::body()].ops) {
      const Op& op = host[id];
      if (op.kind != OpKind::kInput) continue;
      const Argument& a = inputs[next++];
      if (!host.is_tensor(op.results[0])) continue;
      set_tensor(op.results[0], next_tensor < options.in_place_inputs.size() ? options.in_place_inputs[next_tensor]
                                                                             : device.upload(a.tensor));
      ++next_tensor;
    }
    part_inputs();
  }

  ProgramResult run() {
    // A tensor's extents are checked where it is made: they may rest on a fact that a `check` before it establishes.
    for (OpId id : host_[Graph::body()].ops) {
      check_sizes(host_, id, bindings_);
      execute(host_[id]);
    }
    device_.synchronize();
    // Downloads at the end, when an output that overwrites an input has its last value.
    if (download_)
      for (ProgramOutput& out : result_.outputs)
        if (!out.value.is_scalar) out.value = Argument::of(device_.download(out.on_device, "%" + out.name));
    return std::move(result_);
  }

 private:
  // The tensor of a value. A program from a bundle may have freed it.
  RunTensor& tensor(ValueId v) {
    if (!host_.is_tensor(v) || !tensors_[host_[v].tensor.index])
      throw Error(ErrorCode::kInvalidGraph, "the host program uses a tensor that it has not, or not any more",
                  "%" + host_[v].name);
    return *tensors_[host_[v].tensor.index];
  }
  void set_tensor(ValueId v, RunTensor t) { tensors_[host_[v].tensor.index] = std::move(t); }

  // A program reads each input as it is when the call begins. An input that may share memory with one that is overwritten is
  // therefore copied first.
  void part_inputs() {
    std::vector<ValueId> overwritten;
    for (const OutputRef& out : outputs(host_))
      if (out.alias && host_.is_tensor(out.alias) && std::ranges::count(overwritten, out.alias) == 0)
        overwritten.push_back(out.alias);
    for (size_t i = 0; i < overwritten.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        if (surely_meet(tensor(overwritten[i]), tensor(overwritten[k])))
          throw Error(ErrorCode::kBadInput,
                      "outputs overwrite this input and %" + host_[overwritten[k]].name +
                          ", which share memory; give tensors that lie apart",
                      "%" + host_[overwritten[i]].name);
    for (ValueId v : inputs(host_)) {
      if (!host_.is_tensor(v) || std::ranges::count(overwritten, v) > 0) continue;
      RunTensor& given = tensor(v);
      if (std::ranges::none_of(overwritten, [&](ValueId w) { return may_meet(given, tensor(w)); })) continue;
      RunTensor copy = device_.allocate(given.layout.dtype, given.layout.shape, given.layout.strides, false);
      device_.copy(copy, given);
      set_tensor(v, std::move(copy));
    }
  }

  ConstantBits bits(ValueId v) const {
    if (v.index < bindings_.size() && bindings_[v.index]) return *bindings_[v.index];
    if (const auto value = evaluate(host_, v, bindings_)) return *value;
    throw Error(ErrorCode::kInternal, "a scalar of the host program has no value", "%" + host_[v].name);
  }
  int64_t integer(ValueId v) const { return static_cast<int64_t>(bits(v).low); }
  std::vector<int64_t> integers(const Op& op, size_t begin, size_t count) const {
    std::vector<int64_t> result;
    for (size_t i = 0; i < count; ++i) result.push_back(integer(op.operands[begin + i]));
    return result;
  }
  void bind(ValueId v, int64_t value) { bindings_[v.index] = ConstantBits{static_cast<uint64_t>(value), 0}; }

  // Refuses a sum, difference or product of indices that leaves 64 bits. Extents and kernels' indices are made of such
  // scalars by rules that do not hold where one wraps.
  void check_fits(const Op& op) const {
    const ValueId v = op.results[0];
    if (host_[v].dtype != Dtype::kIndex || op.operands.size() != 2) return;
    const auto operand = [&](size_t i) {
      const Dtype dtype = host_[op.operands[i]].dtype;
      return to_int64(Dtype::kIndex, convert(dtype, bits(op.operands[i]), Dtype::kIndex));
    };
    int64_t result = 0;
    const bool overflows = op.kind == OpKind::kAdd   ? __builtin_add_overflow(operand(0), operand(1), &result)
                           : op.kind == OpKind::kSub ? __builtin_sub_overflow(operand(0), operand(1), &result)
                           : op.kind == OpKind::kMul ? __builtin_mul_overflow(operand(0), operand(1), &result)
                                                     : false;
    if (overflows)
      throw Error(ErrorCode::kScalarOverflow,
                  "`" + std::string(row_of(op.kind).text) + "` of " + std::to_string(operand(0)) + " and " +
                      std::to_string(operand(1)) + " leaves 64 bits; give smaller sizes or scalars",
                  "%" + host_[v].name);
  }

  void execute(const Op& op) {
    switch (op.kind) {
      case OpKind::kInput:
      case OpKind::kSize:
        return;
      case OpKind::kAllocateTensor: {
        const size_t rank = op.operands.size() / 2;
        set_tensor(op.results[0], device_.allocate(host_[op.results[0]].dtype, integers(op, 0, rank),
                                                   integers(op, rank, rank), op.attrs.flag(AttrKey::kZero)));
        result_.allocated.emplace_back(host_[op.results[0]].name, tensor(op.results[0]).layout);
        result_.allocated.back().second.storage.reset();
        return;
      }
      case OpKind::kAliasView:
        return view(op);
      case OpKind::kDeallocate:
        tensor(op.operands[0]);
        tensors_[host_[op.operands[0]].tensor.index].reset();
        return;
      case OpKind::kTensorStride:
        bind(op.results[0],
             tensor(op.operands[0]).layout.strides[static_cast<size_t>(op.attrs.integer(AttrKey::kAxis))]);
        return;
      case OpKind::kTensorAlignment:
        bind(op.results[0], device_.alignment(tensor(op.operands[0])));
        return;
      case OpKind::kPrepareDiv:
        bind(op.results[0], prepare_division(integer(op.operands[0])));
        return;
      case OpKind::kCheck:
        if (bits(op.operands[0]).low != 0) return;
        throw failed_check(host_, op);
      case OpKind::kCopyTensor:
        device_.copy(tensor(op.operands[0]), tensor(op.operands[1]));
        return;
      case OpKind::kLaunch:
        launch(op);
        return;
      case OpKind::kRunAten:
        run_aten(op);
        return;
      case OpKind::kOutput: {
        ProgramOutput out;
        const ValueId v = op.operands[0];
        out.name = host_[v].name;
        out.overwrites_input = op.operands.size() > 1 && op.operands[1];
        if (host_.is_tensor(v))
          out.on_device = tensor(v);
        else
          out.value = Argument::scalar(host_[v].dtype, bits(v));
        result_.outputs.push_back(std::move(out));
        return;
      }
      case FUSEBOX_SCALAR_OPS: {
        const auto value = evaluate(host_, op.results[0], bindings_);
        if (!value) throw not_computed(host_, op);
        check_fits(op);
        bindings_[op.results[0].index] = *value;
        return;
      }
      case FUSEBOX_OPEN_HOST_OPS:
      case FUSEBOX_TENSOR_OPS:
      case FUSEBOX_KERNEL_OPS:
      case FUSEBOX_FACT_OPS:
        break;
    }
    throw Error(ErrorCode::kUnsupportedOp,
                "the host interpreter does not run `" + std::string(row_of(op.kind).text) +
                    "` yet; streams and communication are to come",
                host_.name);
  }

  void view(const Op& op) {
    const ValueId v = op.results[0];
    const size_t rank = op.operands.size() / 2 - 1;
    const ValueId first = op.operands.back();
    set_tensor(v, view_of(tensor(op.operands[0]), integers(op, 1, rank), integers(op, 1 + rank, rank),
                          first ? integer(first) : 0, "%" + host_[v].name));
  }

  void launch(const Op& op) {
    LaunchDims dims;
    for (size_t i = 0; i < 3; ++i) {
      dims.grid[i] = integer(op.operands[i]);
      dims.block[i] = integer(op.operands[3 + i]);
    }
    dims.shared_bytes = integer(op.operands[6]);
    for (size_t i = 0; i < 3; ++i)
      if (dims.grid[i] == 0 || dims.block[i] == 0) return;
    std::vector<RunArgument> arguments;
    for (size_t i = 7; i < op.operands.size(); ++i) {
      const ValueId v = op.operands[i];
      if (host_.is_tensor(v))
        arguments.push_back({false, host_[v].dtype, {}, tensor(v), v});
      else
        arguments.push_back({true, host_[v].dtype, bits(v), {}, v});
    }
    const std::string name(op.attrs.string(AttrKey::kName));
    const auto it =
        std::find_if(kernels_.begin(), kernels_.end(), [&](const NamedKernel& k) { return k.name == name; });
    if (it == kernels_.end())
      throw Error(ErrorCode::kUnknownName, "the module holds no kernel of this name", "@" + name);
    const bool reads_apart = fusebox::reads_apart(*it->kernel, arguments);
    const auto [prepared, is_new] = prepared_.try_emplace({name, reads_apart}, 0);
    if (is_new) prepared->second = device_.prepare(*it->kernel, {.reads_apart = reads_apart});
    const NvtxRange range(name.c_str());
    device_.launch(prepared->second, dims, arguments);
    ++result_.launches;
  }

  void run_aten(const Op& op) {
    if (!options_.run_aten)
      throw Error(ErrorCode::kModuleMissing, "a segment runs by ATen, which is not loaded", host_.name);
    const auto slot = static_cast<size_t>(
        std::clamp<int64_t>(op.attrs.integer(AttrKey::kSlot), 0, static_cast<int64_t>(op.operands.size())));
    std::vector<RunArgument> given;
    for (size_t i = 0; i < slot; ++i) {
      const ValueId v = op.operands[i];
      if (host_.is_tensor(v))
        given.push_back({false, host_[v].dtype, {}, tensor(v), v});
      else
        given.push_back({true, host_[v].dtype, bits(v), {}, v});
    }
    // Older programs name the places of all outputs; newer ones take the tensors that ATen makes.
    const size_t places = op.operands.size() - slot;
    const std::string name(op.attrs.string(AttrKey::kName));
    const auto output = [&](size_t i) { return i < places ? op.operands[slot + i] : op.results.at(i - places); };
    const auto require = [&](bool holds) {
      if (!holds)
        throw Error(ErrorCode::kInvalidGraph, "an ATen segment is given other values than its program takes or makes",
                    "@" + name);
    };
    const AtenCall call{name, given,
                        [&](size_t i, const TensorLayout& chosen) {
                          require(i < places + op.results.size());
                          const ValueId v = output(i);
                          result_.by_aten.push_back({name, host_[v].name, chosen});
                          return i < places ? tensor(v).layout.strides : declared_strides(v, chosen);
                        },
                        [&](size_t i) {
                          require(i < places + op.results.size());
                          return host_[output(i)].dtype;
                        },
                        device_};
    const NvtxRange range(name.c_str());
    const std::vector<RunTensor> made = options_.run_aten(call);
    require(made.size() == places + op.results.size());
    for (size_t i = 0; i < made.size(); ++i) {
      const ValueId v = output(i);
      require(made[i].layout.dtype == host_[v].dtype);
      if (i < places) {
        require(made[i].layout.shape == tensor(v).layout.shape);
        device_.copy(tensor(v), made[i]);
        continue;
      }
      result_.allocated.emplace_back(host_[v].name, made[i].layout);
      result_.allocated.back().second.storage.reset();
      set_tensor(v, made[i]);
    }
  }

  // The strides that a tensor of ATen's must have: those that ATen chose, if they are as its type declares; those of the
  // record that is replayed; or dense ones in the declared order.
  std::vector<int64_t> declared_strides(ValueId v, const TensorLayout& chosen) const {
    const Tensor& t = host_.tensor_of(v);
    std::vector<int64_t> shape, order;
    std::vector<bool> broadcast;
    for (DomainId d : t.logical) {
      const auto size = evaluate_size(host_, d, bindings_);
      shape.push_back(size.value_or(-1));
      broadcast.push_back(host_[d].iter_type == IterType::kBroadcast);
    }
    if (shape != chosen.shape)
      throw Error(ErrorCode::kInvalidGraph, "ATen gives another shape than the program declares", "%" + host_[v].name);
    for (DomainId d : allocation_of(host_, t)) order.push_back(static_cast<int64_t>(position_in(t.logical, d)));
    const std::vector<Contiguity> contiguity = contiguity_of(host_, t);
    if (order.size() != shape.size() || contiguity.size() != order.size() ||
        std::ranges::find(order, static_cast<int64_t>(shape.size())) != order.end())
      throw Error(ErrorCode::kInvalidGraph, "a tensor that ATen makes is laid out by its axes", "%" + host_[v].name);
    for (const AtenResult& r : options_.recorded)
      if (r.value == host_[v].name && r.chosen.shape == shape && r.chosen.strides.size() == shape.size() &&
          has_order(r.chosen, order, contiguity))
        return r.chosen.strides;
    return declared_layout(chosen, order, contiguity, broadcast).strides;
  }

  const Graph& host_;
  std::span<const NamedKernel> kernels_;
  Device& device_;
  const HostProgramOptions& options_;
  const bool download_;
  std::vector<std::optional<RunTensor>> tensors_;
  Bindings bindings_;
  std::map<std::pair<std::string, bool>, size_t> prepared_;  // by name, and whether its reads are apart
  ProgramResult result_;
};

}  // namespace

std::vector<NamedKernel> named_kernels(const Compiled& compiled) {
  std::vector<NamedKernel> kernels;
  for (size_t i = 0; i < compiled.kernels.size(); ++i)
    kernels.push_back({compiled.segmentation.segments[i].name, &compiled.kernels[i]});
  return kernels;
}

ProgramResult run_host_program(const Graph& host, std::span<const NamedKernel> kernels, Device& device,
                               std::span<const Argument> inputs, const HostProgramOptions& options, bool download) {
  return Interpreter(host, kernels, device, inputs, options, download).run();
}

}  // namespace fusebox
