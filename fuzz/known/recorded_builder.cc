// Tables of calls of the builder, its composites and its library, each with the ops that it adds or the Error that it throws.
#include <fmt/format.h>
#include <limits>

#include "fuzz/known/outcome_list.h"
#include "fuzz/known/recorded_tables.h"
#include "ir/build/composite.h"
#include "ir/build/library.h"
#include "ir/step/apply.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"

namespace fusebox::fuzz {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

// A program with inputs of several kinds, for calls of the builder.
struct Sample {
  Graph g = fusion("f");
  ValueId m = size(g, "m"), n = size(g, "n");
  ValueId x = input(g, "x", Dtype::kFloat, {m, n}), h = input(g, "h", Dtype::kHalf, {3, 4});
  ValueId i = input(g, "i", Dtype::kInt64, {3, 4}), j = input(g, "j", Dtype::kInt32, {2});
  ValueId b = input(g, "b", Dtype::kBool, {3, 4}), c = input(g, "c", Dtype::kComplexFloat, {3, 4});
  ValueId one = input(g, "one", Dtype::kFloat, {3, 1}), row = input(g, "row", Dtype::kFloat, {4});
  ValueId point = input(g, "point", Dtype::kFloat, {}), count = input(g, "count", Dtype::kInt64, {});
  ValueId wide = input(g, "wide", Dtype::kDouble, {}), packed = input(g, "packed", Dtype::kFloat8E4m3, {4});
  ValueId k = input_scalar(g, "k", Dtype::kInt64), s = input_scalar(g, "s", Dtype::kFloat);
  ValueId e = input(g, "e", Dtype::kFloat, {1, 4}, {.expanded = {5, 1}});
  ValueId y = reshape(g, h, {-1, 2}, "y");
};

using Build = void (*)(Sample&);
struct Row {
  std::string_view what;
  Build build;
};

constexpr Row kBuilder[] = {
    {"size", [](Sample& p) { size(p.g); }},
    {"sizes of taken names", [](Sample& p) { sizes(p.g, {"m", "p", ""}); }},
    {"input", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {p.m, 1, 0, 7}); }},
    {"input of a negative extent", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {-1}); }},
    {"input of a tensor as extent", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {p.x}); }},
    {"input of an i64 as extent", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {p.k}); }},
    {"input of a float as extent", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {constant_of(p.g, Dtype::kFloat, 2)}); }},
    {"input by columns", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {p.m, 3}, {.allocation_order = {1, 0}}); }},
    {"input in its own order", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {p.m, 3}, {.allocation_order = {0, 1}}); }},
    {"input of one order too few", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {p.m, 3}, {.allocation_order = {0}}); }},
    {"input of an order twice", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {p.m, 3}, {.allocation_order = {1, 1}}); }},
    {"input of an order from 1", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {p.m, 3}, {.allocation_order = {1, 2}}); }},
    {"input with gaps",
     [](Sample& p) {
       input(p.g, "z", Dtype::kInt8, {p.m, 1, 3},
             {.contiguity = {Contiguity::kFalse, Contiguity::kTrue, Contiguity::kTrue}});
     }},
    {"input with no contiguity of an axis",
     [](Sample& p) {
       input(p.g, "z", Dtype::kInt8, {p.m, 3}, {.contiguity = {Contiguity::kNone, Contiguity::kTrue}});
     }},
    {"input with contiguity by columns",
     [](Sample& p) {
       input(p.g, "z", Dtype::kInt8, {p.m, 1, 3},
             {.contiguity = {Contiguity::kFalse, Contiguity::kTrue, Contiguity::kTrue}, .allocation_order = {2, 1, 0}});
     }},
    {"input that is contiguous",
     [](Sample& p) {
       input(p.g, "z", Dtype::kInt8, {p.m, 3}, {.contiguity = {Contiguity::kTrue, Contiguity::kTrue}});
     }},
    {"input of one contiguity too few",
     [](Sample& p) { input(p.g, "z", Dtype::kInt8, {p.m, 3}, {.contiguity = {Contiguity::kTrue}}); }},
    {"input expanded", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {1, 1, p.m}, {.expanded = {p.n, 1, 1}}); }},
    {"input expanded to 0", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {1}, {.expanded = {0}}); }},
    {"input expanded to -1", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {1}, {.expanded = {-1}}); }},
    {"input expanded at an axis of 2", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {2}, {.expanded = {4}}); }},
    {"input of one expanded extent too few", [](Sample& p) { input(p.g, "z", Dtype::kInt8, {1, 1}, {.expanded = {4}}); }},
    {"output", [](Sample& p) { output(p.g, p.x); }},
    {"output over an input", [](Sample& p) { output(p.g, unary(p.g, OpKind::kNeg, p.x), p.x); }},
    {"output over an expanded input",
     [](Sample& p) { output(p.g, full(p.g, {5, 4}, p.s, Dtype::kFloat), p.e); }},
    {"expanded output over an input",
     [](Sample& p) { output(p.g, expand(p.g, unary(p.g, OpKind::kNeg, p.row), {3, 4}), input(p.g, "o", Dtype::kFloat, {3, 4})); }},
    {"output over an input of another shape", [](Sample& p) { output(p.g, unary(p.g, OpKind::kNeg, p.row), p.one); }},
    {"output over an input of another dtype", [](Sample& p) { output(p.g, unary(p.g, OpKind::kNeg, p.i), p.h); }},
    {"output over a scalar", [](Sample& p) { output(p.g, unary(p.g, OpKind::kNeg, p.i), p.k); }},
    {"output over what is no input", [](Sample& p) { output(p.g, p.h, unary(p.g, OpKind::kNeg, p.h)); }},
    {"constant", [](Sample& p) { add(p.g, p.h, constant_of(p.g, Dtype::kHalf, 0.1)); }},
    {"size of an axis", [](Sample& p) { expand(p.g, p.row, {size_of(p.g, p.x, 0), size_of(p.g, p.h, -1)}); }},
    {"size of an expanded axis", [](Sample& p) { full(p.g, {size_of(p.g, p.e, 0)}, p.s, Dtype::kFloat); }},
    {"size of axis 2", [](Sample& p) { size_of(p.g, p.x, 2); }},
    {"size of axis -3", [](Sample& p) { size_of(p.g, p.x, -3); }},
    {"unary", [](Sample& p) { unary(p.g, OpKind::kExp, p.x, "z"); }},
    {"unary with a taken name", [](Sample& p) { unary(p.g, OpKind::kExp, p.x, "x"); }},
    {"binary of ranks 2 and 1", [](Sample& p) { binary(p.g, OpKind::kAdd, p.x, p.row, "z"); }},
    {"binary of ranks 1 and 2", [](Sample& p) { binary(p.g, OpKind::kSub, p.row, p.h, "z"); }},
    {"binary with an axis of 1", [](Sample& p) { binary(p.g, OpKind::kSub, p.h, p.one, "z"); }},
    {"binary of two axes of 1", [](Sample& p) { binary(p.g, OpKind::kSub, p.one, p.one, "z"); }},
    {"binary with an iteration of 1",
     [](Sample& p) { binary(p.g, OpKind::kSub, slice(p.g, p.h, {0, 0}, {1, 4}), p.h, "z"); }},
    {"binary of two iterations of 1",
     [](Sample& p) { const ValueId a = slice(p.g, p.h, {0, 0}, {1, 4}); binary(p.g, OpKind::kSub, a, a, "z"); }},
    {"binary of a mismatch", [](Sample& p) { binary(p.g, OpKind::kSub, p.row, p.j, "z"); }},
    {"binary with an operand missing", [](Sample& p) { binary(p.g, OpKind::kSub, p.row, {}, "z"); }},
    {"ternary", [](Sample& p) { ternary(p.g, OpKind::kWhere, p.b, p.h, p.s, "z"); }},
    {"ternary of ranks 2, 1 and 0", [](Sample& p) { ternary(p.g, OpKind::kLerp, p.one, p.row, p.point, "z"); }},
    {"ternary with an operand missing", [](Sample& p) { ternary(p.g, OpKind::kWhere, p.b, {}, p.s, "z"); }},
    {"point and half", [](Sample& p) { add(p.g, p.point, p.h, "z"); }},
    {"half and point", [](Sample& p) { add(p.g, p.h, p.point, "z"); }},
    {"double point and half", [](Sample& p) { mul(p.g, p.wide, p.h, "z"); }},
    {"double point and float", [](Sample& p) { sub(p.g, p.x, p.wide, "z"); }},
    {"double point and integers", [](Sample& p) { add(p.g, p.wide, p.i, "z"); }},
    {"integer point and float", [](Sample& p) { truediv(p.g, p.x, p.count, "z"); }},
    {"integer point and i32", [](Sample& p) { add(p.g, p.j, p.count, "z"); }},
    {"integer point over integers", [](Sample& p) { truediv(p.g, p.i, p.count, "z"); }},
    {"integer point and bool", [](Sample& p) { add(p.g, p.b, p.count, "z"); }},
    {"float point and bool", [](Sample& p) { add(p.g, p.b, p.point, "z"); }},
    {"float point and complex", [](Sample& p) { add(p.g, p.c, p.point, "z"); }},
    {"double point and complex", [](Sample& p) { add(p.g, p.c, p.wide, "z"); }},
    {"two points", [](Sample& p) { add(p.g, p.count, p.wide, "z"); }},
    {"point and scalar", [](Sample& p) { add(p.g, p.count, p.s, "z"); }},
    {"where of a point's condition", [](Sample& p) { where(p.g, cast(p.g, p.count, Dtype::kBool), p.h, p.wide, "z"); }},
    {"where of points", [](Sample& p) { where(p.g, p.b, p.count, p.wide, "z"); }},
    {"where of a wide condition", [](Sample& p) { where(p.g, p.b, p.h, p.point, "z"); }},
    {"where of a point and halves", [](Sample& p) { where(p.g, p.b, p.wide, p.h, "z"); }},
    {"clamp of points", [](Sample& p) { ternary(p.g, OpKind::kClamp, p.h, p.wide, p.count, "z"); }},
    {"addcmul of points", [](Sample& p) { pointwise(p.g, OpKind::kAddcmul, {p.h, p.wide, p.point, p.s}, "z"); }},
    {"cast", [](Sample& p) { cast(p.g, p.x, Dtype::kBfloat16, "z"); }},
    {"cast to the packed dtype", [](Sample& p) { cast(p.g, p.x, Dtype::kFloat4E2m1x2, "z"); }},
    {"sum", [](Sample& p) { sum(p.g, p.x, {1}, {.name = "z"}); }},
    {"sum of all", [](Sample& p) { sum(p.g, p.x, {}, {.name = "z"}); }},
    {"sum that keeps", [](Sample& p) { sum(p.g, p.x, {-1}, {.keepdim = true, .name = "z"}); }},
    {"sum over both that keeps", [](Sample& p) { sum(p.g, p.x, {1, -2}, {.keepdim = true, .dtype = Dtype::kDouble, .name = "z"}); }},
    {"sum over an axis twice", [](Sample& p) { sum(p.g, p.x, {1, -1}); }},
    {"sum over axis 2", [](Sample& p) { sum(p.g, p.x, {2}); }},
    {"sum over axis -3", [](Sample& p) { sum(p.g, p.x, {-3}); }},
    {"sum of a scalar", [](Sample& p) { sum(p.g, p.s, {}); }},
    {"sum of nothing", [](Sample& p) { sum(p.g, {}, {}); }},
    {"sum of a point", [](Sample& p) { sum(p.g, p.point, {}, {.name = "z"}); }},
    {"sum of a point of f8", [](Sample& p) { sum(p.g, select(p.g, p.packed, constant_index(p.g, 0), 0), {}, {.name = "z"}); }},
    {"sum of an integer point", [](Sample& p) { sum(p.g, cast(p.g, p.count, Dtype::kInt8), {}, {.keepdim = true, .name = "z"}); }},
    {"sum of a point as double", [](Sample& p) { sum(p.g, p.point, {}, {.dtype = Dtype::kDouble, .name = "z"}); }},
    {"sum of a point over axis 0", [](Sample& p) { sum(p.g, p.point, {0}); }},
    {"prod", [](Sample& p) { prod(p.g, p.j, {0}, {.name = "z"}); }},
    {"max", [](Sample& p) { max(p.g, p.j, {0}, {.keepdim = true, .name = "z"}); }},
    {"min", [](Sample& p) { min(p.g, p.b, {0}, {.name = "z"}); }},
    {"max of complex", [](Sample& p) { max(p.g, p.c, {0}); }},
    {"moments", [](Sample& p) { moments(p.g, OpKind::kWelford, p.h, {0}, {"a", "v", "n1"}); }},
    {"welford of all", [](Sample& p) { const WelfordResult w = welford(p.g, p.x, {}); add(p.g, w.avg, mul(p.g, w.var_sum, w.n), "z"); }},
    {"broadcast", [](Sample& p) { broadcast(p.g, p.row, {true, false, true}, "z"); }},
    {"broadcast of a mask too long", [](Sample& p) { broadcast(p.g, p.row, {true, false, false}); }},
    {"broadcast_in_dim", [](Sample& p) { broadcast_in_dim(p.g, p.row, {2, 4, p.m}, {1}, "z"); }},
    {"broadcast_in_dim out of order", [](Sample& p) { broadcast_in_dim(p.g, p.x, {p.n, p.m}, {1, 0}); }},
    {"reshape", [](Sample& p) { reshape(p.g, p.h, {2, -1, 3}, "z"); }},
    {"reshape of two unknowns", [](Sample& p) { reshape(p.g, p.h, {-1, -1, 3}); }},
    {"reshape of a symbolic shape", [](Sample& p) { reshape(p.g, p.x, {p.n, p.m}, "z"); }},
    {"permute", [](Sample& p) { permute(p.g, p.x, {-1, 0}, "z"); }},
    {"permute of one axis twice", [](Sample& p) { permute(p.g, p.x, {0, 0}); }},
    {"expand", [](Sample& p) { expand(p.g, p.one, {7, -1, p.n}, "z"); }},
    {"expand of a scalar", [](Sample& p) { expand(p.g, p.s, {7}); }},
    {"expand of nothing", [](Sample& p) { expand(p.g, {}, {7}); }},
    {"expand to a lower rank", [](Sample& p) { expand(p.g, p.x, {7}); }},
    {"squeeze", [](Sample& p) { squeeze(p.g, p.one, {-1}, {.name = "z"}); }},
    {"squeeze of no axes", [](Sample& p) { squeeze(p.g, p.one, {}, {.name = "z"}); }},
    {"squeeze of an expanded axis", [](Sample& p) { squeeze(p.g, p.e, {0}); }},
    {"squeeze of an expanded axis, told so", [](Sample& p) { squeeze(p.g, p.e, {0}, {.squeeze_expanded = true, .name = "z"}); }},
    {"squeeze of several axes, one expanded",
     [](Sample& p) {
       const ValueId t = broadcast(p.g, p.e, {true, false, false, true});
       squeeze(p.g, t, {-1, 0, 1}, {.squeeze_expanded = true, .name = "z"});
     }},
    {"squeeze of axis 2", [](Sample& p) { squeeze(p.g, p.one, {2}); }},
    {"squeeze of a scalar", [](Sample& p) { squeeze(p.g, p.s, {0}); }},
    {"slice", [](Sample& p) { slice(p.g, p.x, {0, 1}, {p.m, -1}, {1, 1}, "z"); }},
    {"slice without steps", [](Sample& p) { slice(p.g, p.x, {0, 1}, {p.m, -1}, {}, "z"); }},
    {"slice of a start too few", [](Sample& p) { slice(p.g, p.x, {0}, {p.m, -1}); }},
    {"slice of a stop too many", [](Sample& p) { slice(p.g, p.x, {0, 0}, {p.m, -1, 3}); }},
    {"slice of a step too few", [](Sample& p) { slice(p.g, p.x, {0, 0}, {p.m, -1}, {1}); }},
    {"slice of a scalar", [](Sample& p) { slice(p.g, p.s, {}, {}); }},
    {"stride_order", [](Sample& p) { stride_order(p.g, p.x, {0, 1}, "z"); }},
    {"stride_order of one axis", [](Sample& p) { stride_order(p.g, p.x, {0}); }},
    {"full", [](Sample& p) { full(p.g, {p.m, 1, 3}, p.s, Dtype::kHalf, "z"); }},
    {"full of no axes", [](Sample& p) { full(p.g, {}, p.k, Dtype::kInt8, "z"); }},
    {"full of a negative axis", [](Sample& p) { full(p.g, {-2}, p.k, Dtype::kInt8); }},
    {"iota", [](Sample& p) { iota(p.g, p.m, {}, {}, Dtype::kInt64, "z"); }},
    {"iota from a start", [](Sample& p) { iota(p.g, 7, p.k, p.k, Dtype::kInt32, "z"); }},
    {"iota of a negative length", [](Sample& p) { iota(p.g, -7); }},
    {"random", [](Sample& p) { random(p.g, OpKind::kUniform, {p.m, 3}, p.s, p.s, p.k, p.k, Dtype::kHalf, "z"); }},
    {"random of integers", [](Sample& p) { random(p.g, OpKind::kNormal, {3}, p.s, p.s, p.k, p.k, Dtype::kInt8); }},
    {"random of a float seed", [](Sample& p) { random(p.g, OpKind::kNormal, {3}, p.s, p.s, p.s, p.k); }},
    {"pad", [](Sample& p) { pad(p.g, p.x, {1, p.m, 0, 3}, {}, "z"); }},
    {"pad with a value", [](Sample& p) { pad(p.g, p.row, {1, -1}, constant_of(p.g, Dtype::kFloat, 2), "z"); }},
    {"pad of the innermost axis", [](Sample& p) { pad(p.g, p.h, {1, 2}, {}, "z"); }},
    {"pad of an odd list", [](Sample& p) { pad(p.g, p.h, {1}); }},
    {"cat", [](Sample& p) { cat(p.g, {p.h, p.h, p.one}, -1, "z"); }},
    {"cat of nothing", [](Sample& p) { cat(p.g, {}, 0); }},
    {"cat of a mismatch", [](Sample& p) { cat(p.g, {p.h, p.one}, 0); }},
    {"cat along axis 2", [](Sample& p) { cat(p.g, {p.h, p.h}, 2); }},
    {"select", [](Sample& p) { select(p.g, p.x, p.k, -1, "z"); }},
    {"select by a tensor", [](Sample& p) { select(p.g, p.x, p.count, 0, "z"); }},
    {"index_select", [](Sample& p) { index_select(p.g, p.h, p.j, 1, "z"); }},
    {"index_select by two axes", [](Sample& p) { index_select(p.g, p.h, p.i, 1); }},
    {"gather", [](Sample& p) { gather(p.g, p.h, p.i, 1, "z"); }},
    {"gather by a float", [](Sample& p) { gather(p.g, p.h, p.h, 1); }},
    {"take_along_axis", [](Sample& p) { take_along_axis(p.g, p.one, p.i, 1, "z"); }},
    {"scatter", [](Sample& p) { scatter(p.g, p.h, p.i, p.h, -1, "z"); }},
    {"scatter of another dtype", [](Sample& p) { scatter(p.g, p.h, p.i, p.i, -1); }},
    {"triu", [](Sample& p) { triu(p.g, p.x, -1, "z"); }},
    {"triu of rank 1", [](Sample& p) { triu(p.g, p.row); }},
    // The library.
    {"matmul", [](Sample& p) { matmul(p.g, p.h, permute(p.g, p.h, {1, 0}), "z"); }},
    {"matmul of a mismatch", [](Sample& p) { matmul(p.g, p.h, p.h); }},
    {"linear", [](Sample& p) { linear(p.g, p.one, input(p.g, "w", Dtype::kFloat, {4, 1}), p.row, "z"); }},
    {"linear without bias", [](Sample& p) { linear(p.g, p.h, p.h, {}, "z"); }},
    {"grouped_mm", [](Sample& p) { grouped_mm(p.g, p.h, input(p.g, "w", Dtype::kHalf, {2, 4, 5}), p.j, "z"); }},
    {"grouped_mm of rank 3 and 2", [](Sample& p) { grouped_mm(p.g, input(p.g, "w", Dtype::kHalf, {2, 5, 3}), p.h, p.j, "z"); }},
    {"grouped_mm of ranks 2", [](Sample& p) { grouped_mm(p.g, permute(p.g, p.h, {1, 0}), p.h, p.j, "z"); }},
    {"grouped_mm of ranks 3",
     [](Sample& p) {
       grouped_mm(p.g, input(p.g, "v", Dtype::kHalf, {2, 5, 3}), input(p.g, "w", Dtype::kHalf, {2, 3, 4}), p.j, "z");
     }},
    {"grouped_mm of rank 1", [](Sample& p) { grouped_mm(p.g, p.h, cast(p.g, p.row, Dtype::kHalf), p.j); }},
    {"scaled_mm",
     [](Sample& p) {
       const ValueId a = cast(p.g, p.h, Dtype::kFloat8E4m3), b = permute(p.g, a, {1, 0});
       scaled_mm(p.g, a, b, p.point, p.point, {.dtype = Dtype::kFloat, .name = "z"});
     }},
    {"scaled_mm by rows",
     [](Sample& p) {
       const ValueId a = cast(p.g, p.h, Dtype::kFloat8E4m3), b = input(p.g, "w", Dtype::kFloat8E4m3, {4, 5});
       scaled_mm(p.g, a, b, input(p.g, "r", Dtype::kFloat, {3}), input(p.g, "q", Dtype::kFloat, {5}), {.name = "z"});
     }},
    {"scaled_mm by a row and a number, with bias",
     [](Sample& p) {
       const ValueId a = cast(p.g, p.h, Dtype::kFloat8E4m3), b = input(p.g, "w", Dtype::kFloat8E4m3, {4, 5});
       const ValueId bias = input(p.g, "q", Dtype::kHalf, {5});
       scaled_mm(p.g, a, b, input(p.g, "r", Dtype::kFloat, {3}), p.point, {.bias = bias, .dtype = Dtype::kHalf, .name = "z"});
     }},
    {"scaled_mm by scales exchanged",
     [](Sample& p) {
       const ValueId a = cast(p.g, p.h, Dtype::kFloat8E4m3), b = input(p.g, "w", Dtype::kFloat8E4m3, {4, 5});
       scaled_mm(p.g, a, b, input(p.g, "q", Dtype::kFloat, {5}), input(p.g, "r", Dtype::kFloat, {3}));
     }},
    {"scaled_mm by a matrix",
     [](Sample& p) {
       const ValueId a = cast(p.g, p.h, Dtype::kFloat8E4m3), b = permute(p.g, a, {1, 0});
       scaled_mm(p.g, a, b, p.point, p.one);
     }},
    {"cumsum", [](Sample& p) { cumsum(p.g, p.j, 0, {}, "z"); }},
    {"cumsum as f32", [](Sample& p) { cumsum(p.g, p.j, -1, Dtype::kFloat, "z"); }},
    {"cumprod", [](Sample& p) { cumprod(p.g, p.h, 1, {}, "z"); }},
    {"cummin", [](Sample& p) { cummin(p.g, p.h, 1, {"z", "zi"}); }},
    {"cummax", [](Sample& p) { cummax(p.g, p.h, -3); }},
    {"argsort", [](Sample& p) { argsort(p.g, p.h, -1, {.descending = true, .name = "z"}); }},
    {"topk", [](Sample& p) { topk(p.g, p.h, 2, -1, {.largest = false, .names = {"z", "zi"}}); }},
    {"topk of too many", [](Sample& p) { topk(p.g, p.h, 5, -1); }},
    {"topk of a size", [](Sample& p) { topk(p.g, p.x, p.m, 0); }},
    {"attention",
     [](Sample& p) {
       const ValueId q = input(p.g, "q", Dtype::kHalf, {2, 3, p.m, 8}), v = input(p.g, "v", Dtype::kHalf, {2, 3, p.m, 4});
       const Attention a = sdpfa_fwd(p.g, q, q, v, {.causal = true, .scale = p.s, .names = {"z", "zs"}});
       const AttentionGradient d = sdpfa_bwd(p.g, a.output, q, q, v, a, {.causal = true, .scale = p.s});
       add(p.g, d.query, d.key, "sum_of_two");
       add(p.g, d.value, d.value, "twice");
     }},
    {"attention of rank 3", [](Sample& p) { const ValueId q = input(p.g, "q", Dtype::kHalf, {2, 3, 8}); sdpfa_fwd(p.g, q, q, q); }},
    {"index_put_accumulate", [](Sample& p) { index_put_accumulate(p.g, p.h, p.j, input(p.g, "r", Dtype::kHalf, {2, 4}), "z"); }},
    {"scatter_add", [](Sample& p) { scatter_add(p.g, p.h, p.i, p.h, 1, "z"); }},
    // Composites.
    {"var", [](Sample& p) { var(p.g, p.h, {1}, {.name = "z"}); }},
    {"var that keeps", [](Sample& p) { var(p.g, p.x, {}, {.correction = 0, .keepdim = true, .name = "z"}); }},
    {"var of complex", [](Sample& p) { var(p.g, p.c, {-1}, {.correction = 2, .name = "z"}); }},
    {"var of integers", [](Sample& p) { var(p.g, p.i, {-1}); }},
    {"var over axis 2", [](Sample& p) { var(p.g, p.h, {2}); }},
    {"var_mean", [](Sample& p) { const VarMean r = var_mean(p.g, p.h, {0}, {.keepdim = true, .name = "z"}); add(p.g, r.var, r.mean); }},
    {"var_mean of sizes", [](Sample& p) { const VarMean r = var_mean(p.g, p.x, {}, {.name = "z"}); sub(p.g, r.var, r.mean); }},
    {"var_mean of complex", [](Sample& p) { const VarMean r = var_mean(p.g, p.c, {0}, {.correction = 0, .keepdim = true, .name = "z"}); mul(p.g, r.var, r.mean); }},
    {"var_mean of bool", [](Sample& p) { var_mean(p.g, p.b, {0}); }},
    {"mean", [](Sample& p) { mean(p.g, p.h, {-2, 1}, {.keepdim = true, .name = "z"}); }},
    {"mean of integers", [](Sample& p) { mean(p.g, p.i, {}); }},
    {"softmax", [](Sample& p) { softmax(p.g, p.x, -1, "z"); }},
    {"softmax of half", [](Sample& p) { softmax(p.g, p.h, 0, "z"); }},
    {"softmax along axis 2", [](Sample& p) { softmax(p.g, p.h, 2); }},
    {"layer_norm", [](Sample& p) { layer_norm(p.g, p.x, 1, {.name = "z"}); }},
    {"layer_norm with weight and bias", [](Sample& p) { layer_norm(p.g, p.h, 2, {.weight = p.row, .bias = p.row, .eps = 0.5, .name = "z"}); }},
    {"layer_norm over no axes", [](Sample& p) { layer_norm(p.g, p.x, 0); }},
    {"layer_norm over three axes", [](Sample& p) { layer_norm(p.g, p.x, 3); }},
    {"rms_norm", [](Sample& p) { rms_norm(p.g, p.x, 2, {.name = "z"}); }},
    {"rms_norm with weight and bias", [](Sample& p) { rms_norm(p.g, p.h, 1, {.weight = p.row, .bias = p.row, .eps = 0.5, .name = "z"}); }},
    {"embedding", [](Sample& p) { embedding(p.g, p.j, p.x, {.name = "z"}); }},
    {"embedding of a matrix of indices", [](Sample& p) { embedding(p.g, p.i, p.x, {.name = "z"}); }},
    {"embedding of a point", [](Sample& p) { embedding(p.g, p.count, p.x, {.name = "z"}); }},
    {"embedding by a point", [](Sample& p) { embedding(p.g, p.j, p.point); }},
    {"embedding of limited norm", [](Sample& p) { embedding(p.g, p.j, p.h, {.max_norm = 2, .name = "z"}); }},
    {"embedding of limited 1-norm", [](Sample& p) { embedding(p.g, p.j, p.x, {.max_norm = 2, .norm_type = 1, .name = "z"}); }},
    {"embedding of limited 0-norm", [](Sample& p) { embedding(p.g, p.j, p.x, {.max_norm = 2, .norm_type = 0, .name = "z"}); }},
    {"embedding of limited 3-norm", [](Sample& p) { embedding(p.g, p.j, p.x, {.max_norm = 2, .norm_type = 3, .name = "z"}); }},
    {"embedding of limited largest", [](Sample& p) { embedding(p.g, p.j, p.x, {.max_norm = 2, .norm_type = kInf, .name = "z"}); }},
    {"embedding of limited least", [](Sample& p) { embedding(p.g, p.j, p.x, {.max_norm = 0, .norm_type = -kInf, .name = "z"}); }},
    {"embedding of a negative norm", [](Sample& p) { embedding(p.g, p.j, p.x, {.max_norm = -1}); }},
    {"embedding of no norm", [](Sample& p) { embedding(p.g, p.j, p.x, {.max_norm = kNan}); }},
    {"embedding of a norm type that is no number", [](Sample& p) { embedding(p.g, p.j, p.x, {.max_norm = 1, .norm_type = kNan}); }},
    {"embedding of a limited vector", [](Sample& p) { embedding(p.g, p.j, p.row, {.max_norm = 1}); }},
    {"embedding of limited integers", [](Sample& p) { embedding(p.g, p.j, p.i, {.max_norm = 1}); }},
};

// The lines that a call adds to a program.
std::string added(const Graph& before, const Graph& after) {
  std::string out;
  const std::string was = print(before), is = print(after);
  size_t same = 0;
  while (same < was.size() && same < is.size() && was[same] == is[same]) ++same;
  same = is.rfind('\n', same) + 1;
  for (size_t at = same; at < is.size();) {
    const size_t end = std::min(is.find('\n', at), is.size());
    const std::string line = is.substr(at, end - at);
    if (line != "}") out += "\n  " + line;
    at = end + 1;
  }
  return out;
}

std::string calls_of(const auto& rows, const std::function<void(Sample&)>& prepare) {
  std::string out;
  for (const Row& row : rows) {
    Sample sample;
    prepare(sample);
    const Graph before = sample.g;
    out += fmt::format("{}: {}\n", row.what, outcome_text([&] {
                         row.build(sample);
                         if (sample.g.level == Level::kMath) verify(sample.g);
                         return added(before, sample.g);
                       }));
  }
  return out;
}

// Ops of kernels and host programs, whose operands are scalars and buffers.
struct LowRow {
  std::string_view what;
  void (*build)(Graph& g, ValueId buffer, ValueId scalar, ValueId index);
};
constexpr LowRow kLow[] = {
    {"scalars", [](Graph& g, ValueId, ValueId s, ValueId) { add(g, s, constant_of(g, Dtype::kFloat, 1.5), "z"); }},
    {"scalars of two dtypes", [](Graph& g, ValueId, ValueId s, ValueId i) { mul(g, s, i, "z"); }},
    {"a buffer", [](Graph& g, ValueId b, ValueId s, ValueId) { add(g, b, s, "z"); }},
    {"two buffers", [](Graph& g, ValueId b, ValueId, ValueId) { add(g, b, b, "z"); }},
    {"a buffer of rank 1 and a tensor of rank 2",
     [](Graph& g, ValueId b, ValueId, ValueId) { add(g, b, input(g, "t", Dtype::kFloat, {3, 4}), "z"); }},
    {"a tensor of rank 0",
     [](Graph& g, ValueId b, ValueId, ValueId) { add(g, b, input(g, "t", Dtype::kDouble, {}), "z"); }},
    {"a sum", [](Graph& g, ValueId b, ValueId, ValueId) { sum(g, b, {}); }},
    {"a size of a buffer", [](Graph& g, ValueId b, ValueId, ValueId) { size_of(g, b, 0); }},
    {"a size", [](Graph& g, ValueId, ValueId, ValueId) { size(g, "n"); }},
    {"an output", [](Graph& g, ValueId b, ValueId, ValueId) { output(g, b); }},
    {"where", [](Graph& g, ValueId, ValueId s, ValueId i) { where(g, binary(g, OpKind::kLt, i, i), s, s, "z"); }},
    {"cast", [](Graph& g, ValueId, ValueId s, ValueId) { cast(g, s, Dtype::kInt32, "z"); }},
    {"a loop", [](Graph& g, ValueId, ValueId, ValueId i) { add_op(g, Graph::body(), OpKind::kFor, {i, i, i}); }},
    {"a branch", [](Graph& g, ValueId, ValueId,
                    ValueId i) { add_op(g, Graph::body(), OpKind::kIf, {binary(g, OpKind::kLt, i, i)}); }},
    {"a stream",
     [](Graph& g, ValueId, ValueId, ValueId) {
       const OpId stream = add_op(g, Graph::body(), OpKind::kCreateStream, {}, {}, {"stream"});
       add_op(g, Graph::body(), OpKind::kPost, {g[stream].results[0]});
     }},
};

}  // namespace

std::string scheduled_builder_calls() {
  return calls_of(kBuilder, [](Sample& p) { apply(p.g, parse_step("split %y.i0 by 4 -> o, t")); });
}

std::string builder_calls() {
  return calls_of(kBuilder, [](Sample&) {});
}

std::string low_level_calls() {
  std::string out;
  for (const Level level : {Level::kKernel, Level::kHost}) {
    out += fmt::format("-- {}\n", text(level));
    for (const LowRow& row : kLow) {
      Graph g = fusion("f");
      g.level = level;
      const ValueId buffer = input_buffer(g, "b", Dtype::kFloat), scalar = input_scalar(g, "s", Dtype::kFloat);
      const ValueId index = input_scalar(g, "i", Dtype::kIndex);
      const Graph before = g;
      out += fmt::format("{}: {}\n", row.what, outcome_text([&] {
                           row.build(g, buffer, scalar, index);
                           const std::optional<Error> e = find_error(g);
                           return added(before, g) + (e ? fmt::format("\n  but {}: {}", e->place, e->what()) : "");
                         }));
    }
  }
  return out;
}

}  // namespace fusebox::fuzz
