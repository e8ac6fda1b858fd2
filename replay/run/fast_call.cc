#include "replay/run/fast_call.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <set>

#include "codegen/cuda.h"
#include "ir/table/error.h"
#include "replay/device/module_loader.h"
#include "replay/device/nvtx.h"
#include "replay/device/overlap.h"

namespace fusebox {
namespace {

// The dtypes of scalars that a fast call takes anew each time. The bits of others belong to the call.
bool may_stay_open(Dtype d) {
  return d == Dtype::kDouble || d == Dtype::kFloat || d == Dtype::kInt64 || d == Dtype::kInt32;
}

// Memory in which the kernels of a call count their blocks. A launch leaves it ready for the next one, so it is cleared
// once, and not before each call, which would take as long as a small kernel.
//
// Invariant: it belongs to the first stream that asks, on which one launch ends before the next one begins. Others get
// nothing. What is captured may run anywhere, so each captured call gets memory that its graph keeps.
class OwnCounters {
 public:
  explicit OwnCounters(CudaSession* session) : session_(session) {}
  OwnCounters(const OwnCounters&) = delete;
  OwnCounters& operator=(const OwnCounters&) = delete;
  ~OwnCounters() { free(memory_); }

  // Takes bytes for one buffer, and returns its place.
  uint64_t add(int64_t bytes) {
    const auto place = static_cast<uint64_t>(bytes_);
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return place;
  }

  // 0: this stream has none.
  CudaPointer of(CudaStream stream, bool is_captured) {
    if (bytes_ == 0) return 0;
    if (is_captured) return session_->zeroed_for_capture(stream, bytes_);
    const uint64_t number = session_->stream_number(stream);
    uint64_t owner = kNobody;
    if (!owner_.compare_exchange_strong(owner, number)) return owner == number ? memory_.load() : 0;
    return memory_ = made(stream);
  }

 private:
  static constexpr int64_t kAlignment = 256;
  static constexpr uint64_t kNobody = ~uint64_t{0};

  // If it cannot be made, the next call tries again.
  CudaPointer made(CudaStream stream) {
    CudaPointer memory = 0;
    try {
      memory = session_->allocate(bytes_);
      session_->fill(memory, 0, bytes_, stream);
      return memory;
    } catch (...) {
      owner_ = kNobody;
      free(memory);
      throw;
    }
  }
  void free(CudaPointer memory) {
    try {
      session_->free(memory);
    } catch (const Error&) {  // the context is broken, and its memory is lost
    }
  }

  CudaSession* session_;
  int64_t bytes_ = 0;
  std::atomic<uint64_t> owner_ = kNobody;
  std::atomic<CudaPointer> memory_ = 0;
};

class CudaCall final : public FastCall {
 public:
  CudaCall(const ResolvedCall& call, std::span<const NamedKernel> kernels, std::span<const Argument> arguments,
           std::shared_ptr<Device> device, std::map<std::string, AtenForm> aten_forms)
      : device_(std::move(device)),
        session_(device_->session()),
        counters_(device_->session()),
        forms_(std::move(aten_forms)) {
    take_tensors(call);
    take_counters(call, kernels);
    for (size_t i = 0; i < arguments.size(); ++i)
      open_scalars.push_back(call.is_open_scalar[i] && may_stay_open(arguments[i].dtype)
                                 ? std::optional(arguments[i].dtype)
                                 : std::nullopt);
    arena_bytes = call.arena_bytes;
    for (const ResolvedStep& step : call.steps) add(call, step, kernels, arguments);
  }

  bool serves(const uint64_t* inputs) const override {
    const auto range = [&](size_t i) {
      return ByteRange{inputs[i], inputs[i] + static_cast<uint64_t>(input_bytes[i])};
    };
    for (size_t i = 0; i < overwritten.size(); ++i)
      for (size_t k = 0; overwritten[i] && k < overwritten.size(); ++k)
        if (i != k && share_bytes(range(i), range(k))) return false;
    return true;
  }

  void start(const FastAddresses& at) const override {
    const NvtxRange range(name.c_str());
    const EnteredSession entered(*session_);
    std::vector<AtenValue> made(made_count_);
    // The default stream is never captured, and others are asked once.
    const bool is_captured = at.stream != nullptr && session_->is_captured(at.stream);
    if (is_captured) device_->keep_for_graph(at.stream);
    const CudaPointer counters = counters_.of(at.stream, is_captured);
    for (const Work& work : work_) run(work, at, made, counters);
  }

  std::vector<size_t> steps() const override {
    std::vector<size_t> result;
    for (size_t i = 0; i < work_.size(); ++i)
      if (!clears_counters(work_[i])) result.push_back(i);
    return result;
  }

  void start_step(size_t step, const FastAddresses& at) const override {
    // A launch may read what a segment by ATen makes anew in each call.
    check_internal(made_count_ == 0, "a call with segments by ATen is not started step by step");
    const EnteredSession entered(*session_);
    std::vector<AtenValue> made;
    const CudaPointer counters = counters_.of(at.stream, false);
    // Counters that lie in the arena are cleared before each launch.
    if (counters == 0)
      for (const Work& work : work_)
        if (clears_counters(work)) run(work, at, made, counters);
    run(work_[step], at, made, counters);
  }

 private:
  struct Place {
    enum class Kind : uint8_t { kInput, kOutput, kArena, kCounters, kMade, kScalar, kBits };
    Kind kind = Kind::kBits;
    uint64_t at = 0;    // an index, an offset in the arena, or the low bits
    uint64_t high = 0;  // of counters: their offset among the call's own
    uint64_t plus = 0;  // of a view: the bytes before its first element
  };
  // The tensor that an ATen segment makes.
  struct Made {
    uint64_t at = 0;               // among all that the call's segments make
    std::vector<int64_t> strides;  // that it must have
    std::optional<size_t> output;  // of the call
  };
  struct Work {
    ResolvedStep::Kind kind = ResolvedStep::Kind::kLaunch;
    Place to = {}, from = {};
    int64_t bytes = 0;
    CudaReadyLaunch launch;
    size_t first = 0, count = 0;  // in arguments_
    // For an ATen segment:
    const AtenForm* form = nullptr;
    std::vector<AtenValue> given = {};  // their memory is in arguments_
    std::vector<Made> made = {};
  };

  void take_tensors(const ResolvedCall& call) {
    places_.resize(call.tensors.size());
    for (size_t slot = 0; slot < call.tensors.size(); ++slot) {
      const ResolvedTensor& t = call.tensors[slot];
      if (!t.is_input) {
        if (t.is_by_aten)
          places_[slot] = {Place::Kind::kMade, made_count_++, 0};
        else
          places_[slot] = {Place::Kind::kArena, static_cast<uint64_t>(std::max<int64_t>(t.in_arena, 0)), 0};
        continue;
      }
      places_[slot] = {Place::Kind::kInput, overwritten.size(), 0};
      overwritten.push_back(false);
      input_bytes.push_back(t.bytes);
    }
    // The caller's outputs are in the program's order.
    for (const ResolvedOutput& out : call.outputs) {
      const ResolvedTensor& t = call.tensors[out.slot];
      if (out.overwrites_input)
        overwritten[out.slot] = true;
      else {
        if (t.is_by_aten)
          output_of_[out.slot] = outputs.size();
        else
          places_[out.slot] = {Place::Kind::kOutput, outputs.size(), 0};
        outputs.push_back({t.dtype, t.shape, t.strides, t.is_by_aten});
      }
    }
  }

  // Finds the buffers that begin at 0, and in which one launch does nothing but count its blocks.
  void take_counters(const ResolvedCall& call, std::span<const NamedKernel> kernels) {
    std::set<uint32_t> zeroed, counting, others;
    for (const ResolvedStep& step : call.steps) {
      if (step.kind == ResolvedStep::Kind::kZero) zeroed.insert(step.to);
      if (step.kind == ResolvedStep::Kind::kCopy) others.insert({step.to, step.from});
      if (step.kind == ResolvedStep::Kind::kAten) others.insert(step.made.begin(), step.made.end());
      const auto parameters =
          step.kind == ResolvedStep::Kind::kLaunch ? inputs(*kernels[step.kernel].kernel) : std::vector<ValueId>();
      for (size_t i = 0; i < step.arguments.size(); ++i)
        if (step.arguments[i].kind == ResolvedArgument::Kind::kTensor &&
            (i >= parameters.size() || !is_counters(*kernels[step.kernel].kernel, parameters[i]) ||
             !counting.insert(step.arguments[i].from).second))
          others.insert(step.arguments[i].from);
    }
    for (const uint32_t slot : zeroed)
      if (places_[slot].kind == Place::Kind::kArena && !others.contains(slot) && call.tensors[slot].bytes > 0)
        places_[slot] = {Place::Kind::kCounters, places_[slot].at, counters_.add(call.tensors[slot].bytes)};
  }

  void add(const ResolvedCall& call, const ResolvedStep& step, std::span<const NamedKernel> kernels,
           std::span<const Argument> arguments) {
    Work work;
    work.kind = step.kind;
    work.to = places_[step.to];
    work.from = places_[step.from];
    work.first = arguments_.size();
    if (step.kind == ResolvedStep::Kind::kAten) return add_aten(call, step, std::move(work), arguments);
    if (step.kind != ResolvedStep::Kind::kLaunch) {
      work.bytes = call.tensors[step.to].bytes;
      work_.push_back(work);
      return;
    }
    work.launch = *device_->ready(device_->prepare(*kernels[step.kernel].kernel, {}), step.dims);
    work.count = step.arguments.size();
    for (const ResolvedArgument& a : step.arguments) {
      if (a.kind == ResolvedArgument::Kind::kTensor)
        arguments_.push_back(place_of(call, a));
      else if (a.kind == ResolvedArgument::Kind::kScalar && open_scalars[a.from])
        arguments_.push_back({Place::Kind::kScalar, a.from, 0});
      else
        arguments_.push_back(
            bits_of(a.dtype, a.kind == ResolvedArgument::Kind::kScalar ? arguments[a.from].bits : a.bits));
    }
    work_.push_back(work);
  }

  Place place_of(const ResolvedCall& call, const ResolvedArgument& a) const {
    if (call.tensors[a.from].bytes == 0) return {};
    Place place = places_[a.from];
    if (a.view) place.plus = static_cast<uint64_t>(a.view->first * size_bytes(call.tensors[a.from].dtype));
    return place;
  }

  void add_aten(const ResolvedCall& call, const ResolvedStep& step, Work work, std::span<const Argument> arguments) {
    const auto form = forms_.find(step.segment);
    if (form == forms_.end())
      throw Error(ErrorCode::kUnknownName, "the program holds no ATen segment of this name", "@" + step.segment);
    work.form = &form->second;
    for (const ResolvedArgument& a : step.arguments) {
      AtenValue v{.is_scalar = a.kind != ResolvedArgument::Kind::kTensor, .dtype = a.dtype};
      if (v.is_scalar)
        v.bits = a.kind == ResolvedArgument::Kind::kScalar ? arguments[a.from].bits : a.bits;
      else
        v.layout = {call.tensors[a.from].shape, call.tensors[a.from].strides};
      arguments_.push_back(v.is_scalar ? Place{} : place_of(call, a));
      work.given.push_back(std::move(v));
    }
    for (const uint32_t slot : step.made) {
      Made made{places_[slot].at, call.tensors[slot].strides, std::nullopt};
      if (const auto it = output_of_.find(slot); it != output_of_.end()) made.output = it->second;
      work.made.push_back(std::move(made));
    }
    work_.push_back(std::move(work));
  }

  void run_aten(const Work& work, const FastAddresses& at, std::vector<AtenValue>& all, CudaPointer counters) const {
    const AtenApi& aten = load_aten();
    AtenPlace place = device_->aten_place();
    place.stream = at.stream;
    std::vector<AtenValue> given = work.given;
    for (size_t i = 0; i < given.size(); ++i)
      if (!given[i].is_scalar)
        given[i].data = reinterpret_cast<void*>(value(arguments_[work.first + i], at, all, counters));
    std::vector<AtenValue> made = aten.run(work.form->graph, given, place, work.form->one_call());
    check_internal(made.size() == work.made.size(),
                   "an ATen segment makes another number of tensors than was inferred");
    for (size_t i = 0; i < made.size(); ++i) {
      const Made& wanted = work.made[i];
      if (made[i].layout.strides != wanted.strides) made[i] = aten.copied(made[i], wanted.strides, place);
      if (wanted.output && at.made) (*at.made)[*wanted.output] = made[i].keeper;
      all[wanted.at] = std::move(made[i]);
    }
  }

  // As the kernel declares the scalar: a complex number of two floats has both in its first eight bytes.
  static Place bits_of(Dtype dtype, ConstantBits bits) {
    if (dtype == Dtype::kComplexFloat) return {Place::Kind::kBits, (bits.low & 0xffffffffu) | (bits.high << 32), 0};
    return {Place::Kind::kBits, bits.low, bits.high};
  }

  static uint64_t value(const Place& p, const FastAddresses& at, const std::vector<AtenValue>& made,
                        CudaPointer counters) {
    switch (p.kind) {
      case Place::Kind::kInput:
        return at.inputs[p.at] + p.plus;
      case Place::Kind::kOutput:
        return at.outputs[p.at] + p.plus;
      case Place::Kind::kArena:
        return at.arena + p.at + p.plus;
      case Place::Kind::kCounters:
        return counters != 0 ? counters + p.high : at.arena + p.at;
      case Place::Kind::kMade:
        return reinterpret_cast<uint64_t>(made[p.at].data) + p.plus;
      case Place::Kind::kScalar:
        return at.scalars[p.at];
      case Place::Kind::kBits:
        break;
    }
    return p.at;
  }

  static bool clears_counters(const Work& work) {
    return work.kind == ResolvedStep::Kind::kZero && work.to.kind == Place::Kind::kCounters;
  }

  void run(const Work& work, const FastAddresses& at, std::vector<AtenValue>& made, CudaPointer counters) const {
    if (work.kind == ResolvedStep::Kind::kAten) return run_aten(work, at, made, counters);
    const auto address = [&](const Place& p) { return value(p, at, made, counters); };
    if (work.kind == ResolvedStep::Kind::kZero) {
      if (clears_counters(work) && counters != 0) return;
      return session_->fill(address(work.to), 0, work.bytes, at.stream);
    }
    if (work.kind == ResolvedStep::Kind::kCopy)
      return session_->copy_on_device(address(work.to), address(work.from), work.bytes, at.stream);
    const NvtxRange range(work.launch.name);
    constexpr size_t kOnStack = 32;
    std::array<std::array<uint64_t, 2>, kOnStack> values;
    std::array<void*, kOnStack> addresses;
    std::vector<std::array<uint64_t, 2>> more_values(work.count > kOnStack ? work.count : 0);
    std::vector<void*> more_addresses(more_values.size());
    auto* const v = work.count > kOnStack ? more_values.data() : values.data();
    void** const a = work.count > kOnStack ? more_addresses.data() : addresses.data();
    for (size_t i = 0; i < work.count; ++i) {
      const Place& p = arguments_[work.first + i];
      v[i] = {address(p), p.high};
      a[i] = v[i].data();
    }
    session_->start(work.launch, a, at.stream);
  }

  std::shared_ptr<Device> device_;  // holds the kernels
  CudaSession* session_;
  mutable OwnCounters counters_;
  std::vector<Place> places_;  // by slot
  std::vector<Place> arguments_;
  std::vector<Work> work_;
  std::map<std::string, AtenForm> forms_;
  uint64_t made_count_ = 0;
  std::map<uint32_t, size_t> output_of_;  // by slot of what ATen makes: the output of the call
};

}  // namespace

bool is_fast(const ResolvedCall& call) {
  std::set<uint32_t> made;
  return call.refused.empty() && std::ranges::all_of(call.outputs, [&](const ResolvedOutput& out) {
           if (out.is_scalar) return false;
           return out.overwrites_input || (!call.tensors[out.slot].is_input && made.insert(out.slot).second);
         });
}

std::unique_ptr<FastCall> make_fast_call(const ResolvedCall& call, std::span<const NamedKernel> kernels,
                                         std::span<const Argument> arguments, std::shared_ptr<Device> device,
                                         std::map<std::string, AtenForm> aten_forms) {
  if (!is_fast(call)) return nullptr;
  return std::make_unique<CudaCall>(call, kernels, arguments, std::move(device), std::move(aten_forms));
}

}  // namespace fusebox
