// Binds a program's sizes to its inputs.
#include <algorithm>
#include <numeric>

#include "ir/infer/bind.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"

namespace fusebox {
namespace {

class Binder {
 public:
  Binder(const Graph& g, std::span<const BoundInput> given) : g_(g), given_(given), bindings_(g.values.size()) {}

  Bindings run() {
    const auto parameters = inputs(g_);
    if (given_.size() < parameters.size())
      throw Error(ErrorCode::kMissingInput, "this input is not given", name(parameters[given_.size()]));
    if (given_.size() > parameters.size())
      throw Error(ErrorCode::kBadInput, std::to_string(given_.size()) + " inputs are given to a program that takes " +
                                            std::to_string(parameters.size()));
    for (size_t i = 0; i < parameters.size(); ++i) bind_input(parameters[i], given_[i]);
    bind_scalars();
    for (const Deferred& d : deferred_) check_deferred(d);
    for (size_t i = 0; i < parameters.size(); ++i)
      if (g_.is_tensor(parameters[i])) check_strides(parameters[i], given_[i]);
    for (const OutputRef& out : outputs(g_)) {
      const size_t i = static_cast<size_t>(std::ranges::find(parameters, out.alias) - parameters.begin());
      if (i < parameters.size() && !given_[i].strides.empty() && meets_itself(given_[i].shape, given_[i].strides))
        throw Error(ErrorCode::kBadInput, kMeetsItself, name(out.alias));
    }
    return std::move(bindings_);
  }

 private:
  struct Deferred {
    ValueId extent;
    int64_t size;
    DomainId place;
  };

  std::string name(ValueId v) const { return "%" + g_[v].name; }
  std::string name(DomainId d) const { return name(g_[g_[d].tensor].value) + "." + g_[d].name; }

  void bind_input(ValueId v, const BoundInput& given) {
    const bool wants_tensor = g_.is_tensor(v);
    if (wants_tensor == given.is_scalar)
      throw Error(ErrorCode::kBadInput,
                  std::string("this input is a ") + (wants_tensor ? "tensor" : "scalar") + ", and is given a " +
                      (wants_tensor ? "scalar" : "tensor"),
                  name(v));
    if (!wants_tensor) {
      bindings_[v.index] = given.bits;
      return;
    }
    const auto domains = logical_without_reductions(g_, g_.tensor_of(v));
    if (given.shape.size() != domains.size())
      throw Error(ErrorCode::kBadInput,
                  "this input has rank " + std::to_string(domains.size()) + ", and is given rank " +
                      std::to_string(given.shape.size()),
                  name(v));
    if (!given.strides.empty() && given.strides.size() != domains.size())
      throw Error(ErrorCode::kBadInput, "this input needs a stride for each of its axes", name(v));
    for (size_t i = 0; i < domains.size(); ++i) bind_axis(domains[i], given.shape[i]);
  }

  void bind_axis(DomainId d, int64_t size) {
    const IterDomain& domain = g_[d];
    if (size < 0) throw Error(ErrorCode::kBadInput, "an extent is negative", name(d));
    if (domain.iter_type == IterType::kBroadcast && !domain.expanded) {
      if (size != 1)
        throw Error(ErrorCode::kBadInput, "this axis is a broadcast of extent 1, and is given " + std::to_string(size),
                    name(d));
      return;
    }
    const ValueId extent = domain.size();
    if (const auto wanted = constant_integer(g_, extent)) {
      if (*wanted != size)
        throw Error(ErrorCode::kBadInput,
                    "this axis has extent " + std::to_string(*wanted) + ", and is given " + std::to_string(size),
                    name(d));
      return;
    }
    const OpId def = g_[extent].def;
    if (!def || g_[def].kind != OpKind::kSize) {
      deferred_.push_back({extent, size, d});
      return;
    }
    auto& bound = bindings_[extent.index];
    if (!bound)
      bound = ConstantBits{static_cast<uint64_t>(size), 0};
    else if (static_cast<int64_t>(bound->low) != size)
      throw Error(ErrorCode::kSizeMismatch,
                  "size " + name(extent) + " is " + std::to_string(static_cast<int64_t>(bound->low)) +
                      " elsewhere, and " + std::to_string(size) + " here",
                  name(d));
  }

  // Evaluates in text order, so that an op's operands are known before it.
  void bind_scalars() {
    for (OpId id : g_[Graph::body()].ops) {
      const Op& op = g_[id];
      if (op.results.empty() || g_.is_tensor(op.results[0])) continue;
      for (ValueId v : op.results) {
        if (bindings_[v.index]) continue;
        if (op.kind == OpKind::kSize)
          throw Error(ErrorCode::kMissingInput, "no input has an axis of this extent; give an input that does",
                      name(v));
        bindings_[v.index] = evaluate(g_, v, bindings_);
      }
    }
  }

  void check_deferred(const Deferred& d) const {
    const auto wanted = evaluate_integer(g_, d.extent, bindings_);
    if (wanted && *wanted != d.size)
      throw Error(
          ErrorCode::kSizeMismatch,
          "this axis should have extent " + std::to_string(*wanted) + ", and is given " + std::to_string(d.size),
          name(d.place));
  }

  // The stride of a contiguous axis steps over exactly the axes inside it. The stride of an expanded axis is 0.
  void check_strides(ValueId v, const BoundInput& given) const {
    if (std::find(given.shape.begin(), given.shape.end(), 0) != given.shape.end()) return;
    const Tensor& t = g_.tensor_of(v);
    const auto logical = logical_without_reductions(g_, t);
    std::vector<int64_t> strides = given.strides;
    if (strides.empty()) {
      strides.assign(given.shape.size(), 1);
      for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * given.shape[i];
    }
    const auto allocation = allocation_of(g_, t);
    const auto contiguity = contiguity_of(g_, t);
    int64_t expected = 1;
    for (size_t k = allocation.size(); k-- > 0;) {
      const DomainId d = allocation[k];
      const auto position = std::find(logical.begin(), logical.end(), d);
      if (position == logical.end()) return;  // transforms make this layout: the host side of a launch checks it
      const size_t i = static_cast<size_t>(position - logical.begin());
      const int64_t size = given.shape[i], stride = strides[i];
      if (g_[d].iter_type == IterType::kBroadcast) {
        if (g_[d].expanded && size > 1 && stride != 0)
          throw Error(ErrorCode::kBadInput,
                      "this axis is expanded: its stride must be 0, and is " + std::to_string(stride), name(d));
        continue;
      }
      if (contiguity[k] != Contiguity::kTrue) {
        expected = stride * size;
        continue;
      }
      if (size != 1 && stride != expected)
        throw Error(ErrorCode::kBadInput,
                    "this axis is contiguous: its stride must be " + std::to_string(expected) + ", and is " +
                        std::to_string(stride) + "; declare it otherwise or copy the tensor",
                    name(d));
      expected *= size;
    }
  }

  const Graph& g_;
  std::span<const BoundInput> given_;
  Bindings bindings_;
  std::vector<Deferred> deferred_;
};

}  // namespace

bool meets_itself(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  constexpr int64_t kMostPlaces = 1 << 16;  // of which each is looked at
  if (std::ranges::find(shape, 0) != shape.end()) return false;
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride and extent
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] > 1) axes.emplace_back(strides[i], shape[i]);
  std::ranges::sort(axes);
  // Usually each stride is beyond all elements of the axes with smaller ones.
  int64_t span = 1, count = 1;
  bool is_apart = true;
  for (const auto& [stride, extent] : axes) {
    if (stride == 0) return true;
    is_apart = is_apart && stride >= span;
    span += stride * (extent - 1);
    if (__builtin_mul_overflow(count, extent, &count)) return true;
  }
  if (is_apart) return false;
  if (count > span) return true;
  for (size_t i = 0; i < axes.size(); ++i)
    for (size_t k = 0; k < i; ++k) {
      // So many steps along one axis are as many elements as the fewest along the other.
      const int64_t common = std::gcd(axes[i].first, axes[k].first);
      if (axes[k].first / common < axes[i].second && axes[i].first / common < axes[k].second) return true;
    }
  if (count > kMostPlaces) return false;
  std::vector<int64_t> places{0};
  for (const auto& [stride, extent] : axes)
    for (size_t i = 0, n = places.size(); i < n; ++i)
      for (int64_t k = 1; k < extent; ++k) places.push_back(places[i] + k * stride);
  std::ranges::sort(places);
  return std::ranges::adjacent_find(places) != places.end();
}

Bindings bind_inputs(const Graph& g, std::span<const BoundInput> given) { return Binder(g, given).run(); }

Bindings bind_sizes(const Graph& g, std::span<const BoundInput> given) {
  if (g.level != Level::kMath && g.level != Level::kScheduled)
    throw Error(ErrorCode::kWrongLevel, "only a fusion takes inputs here; give the program at level math",
                "@" + g.name);
  Bindings bindings = bind_inputs(g, given);
  check_sizes(g, bindings);
  return bindings;
}

}  // namespace fusebox
