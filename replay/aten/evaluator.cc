// Walks the graph: takes arguments in, evaluates ops in order, gives results out. It has the module's entry point.
#include "replay/aten/evaluator.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <algorithm>
#include <memory>
#include <torch/version.h>

#include "ir/domain/domain.h"
#include "ir/infer/bind.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "replay/aten/failures.h"
#include "replay/aten/scalar_type.h"
#include "replay/aten/segment.h"

namespace fusebox::aten {

at::ScalarType storage_type(Dtype dtype) {
  if (dtype == Dtype::kUint64) return at::kLong;  // carried as int64 of the same bits
  const at::ScalarType type = scalar_type(dtype);
  return type == at::ScalarType::Undefined || dtype == Dtype::kFloat8E8m0 ? at::kByte : type;
}

namespace {

// A view of the tensor's memory, which the result keeps alive.
TensorData shared(const at::Tensor& t, Dtype dtype) {
  auto owner = std::make_shared<at::Tensor>(t);
  return external_tensor(dtype, t.data_ptr(), t.sizes().vec(), t.strides().vec(), owner);
}

}  // namespace

Carrier carrier_of(Dtype dtype) {
  if (is_storage_only(dtype)) return Carrier::kBytes;
  if (is_complex(dtype)) return Carrier::kComplex;
  return is_floating(dtype) ? Carrier::kReal : Carrier::kInteger;
}

at::ScalarType carrier_type(Dtype dtype) {
  switch (carrier_of(dtype)) {
    case Carrier::kReal:
      return at::kDouble;
    case Carrier::kComplex:
      return at::kComplexDouble;
    case Carrier::kInteger:
    case Carrier::kBytes:
      break;
  }
  return at::kLong;
}

std::span<const ValueId> operands_in(const Op& op, size_t slot) {
  const auto ranges = slot_ranges(*row_of(op.kind).format, op.operands.size());
  check_internal(ranges.has_value(), "operands do not fit the op's format");
  return std::span(op.operands).subspan((*ranges)[slot].begin, (*ranges)[slot].count);
}

std::vector<BoundInput> as_declared(const Graph& g, std::span<const BoundInput> given) {
  std::vector<BoundInput> all(given.begin(), given.end());
  const std::vector<ValueId> wanted = inputs(g);
  for (size_t i = 0; i < all.size() && i < wanted.size(); ++i) {
    if (all[i].is_scalar || !g.is_tensor(wanted[i])) continue;
    const Tensor& t = g.tensor_of(wanted[i]);
    const auto logical = logical_without_reductions(g, t);
    if (logical.size() != all[i].shape.size()) continue;  // binding refuses it
    all[i].strides.assign(logical.size(), 0);
    int64_t step = 1;
    const auto layout = allocation_of(g, t);
    for (size_t k = layout.size(); k-- > 0;) {
      const size_t axis = position_in(logical, layout[k]);
      if (axis == logical.size() || g[layout[k]].iter_type == IterType::kBroadcast) continue;
      all[i].strides[axis] = step;
      if (__builtin_mul_overflow(step, std::max<int64_t>(all[i].shape[axis], 1), &step)) step = 1;
    }
  }
  return all;
}

Evaluator::Evaluator(const Graph& g, std::span<const Argument> inputs, const EvaluateOptions& options)
    : g_(g), inputs_(inputs), options_(options), values_(g.values.size()) {
  if (g.level != Level::kMath && g.level != Level::kScheduled)
    throw Error(ErrorCode::kWrongLevel,
                "the reference evaluates fusions; give the fusion that this program was made from", "@" + g.name);
  bindings_ = bind_sizes(g, as_declared(g, bound_inputs(inputs)));
}

Evaluator::Evaluator(const Graph& g, Bindings bindings, const EvaluateOptions& options)
    : g_(g), options_(options), bindings_(std::move(bindings)), values_(g.values.size()) {}

bool Evaluator::is_by_cuda(const Op& op) const {
  // The steps of which a random number is made are no ops of the fusion, and have no results.
  return !options_.by_cuda.empty() && !op.results.empty() &&
         std::ranges::count(options_.by_cuda, g_[op.results[0]].name) > 0;
}

Carried Evaluator::take(const Argument& argument) const {
  Carried c;
  c.dtype = argument.dtype;
  if (argument.is_scalar) {
    switch (carrier_of(argument.dtype)) {
      case Carrier::kReal:
        c.value = at::scalar_tensor(to_double(argument.dtype, argument.bits), at::kDouble);
        break;
      case Carrier::kComplex: {
        const auto z = to_complex(argument.dtype, argument.bits);
        c.value = at::scalar_tensor(c10::complex<double>(z.real(), z.imag()), at::kComplexDouble);
        break;
      }
      case Carrier::kInteger:
      case Carrier::kBytes:
        c.value = at::scalar_tensor(static_cast<int64_t>(argument.bits.low), at::kLong);
        break;
    }
    return c;
  }
  const TensorData& t = argument.tensor;
  const at::Tensor seen = at::from_blob(t.data(), t.shape, t.strides, at::TensorOptions(storage_type(t.dtype)));
  // Without a conversion this is a view, not a copy: nobody writes to it.
  c.value = seen.to(carrier_type(t.dtype));
  return c;
}

Evaluated Evaluator::give(ValueId v, const Carried& c) const {
  Evaluated e;
  e.name = g_[v].name;
  e.dtype = c.dtype;
  e.is_scalar = !g_.is_tensor(v);
  at::Tensor value = c.value;
  Dtype as = Dtype::kDouble;
  switch (carrier_of(c.dtype)) {
    case Carrier::kReal:
      break;
    case Carrier::kComplex:
      as = Dtype::kComplexDouble;
      value = value.resolve_conj().resolve_neg();
      break;
    case Carrier::kInteger:
      as = c.dtype == Dtype::kUint64 ? Dtype::kUint64 : Dtype::kInt64;
      break;
    case Carrier::kBytes:
      as = Dtype::kUint8;
      value = value.to(at::kByte);
      break;
  }
  // A result must not share the caller's memory, as an input that is passed through would.
  for (const Argument& a : inputs_)
    if (!a.is_scalar && value.data_ptr() >= static_cast<void*>(a.tensor.storage.get()) &&
        value.data_ptr() < static_cast<void*>(a.tensor.storage.get() + a.tensor.storage_elems * size_bytes(a.dtype))) {
      value = value.clone();
      break;
    }
  e.reference = shared(value, as);
  if (!c.exact()) check_internal(c.bound.scalar_type() == at::kDouble, "a bound is no double");
  if (!c.exact())
    e.bound = shared(c.bound.sizes() == value.sizes() ? c.bound : c.bound.expand(value.sizes()), Dtype::kDouble);
  return e;
}

Carried Evaluator::carried(ValueId v) {
  auto& known = values_[v.index];
  if (known) return *known;
  const Value& value = g_[v];
  const auto bits = value.constant                                                   ? value.constant
                    : v.index < bindings_.size() && value.kind == ValueKind::kScalar ? bindings_[v.index]
                                                                                     : std::nullopt;
  if (!bits)
    throw Error(ErrorCode::kInvalidGraph, "a value is used before it is known; verify the program", "%" + value.name);
  known = take(Argument::scalar(value.dtype, *bits));
  return *known;
}

int64_t Evaluator::integer(ValueId v) {
  // Beside a jump the reference cannot know the number. Shapes follow the number that was bound.
  const bool is_free = values_[v.index] && !values_[v.index]->exact();
  if (const auto n = is_free ? fusebox::evaluate_integer(g_, v, bindings_) : std::nullopt) return *n;
  const Carried c = carried(v);
  const bool is_known = c.exact() || (c.bound.numel() == 1 && c.bound.item<double>() == 0);
  if (carrier_of(c.dtype) != Carrier::kInteger || c.value.numel() != 1 || !is_known)
    throw Error(ErrorCode::kBadInput, "an extent, start or diagonal is no number that is known; give it as an integer",
                "%" + g_[v].name);
  return c.value.item<int64_t>();
}

std::vector<int64_t> Evaluator::integers(const Op& op, size_t slot) {
  std::vector<int64_t> list;
  for (const ValueId v : operands_in(op, slot)) list.push_back(integer(v));
  return list;
}

void Evaluator::evaluate(OpId id) {
  const Op& op = g_[id];
  // What has no result, such as a fact of a schedule, changes no value.
  if (op.kind == OpKind::kInput || op.kind == OpKind::kSize || op.results.empty()) return;
  const ValueId result = op.results.at(0);
  const Dtype declared = g_[result].dtype;
  std::optional<Carried> made;
  switch (op.kind) {
    case FUSEBOX_MOMENT_OPS:
    case FUSEBOX_LIBRARY_OPS: {
      std::vector<Carried> made_here = is_moment(op.kind) ? moments(op) : library(op);
      check_internal(made_here.size() == op.results.size(), "an op gives another number of results");
      for (size_t k = 0; k < made_here.size(); ++k) values_[op.results[k].index] = std::move(made_here[k]);
      return;
    }
    case OpKind::kFull:
      made = full(op, declared);
      break;
    case OpKind::kIota:
      made = iota(op, declared);
      break;
    case FUSEBOX_RANDOM_OPS:
      made = random(op, declared);
      break;
    case OpKind::kPad:
      made = pad(op, carried(op.operands[0]));
      break;
    case OpKind::kCat:
      made = concatenate(op, declared);
      break;
    case OpKind::kScatter:
      made = scatter(op);
      break;
    case OpKind::kTriu:
      made = upper_triangle(op, carried(op.operands[0]));
      break;
    case FUSEBOX_REDUCTION_OPS:
      made = reduce(op, declared, carried(op.operands[0]));
      break;
    case FUSEBOX_VIEW_OPS:
      made = metadata(op, carried(op.operands[0]));
      break;
    case FUSEBOX_INDEXED_OPS:
      made = indexed(op);
      break;
    case FUSEBOX_SCALAR_OPS: {
      std::vector<Carried> operands;
      for (ValueId v : op.operands) operands.push_back(carried(v));
      made = pointwise(op, declared, std::move(operands));
      break;
    }
    case FUSEBOX_STATEMENT_OPS:
      throw Error(ErrorCode::kUnsupportedOp, std::string(row_of(op.kind).text) + " has no reference",
                  "%" + g_[result].name);
  }
  values_[result.index] = std::move(*made);
}

// By op: whether an output or one of these values is made of what it makes. No executor runs the other ops. Where sizes
// decide which axes stretch, one of these may not even fit its operands.
std::vector<bool> Evaluator::needed_ops(std::span<const ValueId> asked) const {
  std::vector<bool> is_read(g_.values.size()), is_needed(g_.ops.size());
  for (ValueId v : asked) is_read[v.index] = true;
  const auto& body = g_[Graph::body()].ops;
  for (size_t i = body.size(); i-- > 0;) {
    const Op& op = g_[body[i]];
    const bool makes_tensors = !op.results.empty() && g_.is_tensor(op.results[0]);
    is_needed[body[i].index] =
        !makes_tensors || std::ranges::any_of(op.results, [&](ValueId v) { return is_read[v.index]; });
    if (!is_needed[body[i].index]) continue;
    for (ValueId v : op.operands)
      if (v) is_read[v.index] = true;
  }
  return is_needed;
}

Evaluation Evaluator::run() {
  // An input is taken when its first reader comes, and a value is dropped after its last one, so that large programs
  // fit.
  const std::vector<ValueId> parameters = fusebox::inputs(g_);
  const std::vector<OutputRef> results = fusebox::outputs(g_);
  std::vector<int64_t> left(g_.values.size(), 0);
  for (OpId id : g_[Graph::body()].ops)
    for (ValueId v : g_[id].operands)
      if (v) ++left[v.index];
  std::vector<ValueId> asked;
  for (const std::string& name : options_.intermediates) {
    const auto v = find_value(g_, name);
    if (!v)
      throw Error(ErrorCode::kUnknownName, "the program has no value of this name; take one that it prints",
                  "%" + name);
    asked.push_back(*v);
    ++left[v->index];
  }
  std::vector<uint32_t> parameter_of(g_.values.size(), UINT32_MAX);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Value& p = g_[parameters[i]];
    if (inputs_[i].dtype != p.dtype || inputs_[i].is_scalar != (p.kind == ValueKind::kScalar))
      throw Error(ErrorCode::kBadInput,
                  "the program takes " + std::string(text(p.dtype)) + " here, not " +
                      std::string(text(inputs_[i].dtype)) + "; give an input of its dtype",
                  "%" + p.name);
    parameter_of[parameters[i].index] = static_cast<uint32_t>(i);
  }
  const auto fetch = [&](ValueId v) {
    if (v && !values_[v.index] && parameter_of[v.index] != UINT32_MAX)
      values_[v.index] = take(inputs_[parameter_of[v.index]]);
  };
  Evaluation e;
  std::vector<int64_t> own(g_.values.size(), 0);
  const std::vector<bool> is_needed = needed_ops(asked);
  for (OpId id : g_[Graph::body()].ops) {
    const Op& op = g_[id];
    if (op.kind == OpKind::kOutput || !is_needed[id.index]) continue;
    if (demands(op.kind, kReduction) && !op_transforms(g_, g_.tensor_of(op.results[0])).empty())
      throw Error(ErrorCode::kUnsupportedOp,
                  "ATen has no op for a stage of a reduction; compare the program that the schedule was made from",
                  "%" + g_[op.results[0]].name);
    for (ValueId v : op.operands) fetch(v);
    const int64_t before = ambiguous_;
    evaluate(id);
    for (ValueId v : op.results) {
      own[v.index] = ambiguous_ - before;
      if (left[v.index] == 0) values_[v.index].reset();
    }
    for (ValueId v : op.operands)
      if (v && --left[v.index] == 0) values_[v.index].reset();
  }
  const auto finished = [&](ValueId v) {
    fetch(v);
    Evaluated r = give(v, carried(v));
    r.ambiguous = own[v.index];
    return r;
  };
  for (const OutputRef& o : results) e.outputs.push_back(finished(o.value));
  for (ValueId v : asked) e.intermediates.push_back(finished(v));
  e.ambiguous = ambiguous_;
  return e;
}

namespace {

class Module final : public AtenApi {
 public:
  Evaluation evaluate(const Graph& fusion, std::span<const Argument> inputs,
                      const EvaluateOptions& options) const override {
    const c10::InferenceMode no_gradients;
    use_threads(std::any_of(inputs.begin(), inputs.end(), [](const Argument& a) {
      return !a.is_scalar && element_count(a.tensor.shape) >= kManyElements;
    }));
    constexpr FailureWords kEvaluating{"the reference of this program", ErrorCode::kInternal,
                                       "ATen refused an op of the reference: ", ""};
    return with_coded_failures("@" + fusion.name, kEvaluating,
                               [&] { return Evaluator(fusion, inputs, options).run(); });
  }
  std::vector<AtenValue> run(const Graph& segment, std::span<const AtenValue> given, const AtenPlace& place,
                             const ProductCall* call) const override {
    if (place.is_gpu) return run_segment(segment, given, place, call);
    const int before = at::get_num_threads();
    use_threads(std::any_of(given.begin(), given.end(), [](const AtenValue& v) {
      return !v.is_scalar && element_count(v.layout.shape) >= kManyElements;
    }));
    const auto restore = std::shared_ptr<void>(nullptr, [before](void*) { at::set_num_threads(before); });
    return run_segment(segment, given, place, call);
  }
  std::vector<TensorLayout> infer(const Graph& segment, std::span<const BoundInput> given,
                                  const ProductCall* call) const override {
    return infer_segment(segment, given, call);
  }
  std::vector<std::string> referred(const Graph& segment, std::span<const BoundInput> given) const override {
    return referred_values(segment, given);
  }
  AtenValue copied(const AtenValue& from, std::span<const int64_t> strides, const AtenPlace& place) const override {
    return copied_tensor(from, strides, place);
  }
  bool has_gpu() const override { return can_use_gpu(); }
  std::string version() const override { return TORCH_VERSION; }

 private:
  static constexpr int64_t kManyElements = int64_t{1} << 20;

  // Small programs use one thread: threads that wait for the next op would only keep cores busy.
  static void use_threads(bool is_large) {
    static const int all_threads = at::get_num_threads();
    at::set_num_threads(is_large ? all_threads : 1);
  }
};

}  // namespace
}  // namespace fusebox::aten

extern "C" __attribute__((visibility("default"))) const fusebox::AtenApi* fusebox_aten() {
  static const fusebox::aten::Module module;
  return &module;
}
