// The extension `_fusebox_torch`: finds the fast call for the tensors of a call, lets PyTorch allocate its outputs on the
// current stream, and starts it. It is apart from `_fusebox`, which loads without PyTorch.
//
// Invariants: a call is found by everything that the work depends on: dtypes, device, sizes, strides, alignments, and
// numbers that are not open. All of it runs under Python's lock, so nothing here takes another one.
#include <bit>
#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/python_variable.h>

#include "replay/torch/call_table.h"

namespace fusebox::python {
namespace {

namespace py = pybind11;

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
    const Table::Entry* const entry = table_.find();
    if (entry == nullptr) return py::none();
    std::vector<at::Tensor> outputs = table_.run(*entry, current_stream(table_.device()));
    keep_last(inputs, *entry->call);
    PyObject* const result = PyList_New(static_cast<Py_ssize_t>(outputs.size()));
    if (result == nullptr) throw py::error_already_set();
    for (size_t i = 0; i < outputs.size(); ++i)
      PyList_SET_ITEM(result, static_cast<Py_ssize_t>(i), THPVariable_Wrap(std::move(outputs[i])));
    return py::reinterpret_steal<py::object>(result);
  }

  // Keeps a call for inputs like these. False if inputs of their kind never have a fast call.
  bool add(const py::list& inputs, const py::capsule& capsule) {
    const FastCall* const made = capsule.get_pointer<FastCall>();
    if (!table_.accept(*made) || !read(inputs)) return false;
    table_.add({capsule, made});
    return true;
  }

  void clear() {
    table_.clear();
    last_.clear();
  }

  // The inputs of the last call: a number itself, a tensor as a weak reference and its version.
  py::list last() const {
    py::list result;
    for (const auto& [reference, version] : last_) result.append(py::make_tuple(reference, version));
    return result;
  }
  py::tuple info() const { return py::make_tuple(table_.hits(), table_.misses(), table_.size()); }

 private:
  using Table = CallTable<py::capsule>;

  // False for inputs that only the slower way takes.
  bool read(const py::list& inputs) {
    table_.begin();
    const Py_ssize_t count = PyList_GET_SIZE(inputs.ptr());
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const o = PyList_GET_ITEM(inputs.ptr(), i);
      if (!(THPVariable_CheckExact(o) ? table_.read(THPVariable_Unpack(o)) : read_number(o, static_cast<size_t>(i))))
        return false;
    }
    return table_.has_device();
  }

  bool read_number(PyObject* o, size_t i) {
    const Dtype* const open = table_.open_dtype(i);
    const auto is_open = [&](Dtype d) { return open != nullptr && *open == d; };
    uint64_t bits = 0;
    int64_t kind = Table::kWhole;
    if (PyFloat_CheckExact(o)) {
      const double value = PyFloat_AS_DOUBLE(o);
      if (open != nullptr && !is_open(Dtype::kDouble) && !is_open(Dtype::kFloat)) return false;
      bits =
          is_open(Dtype::kFloat) ? std::bit_cast<uint32_t>(static_cast<float>(value)) : std::bit_cast<uint64_t>(value);
      kind = Table::kReal;
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
      kind = Table::kTruth;
    } else {
      return false;
    }
    table_.read(kind, bits, open != nullptr);
    return true;
  }

  // As in FusionDefinition.execute: the version before this call's outputs were stored over an input.
  void keep_last(const py::list& inputs, const FastCall& call) {
    last_.clear();
    size_t tensor = 0;
    for (const py::handle o : inputs) {
      if (!THPVariable_CheckExact(o.ptr())) {
        last_.emplace_back(py::reinterpret_borrow<py::object>(o), -1);
        continue;
      }
      const at::Tensor& t = table_.tensor(tensor);
      const bool was_written = call.overwritten[tensor++];
      if (t.is_inference()) {
        last_.emplace_back(py::reinterpret_borrow<py::object>(o), -1);
        continue;
      }
      const py::object reference = py::reinterpret_steal<py::object>(PyWeakref_NewRef(o.ptr(), nullptr));
      last_.emplace_back(reference, static_cast<int64_t>(t._version()) - (was_written ? 1 : 0));
    }
  }

  Table table_;
  std::vector<std::pair<py::object, int64_t>> last_;
};

// The tensor of an output that an ATen segment made.
py::object output_by_aten(const py::capsule& capsule) {
  const auto& keeper = *capsule.get_pointer<const std::shared_ptr<void>>();
  const at::Tensor& made = *static_cast<const at::Tensor*>(keeper.get());
  return py::reinterpret_steal<py::object>(THPVariable_Wrap(as_normal(made, made.scalar_type())));
}

}  // namespace

PYBIND11_MODULE(_fusebox_torch, m) {
  m.def("output_by_aten", &output_by_aten);
  py::class_<Calls>(m, "Calls")
      .def(py::init<>())
      .def("call", &Calls::call)
      .def("add", &Calls::add)
      .def("clear", &Calls::clear)
      .def("last", &Calls::last)
      .def("info", &Calls::info);
}

}  // namespace fusebox::python
