// Builds programs from C++: short functions over add_op (infer.h), with NumPy's rank alignment. composite.h has
// composites of them.
//
// Invariants: a function appends to the body and returns the result. Names are optional; a taken name gets a number
// appended. Operands of unequal rank are aligned to the right with explicit `broadcast` ops. An axis of the constant
// extent 1 becomes a broadcast if it meets another extent. A tensor without axes that meets tensors with axes takes
// their dtype as a scalar does. Axes may be negative. Errors are those of add_op.
//
//   Graph g = fusion("row_softmax");
//   ValueId m = size(g, "m"), n = size(g, "n");
//   ValueId x = input(g, "x", Dtype::kBfloat16, {m, n});
//   ValueId s = sum(g, cast(g, x, Dtype::kFloat), {1}, {.keepdim = true, .name = "s"});  // f32[%m, 1]
//   output(g, mul(g, x, s, "y"));
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/infer/infer.h"

namespace fusebox {

// An extent or other integer scalar: a number, or a scalar of the graph.
struct Scalar {
  ValueId value;
  int64_t number = 0;

  Scalar(ValueId v) : value(v) {}
  Scalar(int64_t n) : number(n) {}
  Scalar(int n) : number(n) {}
};
using Shape = std::vector<Scalar>;
using Axes = std::vector<int64_t>;

Graph fusion(std::string_view name);

// -- signature
ValueId size(Graph& g, std::string_view name = {});  // a new symbol
std::vector<ValueId> sizes(Graph& g, const std::vector<std::string>& names);
struct InputOptions {
  std::vector<Contiguity> contiguity = {};     // one for each axis; empty: contiguous
  std::vector<int64_t> allocation_order = {};  // axes, outermost first; empty: in order
  std::vector<Scalar> expanded = {};           // for each axis the extent of an expanded broadcast; empty or 1: none
};
// An axis of extent 1 is a broadcast.
ValueId input(Graph& g, std::string_view name, Dtype dtype, const Shape& shape, const InputOptions& options = {});
ValueId input_scalar(Graph& g, std::string_view name, Dtype dtype);
// A kernel's parameter: a global buffer of unknown span.
ValueId input_buffer(Graph& g, std::string_view name, Dtype dtype);
// `alias` is the input that the output overwrites.
void output(Graph& g, ValueId value, ValueId alias = {});

// -- constants and scalars
ValueId constant_of(Graph& g, Dtype dtype, double value);
ValueId scalar_of(Graph& g, const Scalar& s);  // an index constant, or the value
// The size of one axis, as a scalar.
ValueId size_of(Graph& g, ValueId x, int64_t axis);

// -- pointwise: any op with one result
ValueId unary(Graph& g, OpKind kind, ValueId x, std::string_view name = {});
ValueId binary(Graph& g, OpKind kind, ValueId a, ValueId b, std::string_view name = {});
ValueId ternary(Graph& g, OpKind kind, ValueId a, ValueId b, ValueId c, std::string_view name = {});
// Takes any number of operands and aligns them.
ValueId pointwise(Graph& g, OpKind kind, std::vector<ValueId> operands, std::string_view name = {}, Attrs attrs = {});
ValueId cast(Graph& g, ValueId x, Dtype dtype, std::string_view name = {});
inline ValueId add(Graph& g, ValueId a, ValueId b, std::string_view name = {}) {
  return binary(g, OpKind::kAdd, a, b, name);
}
inline ValueId sub(Graph& g, ValueId a, ValueId b, std::string_view name = {}) {
  return binary(g, OpKind::kSub, a, b, name);
}
inline ValueId mul(Graph& g, ValueId a, ValueId b, std::string_view name = {}) {
  return binary(g, OpKind::kMul, a, b, name);
}
inline ValueId truediv(Graph& g, ValueId a, ValueId b, std::string_view name = {}) {
  return binary(g, OpKind::kTruediv, a, b, name);
}
inline ValueId where(Graph& g, ValueId condition, ValueId a, ValueId b, std::string_view name = {}) {
  return ternary(g, OpKind::kWhere, condition, a, b, name);
}

// -- reductions. No axes means all axes. A tensor of rank 0 gives its one element.
struct ReductionOptions {
  bool keepdim = false;
  std::optional<Dtype> dtype = {};
  std::string_view name = {};
};
ValueId reduce(Graph& g, OpKind kind, ValueId x, const Axes& axes, const ReductionOptions& options = {});
ValueId sum(Graph& g, ValueId x, const Axes& axes, const ReductionOptions& options = {});
ValueId prod(Graph& g, ValueId x, const Axes& axes, const ReductionOptions& options = {});
ValueId max(Graph& g, ValueId x, const Axes& axes, const ReductionOptions& options = {});
ValueId min(Graph& g, ValueId x, const Axes& axes, const ReductionOptions& options = {});
// An op in FUSEBOX_MOMENT_OPS, with its results in order.
std::vector<ValueId> moments(Graph& g, OpKind kind, ValueId x, const Axes& axes,
                             const std::vector<std::string>& names = {});
struct WelfordResult {
  ValueId avg, var_sum, n;
};
WelfordResult welford(Graph& g, ValueId x, const Axes& axes, const std::vector<std::string>& names = {});

// -- metadata
ValueId broadcast(Graph& g, ValueId x, const std::vector<bool>& is_new_axis, std::string_view name = {});
ValueId broadcast_in_dim(Graph& g, ValueId x, const Shape& shape, const Axes& dims, std::string_view name = {});
ValueId reshape(Graph& g, ValueId x, const Shape& shape, std::string_view name = {});  // one extent may be −1
ValueId permute(Graph& g, ValueId x, const Axes& dims, std::string_view name = {});
// The shape may have a higher rank than `x`. An extent of −1 keeps that of the axis.
ValueId expand(Graph& g, ValueId x, const Shape& shape, std::string_view name = {});
struct SqueezeOptions {
  bool squeeze_expanded = false;  // drops expanded axes too; otherwise they are refused
  std::string_view name = {};
};
// Drops the named axes. No axes means none.
ValueId squeeze(Graph& g, ValueId x, const Axes& axes, const SqueezeOptions& options = {});
// No steps means that each step is 1.
ValueId slice(Graph& g, ValueId x, const Shape& starts, const Shape& stops, const Shape& steps = {},
              std::string_view name = {});
ValueId stride_order(Graph& g, ValueId x, const Axes& order, std::string_view name = {});

// -- factories and indexing
ValueId full(Graph& g, const Shape& shape, ValueId fill, Dtype dtype, std::string_view name = {});
ValueId iota(Graph& g, const Scalar& length, ValueId start = {}, ValueId step = {}, Dtype dtype = Dtype::kInt64,
             std::string_view name = {});
// Random numbers (philox.h): `kind` is kUniform, with low and high, or kNormal, with mean and standard deviation. Seed
// and offset are integers, also inputs. Ops with one seed give other numbers if their offsets are ceil(elements / 4)
// apart.
ValueId random(Graph& g, OpKind kind, const Shape& shape, ValueId a, ValueId b, ValueId seed, ValueId offset,
               Dtype dtype = Dtype::kFloat, std::string_view name = {});
// `widths` has two numbers for each axis, before and after, innermost axis first.
ValueId pad(Graph& g, ValueId x, const Shape& widths, ValueId value = {}, std::string_view name = {});
ValueId cat(Graph& g, const std::vector<ValueId>& tensors, int64_t axis = 0, std::string_view name = {});
ValueId select(Graph& g, ValueId x, ValueId index, int64_t axis, std::string_view name = {});
ValueId index_select(Graph& g, ValueId x, ValueId index, int64_t axis, std::string_view name = {});
ValueId gather(Graph& g, ValueId x, ValueId index, int64_t axis, std::string_view name = {});
ValueId take_along_axis(Graph& g, ValueId x, ValueId index, int64_t axis, std::string_view name = {});
ValueId scatter(Graph& g, ValueId x, ValueId index, ValueId src, int64_t axis, std::string_view name = {});
ValueId triu(Graph& g, ValueId x, int64_t diagonal = 0, std::string_view name = {});

}  // namespace fusebox
