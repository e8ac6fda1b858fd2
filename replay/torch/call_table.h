// Fast calls (fast_call.h) by the tensors of a call: how a hit in memory finds its work, lets PyTorch allocate the outputs and
// starts the kernels. Needs ATen, and nothing of Python: `calls.cc` is the way from Python, tests/bench/hit.cc measures this one.
//
// Invariants: a call is found by everything that the work depends on: dtypes, device, sizes, strides, alignments, and numbers
// that are not open. One thread at a time uses a table. `Keeper` keeps a call alive.
//
//   table.begin();
//   for (const at::Tensor& t : inputs) if (!table.read(t)) …    // the slower way
//   if (const auto* entry = table.find()) outputs = table.run(*entry, stream);
#pragma once

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <algorithm>
#include <bit>
#include <c10/core/Device.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "replay/aten/scalar_type.h"
#include "replay/run/fast_call.h"
#include "replay/torch/tensors.h"

namespace fusebox {

struct HashOfCallKey {
  size_t operator()(const std::vector<int64_t>& key) const {
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (int64_t v : key) {
      h = (h ^ static_cast<uint64_t>(v)) * 0xff51afd7ed558ccdu;
      h ^= h >> 32;
    }
    return static_cast<size_t>(h);
  }
};

template <class Keeper>
class CallTable {
 public:
  struct Entry {
    Keeper keeper;
    const FastCall* call = nullptr;
    uint64_t used = 0;
  };

  // -- the arguments of a call, in order
  void begin() {
    key_.clear();
    tensors_.clear();
    addresses_.clear();
    scalars_.clear();
    device_ = -1;
  }
  // False for a tensor that only the slower way takes.
  bool read(const at::Tensor& t) {
    scalars_.push_back(0);
    if (!t.is_cuda() || t.layout() != c10::kStrided || t.is_conj() || t.is_neg() || t._is_zerotensor()) return false;
    const int device = t.device().index();
    if (device_ >= 0 && device != device_) return false;
    device_ = device;
    const auto address = reinterpret_cast<uint64_t>(t.const_data_ptr());
    const int alignment = address == 0 ? 8 : std::min(std::countr_zero(address), 8);
    const auto sizes = t.sizes(), strides = t.strides();
    key_.push_back(static_cast<int64_t>(t.scalar_type()) | int64_t{device} << 8 | int64_t{alignment} << 24 |
                   static_cast<int64_t>(sizes.size()) << 32);
    key_.insert(key_.end(), sizes.begin(), sizes.end());
    key_.insert(key_.end(), strides.begin(), strides.end());
    tensors_.push_back(&t);
    addresses_.push_back(address);
    return true;
  }
  // The bits of a number, of which `kind` and bits are in the key unless it is open.
  void read(int64_t kind, uint64_t bits, bool is_open) {
    key_.push_back(is_open ? kOpen : kind);
    if (!is_open) key_.push_back(static_cast<int64_t>(bits));
    scalars_.push_back(bits);
  }
  // Kinds of numbers in a key; tensors begin with a number from 0 on.
  static constexpr int64_t kWhole = -1, kReal = -2, kTruth = -3;
  bool has_device() const { return device_ >= 0; }
  int device() const { return device_; }
  const at::Tensor& tensor(size_t i) const { return *tensors_[i]; }
  // The dtype of argument i if it is a number that may change from call to call, else null.
  const Dtype* open_dtype(size_t i) const { return i < open_.size() && open_[i] ? &*open_[i] : nullptr; }

  // -- calls. The call for the arguments that were read; null if none serves them.
  const Entry* find() {
    const Entry* entry = last_entry_ != nullptr && key_ == *last_key_ ? last_entry_ : look_up();
    if (entry != nullptr && *entry->call->is_stale) {
      clear();
      entry = nullptr;
    }
    if (entry != nullptr && (!entry->call->serves(addresses_.data()) || overwrites_lazy_clone(*entry->call)))
      entry = nullptr;
    ++(entry == nullptr ? misses_ : hits_);
    return entry;
  }
  // Makes room for a call. False if inputs of its kind never have a fast call.
  bool accept(const FastCall& call) {
    for (const FastTensor& t : call.outputs)
      if (scalar_type(t.dtype) == c10::ScalarType::Undefined) return false;
    if (!calls_.empty() && *calls_.begin()->second.call->is_stale) clear();
    if (calls_.empty()) open_ = call.open_scalars;
    return open_ == call.open_scalars;
  }
  // Keeps an accepted call for the arguments that were read.
  void add(Entry made) {
    if (calls_.size() >= kMostCalls) forget_oldest();
    calls_.insert_or_assign(key_, std::move(made));
    last_entry_ = nullptr;
  }
  void clear() {
    last_entry_ = nullptr;
    calls_.clear();
  }

  // Allocates the outputs and starts the work.
  std::vector<at::Tensor> run(const Entry& entry, void* stream) {
    const FastCall& call = *entry.call;
    const auto device = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device_));
    std::vector<at::Tensor> outputs;
    outputs.reserve(call.outputs.size());
    outputs_.clear();
    made_.assign(call.outputs.size(), nullptr);
    for (const FastTensor& t : call.outputs) {
      if (t.is_by_aten) {
        outputs.emplace_back();
        outputs_.push_back(0);
        continue;
      }
      outputs.push_back(at::empty_strided(t.shape, t.strides, at::TensorOptions(device).dtype(scalar_type(t.dtype))));
      outputs_.push_back(reinterpret_cast<uint64_t>(outputs.back().const_data_ptr()));
    }
    at::Tensor arena;
    if (call.arena_bytes > 0) arena = at::empty({call.arena_bytes}, at::TensorOptions(device).dtype(c10::kByte));
    call.start({.inputs = addresses_.data(),
                .outputs = outputs_.data(),
                .arena = arena.defined() ? reinterpret_cast<uint64_t>(arena.const_data_ptr()) : 0,
                .scalars = scalars_.data(),
                .stream = stream,
                .made = &made_});
    for (size_t i = 0; i < outputs.size(); ++i)
      if (call.outputs[i].is_by_aten)
        outputs[i] = as_normal(*static_cast<at::Tensor*>(made_[i].get()), scalar_type(call.outputs[i].dtype));
    made_.clear();
    for (size_t i = 0; i < call.overwritten.size(); ++i)
      if (call.overwritten[i] && !tensors_[i]->is_inference()) tensors_[i]->unsafeGetTensorImpl()->bump_version();
    return outputs;
  }

  uint64_t hits() const { return hits_; }
  uint64_t misses() const { return misses_; }
  size_t size() const { return calls_.size(); }

 private:
  static constexpr size_t kMostCalls = 4096;
  static constexpr int64_t kOpen = -4;

  const Entry* look_up() {
    const auto it = calls_.find(key_);
    if (it == calls_.end()) return nullptr;
    it->second.used = ++clock_;
    last_key_ = &it->first;
    last_entry_ = &it->second;
    return last_entry_;
  }

  void forget_oldest() {
    auto oldest = calls_.begin();
    for (auto it = calls_.begin(); it != calls_.end(); ++it)
      if (it->second.used < oldest->second.used) oldest = it;
    calls_.erase(oldest);
  }

  // A lazy clone gets memory of its own on the slower way, which asks for addresses to write to.
  bool overwrites_lazy_clone(const FastCall& call) const {
    for (size_t i = 0; i < call.overwritten.size(); ++i)
      if (call.overwritten[i] && is_cloned_lazily(*tensors_[i])) return true;
    return false;
  }

  std::unordered_map<std::vector<int64_t>, Entry, HashOfCallKey> calls_;
  std::vector<std::optional<Dtype>> open_;  // by argument, the same for all calls
  const std::vector<int64_t>* last_key_ = nullptr;
  const Entry* last_entry_ = nullptr;
  uint64_t clock_ = 0, hits_ = 0, misses_ = 0;
  // Parts of the call that runs. They are members so that a call allocates nothing.
  std::vector<int64_t> key_;
  std::vector<const at::Tensor*> tensors_;
  std::vector<uint64_t> addresses_, outputs_, scalars_;
  std::vector<std::shared_ptr<void>> made_;
  int device_ = -1;
};

}  // namespace fusebox
