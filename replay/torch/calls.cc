// The extension `_fusebox_torch`: finds the fast call for the tensors of a call, lets PyTorch allocate its outputs on the
// current stream, and starts it. It is apart from `_fusebox`, which loads without PyTorch.
//
// Invariants: a call is found by everything that the work depends on: dtypes, device, sizes, strides, alignments, and
// numbers that are not open. All of it runs under Python's lock, so nothing here takes another one.
#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>
#include <bit>
#include <c10/core/Device.h>
#include <cstring>
#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/python_variable.h>
#include <unordered_map>

#include "replay/aten/scalar_type.h"
#include "replay/run/fast_call.h"

namespace fusebox::python {
namespace {

namespace py = pybind11;

struct HashOfKey {
  size_t operator()(const std::vector<int64_t>& key) const {
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (int64_t v : key) {
      h = (h ^ static_cast<uint64_t>(v)) * 0xff51afd7ed558ccdu;
      h ^= h >> 32;
    }
    return static_cast<size_t>(h);
  }
};

// The current stream of a device, by PyTorch's own function.
void* current_stream(int device) {
  static PyObject* const function =
      py::object(py::module_::import("torch._C").attr("_cuda_getCurrentRawStream")).release().ptr();
  const py::object index = py::reinterpret_steal<py::object>(PyLong_FromLong(device));
  const py::object raw = py::reinterpret_steal<py::object>(PyObject_CallOneArg(function, index.ptr()));
  if (!raw) throw py::error_already_set();
  return PyLong_AsVoidPtr(raw.ptr());
}

class Calls {
 public:
  // The outputs, or None if no known call serves these inputs.
  py::object call(const py::list& inputs) {
    if (!read(inputs)) return py::none();
    const Entry* entry = last_entry_ != nullptr && key_ == *last_key_ ? last_entry_ : find();
    if (entry != nullptr && *entry->call->is_stale) {
      clear();
      entry = nullptr;
    }
    if (entry != nullptr && !entry->call->serves(addresses_.data())) entry = nullptr;
    if (entry == nullptr) {
      ++misses_;
      return py::none();
    }
    ++hits_;
    return run(*entry, inputs);
  }

  // Keeps a call for inputs like these. False if inputs of their kind never have a fast call.
  bool add(const py::list& inputs, const py::capsule& capsule) {
    Entry made;
    made.capsule = capsule;
    made.call = capsule.get_pointer<FastCall>();
    for (const FastTensor& t : made.call->outputs)
      if (scalar_type(t.dtype) == c10::ScalarType::Undefined) return false;
    if (!calls_.empty() && *calls_.begin()->second.call->is_stale) clear();
    if (calls_.empty())
      open_ = made.call->open_scalars;
    else if (open_ != made.call->open_scalars)
      return false;
    if (!read(inputs)) return false;
    if (calls_.size() >= kMostCalls) forget_oldest();
    calls_.insert_or_assign(key_, std::move(made));
    last_entry_ = nullptr;
    return true;
  }

  void clear() {
    last_entry_ = nullptr;
    calls_.clear();
    last_.clear();
  }

  // The inputs of the last call: a number itself, a tensor as a weak reference and its version.
  py::list last() const {
    py::list result;
    for (const auto& [reference, version] : last_) result.append(py::make_tuple(reference, version));
    return result;
  }
  py::tuple info() const { return py::make_tuple(hits_, misses_, calls_.size()); }

 private:
  static constexpr size_t kMostCalls = 4096;
  // Numbers in a key; tensors begin with a number from 0 on.
  static constexpr int64_t kWhole = -1, kReal = -2, kTruth = -3, kOpen = -4;
  struct Entry {
    py::capsule capsule;
    const FastCall* call = nullptr;
    uint64_t used = 0;
  };

  // Fills in key_, tensors_ and scalars_. False for inputs that only the slower way takes.
  bool read(const py::list& inputs) {
    key_.clear();
    tensors_.clear();
    addresses_.clear();
    scalars_.clear();
    device_ = -1;
    const Py_ssize_t count = PyList_GET_SIZE(inputs.ptr());
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const o = PyList_GET_ITEM(inputs.ptr(), i);
      scalars_.push_back(0);
      if (!(THPVariable_CheckExact(o) ? read_tensor(THPVariable_Unpack(o)) : read_number(o, static_cast<size_t>(i))))
        return false;
    }
    return device_ >= 0;
  }

  bool read_tensor(const at::Tensor& t) {
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

  bool read_number(PyObject* o, size_t i) {
    const Dtype* const open = i < open_.size() && open_[i] ? &*open_[i] : nullptr;
    const auto is_open = [&](Dtype d) { return open != nullptr && *open == d; };
    uint64_t bits = 0;
    int64_t kind = kWhole;
    if (PyFloat_CheckExact(o)) {
      const double value = PyFloat_AS_DOUBLE(o);
      if (open != nullptr && !is_open(Dtype::kDouble) && !is_open(Dtype::kFloat)) return false;
      bits =
          is_open(Dtype::kFloat) ? std::bit_cast<uint32_t>(static_cast<float>(value)) : std::bit_cast<uint64_t>(value);
      kind = kReal;
    } else if (PyLong_CheckExact(o)) {
      int overflow = 0;
      const int64_t value = PyLong_AsLongLongAndOverflow(o, &overflow);
      if (overflow != 0) return false;
      bits = static_cast<uint64_t>(value);
      if (is_open(Dtype::kFloat)) bits = std::bit_cast<uint32_t>(static_cast<float>(value));
      if (is_open(Dtype::kDouble)) bits = std::bit_cast<uint64_t>(static_cast<double>(value));
      if (is_open(Dtype::kInt32) && static_cast<int32_t>(value) != value) return false;
    } else if (PyBool_Check(o) && open == nullptr) {
      bits = o == Py_True ? 1 : 0;
      kind = kTruth;
    } else {
      return false;
    }
    key_.push_back(open != nullptr ? kOpen : kind);
    if (open == nullptr) key_.push_back(static_cast<int64_t>(bits));
    scalars_.back() = bits;
    return true;
  }

  const Entry* find() {
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

  py::object run(const Entry& entry, const py::list& inputs) {
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
                .stream = current_stream(device_),
                .made = &made_});
    for (size_t i = 0; i < outputs.size(); ++i)
      if (call.outputs[i].is_by_aten)
        outputs[i] = as_declared(*static_cast<at::Tensor*>(made_[i].get()), call.outputs[i]);
    made_.clear();
    for (size_t i = 0; i < call.overwritten.size(); ++i)
      if (call.overwritten[i] && !tensors_[i]->is_inference()) tensors_[i]->unsafeGetTensorImpl()->bump_version();
    keep_last(inputs);
    PyObject* const result = PyList_New(static_cast<Py_ssize_t>(outputs.size()));
    if (result == nullptr) throw py::error_already_set();
    for (size_t i = 0; i < outputs.size(); ++i)
      PyList_SET_ITEM(result, static_cast<Py_ssize_t>(i), THPVariable_Wrap(std::move(outputs[i])));
    return py::reinterpret_steal<py::object>(result);
  }

  // ATen keeps some dtypes as another one of the same size.
  static at::Tensor as_declared(const at::Tensor& t, const FastTensor& declared) {
    const c10::ScalarType type = scalar_type(declared.dtype);
    at::Tensor normal = t.is_inference()
                            ? at::from_blob(
                                  t.data_ptr(), t.sizes(), t.strides(), [t](void*) {}, t.options(), t.device())
                            : t;
    return normal.scalar_type() == type ? normal : normal.view(type);
  }

  // As in FusionDefinition.execute: the version before this call's outputs were stored over an input.
  void keep_last(const py::list& inputs) {
    last_.clear();
    size_t tensor = 0;
    for (const py::handle o : inputs) {
      if (!THPVariable_CheckExact(o.ptr())) {
        last_.emplace_back(py::reinterpret_borrow<py::object>(o), -1);
        continue;
      }
      const at::Tensor& t = *tensors_[tensor];
      const bool was_written = call_overwrites(tensor++);
      if (t.is_inference()) {
        last_.emplace_back(py::reinterpret_borrow<py::object>(o), -1);
        continue;
      }
      const py::object reference = py::reinterpret_steal<py::object>(PyWeakref_NewRef(o.ptr(), nullptr));
      last_.emplace_back(reference, static_cast<int64_t>(t._version()) - (was_written ? 1 : 0));
    }
  }
  bool call_overwrites(size_t tensor) const { return last_entry_->call->overwritten[tensor]; }

  std::unordered_map<std::vector<int64_t>, Entry, HashOfKey> calls_;
  std::vector<std::optional<Dtype>> open_;  // by argument, the same for all calls
  const std::vector<int64_t>* last_key_ = nullptr;
  const Entry* last_entry_ = nullptr;
  uint64_t clock_ = 0, hits_ = 0, misses_ = 0;
  // Buffers of the call that runs. They are kept so that a call allocates nothing.
  std::vector<int64_t> key_;
  std::vector<const at::Tensor*> tensors_;
  std::vector<uint64_t> addresses_, outputs_, scalars_;
  std::vector<std::shared_ptr<void>> made_;
  int device_ = -1;
  std::vector<std::pair<py::object, int64_t>> last_;
};

}  // namespace

PYBIND11_MODULE(_fusebox_torch, m) {
  py::class_<Calls>(m, "Calls")
      .def(py::init<>())
      .def("call", &Calls::call)
      .def("add", &Calls::add)
      .def("clear", &Calls::clear)
      .def("last", &Calls::last)
      .def("info", &Calls::info);
}

}  // namespace fusebox::python
