// Hands an output's memory to PyTorch without a copy, by DLPack (https://dmlc.github.io/dlpack), whose C structs are
// declared here. The capsule holds the whole storage as bytes, and Python adds dtype, shape and strides. So dtypes that
// DLPack lacks work too.
#include "replay/python/program.h"

namespace fusebox::python {
namespace {

struct DLDevice {
  int32_t device_type;  // 1 CPU, 2 CUDA
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;  // 1 unsigned integer
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

struct Holder {
  DLManagedTensor managed{};
  RunTensor tensor;  // keeps the memory
  int64_t bytes = 0;
  int64_t stride = 1;
};

void release(DLManagedTensor* m) { delete static_cast<Holder*>(m->manager_ctx); }

}  // namespace

py::capsule storage_capsule(const RunTensor& t, int ordinal) {
  auto* h = new Holder;
  h->tensor = t;
  h->bytes = span_elems(t.layout.shape, t.layout.strides) * size_bytes(t.layout.dtype);
  void* data = ordinal >= 0 ? reinterpret_cast<void*>(t.pointer) : static_cast<void*>(t.layout.data());
  h->managed.dl_tensor = {data, {ordinal >= 0 ? 2 : 1, std::max(ordinal, 0)}, 1, {1, 8, 1}, &h->bytes, &h->stride, 0};
  h->managed.manager_ctx = h;
  h->managed.deleter = release;
  return py::capsule(&h->managed, "dltensor", [](PyObject* capsule) {
    // A capsule that was taken has another name, and its taker releases it.
    if (PyCapsule_IsValid(capsule, "dltensor") != 0)
      release(static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor")));
  });
}

}  // namespace fusebox::python
