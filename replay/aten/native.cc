#include "replay/aten/native.h"

#include <ATen/EmptyTensor.h>
#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/table/families.h"

namespace fusebox::aten {

at::ScalarType native_type(Dtype dtype) {
  if (dtype == Dtype::kUint16) return at::kShort;
  if (dtype == Dtype::kUint32) return at::kInt;
  if (dtype == Dtype::kFloat8E4m3 || dtype == Dtype::kFloat8E5m2) return at::kByte;
  return storage_type(dtype);  // any other: what the reference keeps it in
}

namespace {

const EvaluateOptions kValuesAlone{.bounds = false, .intermediates = {}};

}  // namespace

Native::Native(const Graph& form, std::span<const BoundInput> given, at::Device device)
    : g_(form), device_(device), bindings_(bind_sizes(form, as_declared(form, given))), values_(form.values.size()) {
  reference_.emplace(form, bindings_, kValuesAlone);
}

int64_t Native::integer(ValueId v) const {
  if (const auto n = fusebox::evaluate_integer(g_, v, bindings_)) return *n;
  throw Error(ErrorCode::kBadInput, "an extent, start or diagonal is no number that is known; give it as an integer",
              "%" + g_[v].name);
}

std::vector<int64_t> Native::integers(const Op& op, size_t slot) const {
  std::vector<int64_t> list;
  for (const ValueId v : operands_in(op, slot)) list.push_back(integer(v));
  return list;
}

std::vector<int64_t> Native::declared_shape(ValueId v) const {
  std::vector<int64_t> shape;
  for (DomainId d : logical_without_reductions(g_, g_.tensor_of(v))) {
    const auto size = evaluate_size(g_, d, bindings_);
    if (!size)
      throw Error(ErrorCode::kNoLayout, "an extent of an ATen segment is not known before the run; run it in a kernel",
                  "%" + g_[v].name);
    shape.push_back(*size);
  }
  return shape;
}

std::optional<std::vector<at::Tensor>> Native::native(const Op& op) {
  at::Tensor made;
  switch (op.kind) {
    case FUSEBOX_SCALAR_OPS:
      made = pointwise(op);
      break;
    case FUSEBOX_REDUCTION_OPS:
      made = reduce(op);
      break;
    case FUSEBOX_VIEW_OPS:
      made = view(op);
      break;
    case FUSEBOX_INDEXED_OPS:
    case OpKind::kScatter:
      made = indexed(op);
      break;
    case OpKind::kFull:
    case OpKind::kIota:
    case OpKind::kTriu:
    case OpKind::kCat:
    case OpKind::kPad:
      made = placing(op);
      break;
    case FUSEBOX_MOMENT_OPS:
    case FUSEBOX_LIBRARY_OPS:
      return library(op);
    default:  // any other: the reference computes it
      break;
  }
  if (!made.defined()) return std::nullopt;
  return std::vector<at::Tensor>{std::move(made)};
}

std::vector<at::Tensor> Native::by_reference(OpId id) {
  const Op& op = g_[id];
  std::vector<at::Tensor> results;
  if (is_meta()) {
    for (ValueId v : op.results) results.push_back(dense(declared_shape(v), native_type(dtype(v))));
    return results;
  }
  for (ValueId v : op.operands) {
    if (!v || !g_.is_tensor(v)) continue;
    Carried c;
    c.dtype = dtype(v);
    c.value = values_[v.index].to(at::kCPU).view(storage_type(c.dtype)).to(carrier_type(c.dtype));
    reference_->values_[v.index] = std::move(c);
  }
  reference_->evaluate(id);
  for (ValueId v : op.results) {
    at::Tensor value = reference_->values_[v.index]->value;
    if (value.is_complex()) value = value.resolve_conj().resolve_neg();
    // The value is rounded already, so the conversion is exact.
    results.push_back(
        value.to(storage_type(dtype(v))).contiguous().view(native_type(dtype(v))).to(device_, /*non_blocking=*/false));
    reference_->values_[v.index].reset();
  }
  for (ValueId v : op.operands)
    if (v && g_.is_tensor(v)) reference_->values_[v.index].reset();
  return results;
}

// Binding computes the scalars that shapes need. The reference computes the others.
void Native::bind_scalars(OpId id) {
  for (ValueId v : g_[id].results) {
    if (g_[v].constant || bindings_[v.index]) continue;
    if (!reference_->values_[v.index]) reference_->evaluate(id);
    const at::Tensor value = reference_->values_[v.index]->value;
    const Dtype d = dtype(v);
    if (is_complex(d))
      bindings_[v.index] = from_complex(d, static_cast<std::complex<double>>(value.item<c10::complex<double>>()));
    else if (is_floating(d))
      bindings_[v.index] = from_double(d, value.item<double>());
    else
      bindings_[v.index] = from_int64(d, value.item<int64_t>());
  }
}

void Native::run(const ProductCall* call) {
  if (call) return run_call(*call);
  std::vector<int64_t> left(g_.values.size(), 0);
  for (OpId id : g_[Graph::body()].ops)
    for (ValueId v : g_[id].operands)
      if (v) ++left[v.index];
  for (OpId id : g_[Graph::body()].ops) {
    const Op& op = g_[id];
    if (op.kind == OpKind::kInput || op.kind == OpKind::kSize || op.kind == OpKind::kOutput) continue;
    if (op.results.empty()) continue;
    if (!g_.is_tensor(op.results[0])) {
      if (!is_meta()) bind_scalars(id);
      continue;
    }
    std::optional<std::vector<at::Tensor>> made = native(op);
    if (!made) {
      made = by_reference(id);
      referred_.push_back(op.results[0]);
    }
    for (size_t i = 0; i < op.results.size(); ++i) values_[op.results[i].index] = std::move((*made)[i]);
    // A value goes after its last reader; outputs count as readers.
    for (ValueId v : op.operands)
      if (v && --left[v.index] == 0) values_[v.index] = at::Tensor();
  }
}

}  // namespace fusebox::aten
