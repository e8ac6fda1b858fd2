#include "tests/support/op_cases.h"

#include <functional>

#include "ir/build/builder.h"
#include "ir/build/library.h"
#include "ir/scalar/numeric.h"
#include "ir/step/apply.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "ir/table/type_rule.h"
#include "ir/text/parse.h"

namespace fusebox::test {
namespace {

// The layout of an input in memory.
enum class Layout { kContiguous, kPermuted, kPadded, kBroadcast };
constexpr const char* kLayouts[] = {"contiguous", "permuted", "padded", "broadcast"};

class Maker {
 public:
  OpCases run(OpKind kind) {
    for (const DtypeRow& d : dtype_rows()) of(kind, d.dtype);
    return std::move(result_);
  }

 private:
  using Build = std::function<ValueId(Graph&, const std::vector<ValueId>&)>;

  InputSpec spec(const std::string& name, Dtype dtype, std::vector<int64_t> shape, Layout layout, uint64_t seed,
                 bool plain) {
    InputSpec s;
    s.name = name;
    s.dtype = dtype;
    s.shape = shape;
    s.seed = seed;
    s.generator = plain
                      ? (is_floating(dtype) || is_complex(dtype) ? InputGenerator::kNormal : InputGenerator::kIntegers)
                      : InputGenerator::kBoundary;
    if (plain && s.generator == InputGenerator::kIntegers) {
      s.low = is_signed(dtype) ? -3 : 0;
      s.high = is_boolean(dtype) ? 2 : 4;
    }
    if (shape.size() == 2) {
      if (layout == Layout::kPermuted) s.strides = {1, shape[0] > 0 ? shape[0] : 1};
      if (layout == Layout::kPadded) s.strides = {shape[1] * 2 + 3, 2}, s.offset = 3;
      if (layout == Layout::kBroadcast) s.strides = {0, 1};
    }
    return s;
  }

  // Adds one case for each shape and layout. `dtypes`: those of the inputs.
  void add(OpKind kind, Dtype dtype, const std::vector<Dtype>& dtypes, const std::vector<std::vector<int64_t>>& shapes,
           const Build& build, bool plain = false) {
    for (size_t s = 0; s < shapes.size(); ++s) {
      const Layout layout = static_cast<Layout>(shapes[s].size() == 2 ? s % 4 : 0);
      OpCase c;
      c.kind = kind;
      c.dtype = dtype;
      c.name = std::string(row_of(kind).text) + " " + std::string(text(dtype)) + " case " + std::to_string(s) + " " +
               kLayouts[static_cast<size_t>(layout)];
      c.fusion = fusion("f");
      Graph& g = c.fusion;
      try {
        std::vector<ValueId> symbols;
        for (size_t i = 0; i < shapes[s].size(); ++i) symbols.push_back(size(g));
        std::vector<ValueId> given;
        for (size_t k = 0; k < dtypes.size(); ++k) {
          const std::string name = "x" + std::to_string(k);
          Shape shape(symbols.begin(), symbols.end());
          InputOptions options;
          options.contiguity.assign(shape.size(), Contiguity::kFalse);
          given.push_back(input(g, name, dtypes[k], shape, options));
          c.inputs.push_back(
              spec(name, dtypes[k], shapes[s], k == 0 ? layout : Layout::kContiguous, 11 * s + k + 1, plain));
        }
        output(g, build(g, given));
      } catch (const Error& e) {
        if (row_of(e.code).outcome == Outcome::kInternal) throw;
        ++result_.refused;
        return;
      }
      take(std::move(c));
    }
  }

  // Takes a case, and the same with fast ops if there are any.
  void take(OpCase c) {
    OpCase fast = c;
    fast.name += " fast";
    apply(fast.fusion, parse_steps("precision of [] fast"));
    const bool differs = fast.fusion != c.fusion;
    result_.cases.push_back(std::move(c));
    if (differs) result_.cases.push_back(std::move(fast));
  }

  void of(OpKind kind, Dtype d) {
    const std::vector<std::vector<int64_t>> shapes = {{}, {0}, {1}, {129}, {5, 7}, {3, 43}, {7, 1}, {1, 5}};
    const std::vector<std::vector<int64_t>> matrices = {{5, 7}, {4, 33}, {1, 6}, {6, 1}};
    const auto unary_op = [&](Graph& g, const std::vector<ValueId>& x) { return unary(g, kind, x[0]); };
    const std::string_view format = row_of(kind).format->name;
    if (kind == OpKind::kCast) {
      for (const DtypeRow& to : dtype_rows())
        add(kind, d, {d}, {{61}}, [&](Graph& g, const std::vector<ValueId>& x) { return cast(g, x[0], to.dtype); });
    } else if (demands(kind, kPointwise) && format == "kUnary") {
      add(kind, d, {d}, shapes, unary_op);
      add(kind, d, {d}, {{67}}, unary_op, true);
    } else if (demands(kind, kPointwise) && format == "kBinary") {
      const auto build = [&](Graph& g, const std::vector<ValueId>& x) { return binary(g, kind, x[0], x[1]); };
      add(kind, d, {d, d}, shapes, build);
      add(kind, d, {d, d}, {{67}}, build, true);
      // Another dtype on the right, for promotion.
      add(kind, d, {d, Dtype::kFloat}, {{33}}, build);
    } else if (demands(kind, kPointwise) && (format == "kTernary" || format == "kQuaternary")) {
      const size_t count = format == "kTernary" ? 3 : 4;
      std::vector<Dtype> dtypes(count, d);
      if (kind == OpKind::kWhere) dtypes[0] = Dtype::kBool;
      const auto build = [&](Graph& g, const std::vector<ValueId>& x) { return pointwise(g, kind, x); };
      add(kind, d, dtypes, shapes, build);
      add(kind, d, dtypes, {{67}}, build, true);
    } else if (is_moment(kind)) {
      for (size_t which = 0; which < moment_dtypes(kind, d).size(); ++which)
        add(
            kind, d, {d}, matrices,
            [&](Graph& g, const std::vector<ValueId>& x) { return moments(g, kind, x[0], {1})[which]; }, true);
    } else if (demands(kind, kReduction)) {
      for (const Axes& axes : {Axes{0}, Axes{1}, Axes{0, 1}})
        add(
            kind, d, {d}, matrices,
            [&](Graph& g, const std::vector<ValueId>& x) { return reduce(g, kind, x[0], axes); }, true);
      add(
          kind, d, {d}, {{1031}},
          [&](Graph& g, const std::vector<ValueId>& x) { return reduce(g, kind, x[0], {0}, {.keepdim = true}); }, true);
    } else if (demands(kind, kLibrary)) {
      library(kind, d);
    } else {
      moves(kind, d, matrices);
    }
  }

  // Ops that move elements or make them from indices.
  void moves(OpKind kind, Dtype d, const std::vector<std::vector<int64_t>>& matrices) {
    const auto simple = [&](const Build& build) { add(kind, d, {d}, matrices, build); };
    switch (kind) {
      case OpKind::kBroadcast:
        return simple(
            [](Graph& g, const std::vector<ValueId>& x) { return broadcast(g, x[0], {true, false, false, true}); });
      case OpKind::kBroadcastInDim:
        return simple([](Graph& g, const std::vector<ValueId>& x) {
          return broadcast_in_dim(g, x[0], {size_of(g, x[0], 0), 3, size_of(g, x[0], 1)}, {0, 2});
        });
      case OpKind::kReshape:
        return simple([](Graph& g, const std::vector<ValueId>& x) { return reshape(g, x[0], {-1}); });
      case OpKind::kPermute:
        return simple([](Graph& g, const std::vector<ValueId>& x) { return permute(g, x[0], {1, 0}); });
      case OpKind::kExpand:
        return simple([](Graph& g, const std::vector<ValueId>& x) { return expand(g, x[0], {3, -1, -1}); });
      case OpKind::kSqueeze:
        return simple([](Graph& g, const std::vector<ValueId>& x) {
          return squeeze(g, broadcast(g, x[0], {false, true, false}), {1});
        });
      case OpKind::kSlice:
        return simple(
            [](Graph& g, const std::vector<ValueId>& x) { return slice(g, x[0], {0, 0}, {1, size_of(g, x[0], 1)}); });
      case OpKind::kStrideOrder:
        return simple([](Graph& g, const std::vector<ValueId>& x) { return stride_order(g, x[0], {0, 1}); });
      case OpKind::kPad:
        return simple([](Graph& g, const std::vector<ValueId>& x) { return pad(g, x[0], {1, 2, 0, 3}); });
      case OpKind::kCat:
        for (const int64_t axis : {0, 1})
          add(kind, d, {d, d, d}, matrices,
              [axis](Graph& g, const std::vector<ValueId>& x) { return cat(g, {x[0], x[1], x[2]}, axis); });
        return;
      case OpKind::kTriu:
        return simple([](Graph& g, const std::vector<ValueId>& x) { return add_op_triu(g, x[0]); });
      case OpKind::kSelect:
        for (const int64_t at : {0, -1})
          simple([at](Graph& g, const std::vector<ValueId>& x) { return select(g, x[0], constant_index(g, at), 1); });
        return;
      case OpKind::kFull:
        return simple([d](Graph& g, const std::vector<ValueId>& x) {
          const ValueId filled = full(g, {size_of(g, x[0], 0), size_of(g, x[0], 1)}, constant_of(g, d, 1), d);
          return where(g, unary(g, OpKind::kIsfinite, filled), filled, x[0]);
        });
      case OpKind::kIota:
        add(
            kind, d, {d}, {{7}},
            [d](Graph& g, const std::vector<ValueId>& x) {
              return binary(g, OpKind::kAdd, x[0],
                            iota(g, size_of(g, x[0], 0), constant_of(g, d, 2), constant_of(g, d, 3), d));
            },
            true);
        return;
      case OpKind::kUniform:
      case OpKind::kNormal:
        return simple([kind, d](Graph& g, const std::vector<ValueId>& x) {
          const Shape shape = {size_of(g, x[0], 0), size_of(g, x[0], 1)};
          const ValueId seed = constant(g, Dtype::kUint64, {0x123456789abcdef0, 0});
          const ValueId offset = constant(g, Dtype::kUint64, {0xffffffffffffffff, 0});
          const ValueId drawn = random(g, kind, shape, constant_of(g, d, -1), constant_of(g, d, 3), seed, offset, d);
          return where(g, unary(g, OpKind::kIsfinite, drawn), drawn, x[0]);
        });
      case OpKind::kGather:
      case OpKind::kTakeAlongAxis:
      case OpKind::kIndexSelect:
      case OpKind::kScatter:
        return indexed(kind, d);
      default:  // any other: has no case, and property_ops_agree fails
        return;
    }
  }

  // One case, of inputs with constant extents. Every result is an output. An integer input is an index below `below`.
  void add_library(OpKind kind, Dtype d, const std::string& name, const std::vector<std::vector<int64_t>>& shapes,
                   const std::function<std::vector<ValueId>(Graph&, const std::vector<ValueId>&)>& build,
                   std::optional<size_t> index = {}, int64_t below = 0) {
    OpCase c;
    c.kind = kind;
    c.dtype = d;
    c.name = std::string(row_of(kind).text) + " " + std::string(text(d)) + " " + name;
    Graph& g = c.fusion = fusion("f");
    try {
      std::vector<ValueId> given;
      for (size_t k = 0; k < shapes.size(); ++k) {
        const Dtype dtype = k == index ? Dtype::kInt64 : d;
        Shape shape;
        for (int64_t n : shapes[k]) shape.push_back(n == 1 ? Scalar(1) : Scalar(size(g)));
        InputOptions options;
        for (int64_t n : shapes[k]) options.contiguity.push_back(n == 1 ? Contiguity::kNone : Contiguity::kFalse);
        given.push_back(input(g, "x" + std::to_string(k), dtype, shape, options));
        c.inputs.push_back(spec("x" + std::to_string(k), dtype, shapes[k],
                                shapes[k].size() == 2 && k == 0 ? Layout::kPermuted : Layout::kContiguous, 5 + k,
                                true));
        if (k == index) c.inputs.back().low = 0, c.inputs.back().high = static_cast<double>(below);
      }
      for (ValueId v : build(g, given)) output(g, v);
    } catch (const Error& e) {
      if (row_of(e.code).outcome == Outcome::kInternal) throw;
      ++result_.refused;
      return;
    }
    result_.cases.push_back(std::move(c));
  }

  // Ops that ATen alone computes.
  void library(OpKind kind, Dtype d) {
    using Values = std::vector<ValueId>;
    const auto add = [&](const std::string& name, const std::vector<std::vector<int64_t>>& shapes,
                         const std::function<Values(Graph&, const Values&)>& build) {
      add_library(kind, d, name, shapes, build);
    };
    switch (kind) {
      case OpKind::kMatmul: {
        const auto build = [](Graph& g, const Values& x) { return Values{matmul(g, x[0], x[1])}; };
        add("matrices", {{5, 7}, {7, 3}}, build);
        add("row and column", {{9}, {9}}, build);
        add("row and matrices", {{4}, {3, 4, 2}}, build);
        add("batches", {{2, 1, 3, 5}, {4, 5, 2}}, build);
        add("no terms", {{3, 0}, {0, 4}}, build);
        return add("many terms", {{3, 515}, {515, 2}}, build);
      }
      case OpKind::kLinear: {
        const auto build = [](Graph& g, const Values& x) {
          return Values{linear(g, x[0], x[1], x.size() > 2 ? x[2] : ValueId())};
        };
        add("with bias", {{5, 7}, {3, 7}, {3}}, build);
        add("without bias", {{2, 5, 7}, {3, 7}}, build);
        return add("vector", {{4, 7}, {7}}, build);
      }
      case OpKind::kGroupedMm: {
        const auto build = [](Graph& g, const Values& x) {
          const ValueId ends =
              iota(g, 3, constant_of(g, Dtype::kInt32, 1), constant_of(g, Dtype::kInt32, 2), Dtype::kInt32);
          return Values{grouped_mm(g, x[0], x[1], ends)};
        };
        add("rows", {{6, 4}, {3, 4, 2}}, build);
        add("columns", {{3, 2, 4}, {4, 5}}, build);
        return add("terms", {{2, 5}, {5, 3}}, build);
      }
      case OpKind::kCumsum:
      case OpKind::kCumprod: {
        const auto build = [kind](Graph& g, const Values& x) {
          return Values{kind == OpKind::kCumsum ? cumsum(g, x[0], -1) : cumprod(g, x[0], -1)};
        };
        add("rows", {{5, 7}}, build);
        add("none", {{3, 0}}, build);
        return add("long", {{517}}, build);
      }
      case OpKind::kCummin:
      case OpKind::kCummax: {
        const auto build = [kind](Graph& g, const Values& x) {
          const Extremes e = kind == OpKind::kCummin ? cummin(g, x[0], 0) : cummax(g, x[0], 0);
          return Values{e.values, e.indices};
        };
        add("columns", {{7, 5}}, build);
        return add("one", {{1}}, build);
      }
      case OpKind::kArgsort:
        for (const bool descending : {false, true})
          add(descending ? "descending" : "ascending", {{7, 9}}, [descending](Graph& g, const Values& x) {
            return Values{argsort(g, x[0], 1, {.descending = descending, .name = {}})};
          });
        return;
      case OpKind::kTopk:
        for (const bool largest : {false, true})
          add(largest ? "largest" : "smallest", {{7, 9}}, [largest](Graph& g, const Values& x) {
            const Extremes e = topk(g, x[0], 4, 1, {.largest = largest, .names = {}});
            return Values{e.values, e.indices};
          });
        return;
      case OpKind::kSdpfaFwd:
      case OpKind::kSdpfaBwd:
        for (const bool causal : {false, true})
          add(causal ? "causal" : "full", {{2, 3, 5, 4}, {2, 3, 6, 4}, {2, 3, 6, 2}, {2, 3, 5, 2}},
              [kind, causal](Graph& g, const Values& x) {
                const AttentionOptions options{.causal = causal, .scale = {}, .names = {}};
                const Attention a = sdpfa_fwd(g, x[0], x[1], x[2], options);
                if (kind == OpKind::kSdpfaFwd) return Values{a.output, a.log_sumexp};
                const AttentionGradient r = sdpfa_bwd(g, x[3], x[0], x[1], x[2], a, options);
                return Values{r.query, r.key, r.value};
              });
        return;
      case OpKind::kScaledMm:
        for (const Dtype dtype : {Dtype::kBfloat16, Dtype::kFloat}) {
          const auto build = [dtype](Graph& g, const Values& x) {
            const auto ones = [&](ValueId v, int64_t axis) {
              const ValueId column = select(g, v, constant_index(g, 0), axis);
              return unary(g, OpKind::kAbs, cast(g, column, Dtype::kFloat));
            };
            const ValueId bias = cast(g, select(g, x[1], constant_index(g, -1), 0), dtype);
            const ValueId tensor = constant_tensor(g, 0.25);
            return Values{scaled_mm(g, x[0], x[1], tensor, tensor, {.dtype = dtype}),
                          scaled_mm(g, x[0], x[1], ones(x[0], 1), ones(x[1], 0), {.bias = bias, .dtype = dtype})};
          };
          add(std::string("to ") + std::string(text(dtype)), {{5, 7}, {7, 3}}, build);
        }
        return;
      case OpKind::kScatterAdd:
        for (const int64_t axis : {0, 1})
          add_library(
              kind, d, "along " + std::to_string(axis),
              {{4, 5}, {axis == 0 ? 9 : 3, axis == 0 ? 5 : 9}, {axis == 0 ? 9 : 3, axis == 0 ? 5 : 9}},
              [axis](Graph& g, const Values& x) { return Values{scatter_add(g, x[0], x[1], x[2], axis)}; }, 1, 4);
        return add_library(
            kind, d, "one axis", {{3}, {17}, {17}},
            [](Graph& g, const Values& x) { return Values{scatter_add(g, x[0], x[1], x[2], 0)}; }, 1, 3);
      case OpKind::kIndexPutAccumulate:
        return add_library(
            kind, d, "rows", {{4, 3}, {9}, {9, 3}},
            [](Graph& g, const Values& x) { return Values{index_put_accumulate(g, x[0], x[1], x[2])}; }, 1, 4);
      default:  // any other: has no case, and property_ops_agree fails
        return;
    }
  }

  static ValueId constant_tensor(Graph& g, double number) {
    return full(g, {}, constant_of(g, Dtype::kFloat, number), Dtype::kFloat);
  }

  static ValueId add_op_triu(Graph& g, ValueId x) {
    return g[add_op(g, Graph::body(), OpKind::kTriu, {x, constant_index(g, 1)})].results[0];
  }

  // The index has its own shape and values below the axis' extent.
  void indexed(OpKind kind, Dtype d) {
    for (const Dtype index_dtype : {Dtype::kInt64, Dtype::kInt32}) {
      OpCase c;
      c.kind = kind;
      c.dtype = d;
      c.name = std::string(row_of(kind).text) + " " + std::string(text(d)) + " by " + std::string(text(index_dtype));
      Graph& g = c.fusion = fusion("f");
      const bool one_axis = kind == OpKind::kIndexSelect;
      try {
        const ValueId m = size(g), n = size(g), k = size(g);
        const ValueId x = input(g, "x0", d, {m, n});
        const ValueId index = one_axis ? input(g, "index", index_dtype, {k}) : input(g, "index", index_dtype, {m, k});
        c.inputs.push_back(spec("x0", d, {5, 7}, Layout::kContiguous, 1, false));
        InputSpec chosen = spec("index", index_dtype, one_axis ? std::vector<int64_t>{4} : std::vector<int64_t>{5, 4},
                                Layout::kContiguous, 2, true);
        chosen.low = 0;
        chosen.high = 7;
        if (kind == OpKind::kScatter)
          chosen.high = 1;  // ATen does not define the winner among several sources, so use one column
        if (kind == OpKind::kScatter) chosen.shape = {5, 1};
        c.inputs.push_back(chosen);
        ValueId y;
        if (kind == OpKind::kGather) y = gather(g, x, index, 1);
        if (kind == OpKind::kTakeAlongAxis) y = take_along_axis(g, x, index, 1);
        if (kind == OpKind::kIndexSelect) y = index_select(g, x, index, 1);
        if (kind == OpKind::kScatter) {
          const ValueId src = input(g, "src", d, {m, k});
          c.inputs.push_back(spec("src", d, {5, 1}, Layout::kContiguous, 3, false));
          y = scatter(g, x, index, src, 1);
        }
        output(g, y);
      } catch (const Error& e) {
        if (row_of(e.code).outcome == Outcome::kInternal) throw;
        ++result_.refused;
        continue;
      }
      result_.cases.push_back(std::move(c));
    }
  }

  OpCases result_;
};

}  // namespace

OpCases op_cases(OpKind kind) { return Maker().run(kind); }

std::vector<OpKind> ops_with_cases() {
  std::vector<OpKind> result;
  for (const OpRow& row : op_rows()) {
    const bool is_index_arithmetic =
        row.kind == OpKind::kFloorDiv || row.kind == OpKind::kFloorMod || row.kind == OpKind::kCeilDiv;
    if (row.at(Level::kMath) && !demands(row.kind, kSignature) && !is_index_arithmetic) result.push_back(row.kind);
  }
  return result;
}

}  // namespace fusebox::test
