// Random small fusions of two sizes, and inputs for them. They contain patterns that passes and planners look for:
// neutral constants, casts there and back, moves and their reverse, repeated ops, unread ops, scalars, outputs in
// place.
//
//   Graph g = random_fusion(7);                       // the same for the same seed, on every machine
//   run(g, random_inputs(g, random))
#pragma once

#include <algorithm>
#include <vector>

#include "ir/build/builder.h"
#include "ir/table/error.h"
#include "replay/data/input.h"
#include "tests/support/random_module.h"

namespace fusebox::testing {

struct RandomFusionOptions {
  bool aliases = false;  // outputs that overwrite inputs
};

// Builds one fusion of two sizes.
class FusionGenerator {
 public:
  FusionGenerator(uint64_t seed, RandomFusionOptions options)
      : random_(seed), aliases_(options.aliases), g_(fusion("random")) {}

  Graph run() {
    const auto n = sizes(g_, {"m", "n"});
    const Shape shape = {n[0], n[1]};
    scalars_ = {n[0], n[1]};
    for (Dtype d : {Dtype::kFloat, Dtype::kBfloat16, Dtype::kInt32, Dtype::kBool})
      tensors_.push_back(input(g_, "x" + std::to_string(tensors_.size()), d, shape));
    for (int i = 0; i < 16; ++i) {
      try {
        step();
      } catch (const Error& e) {
        // The op does not accept these operands. The graph is unchanged.
        if (e.code == ErrorCode::kInternal) throw;
      }
    }
    const auto given = inputs(g_);
    std::vector<bool> is_overwritten(given.size());
    for (int i = 0; i < 3; ++i) {
      const ValueId v = random_.pick(tensors_);
      if (g_[g_[v].def].kind == OpKind::kInput) continue;
      const size_t k = random_.below(given.size());
      const bool in_place = aliases_ && !is_overwritten[k] && g_[given[k]].dtype == g_[v].dtype && has_shape(v, n);
      is_overwritten[k] = is_overwritten[k] || in_place;
      output(g_, v, in_place ? given[k] : ValueId());
    }
    output(g_, tensors_.back());
    return compact(g_);
  }

 private:
  ValueId number(Dtype d) {
    const double values[] = {0.0, -0.0, 1.0, 1.0, -1.0, 2.0};
    return constant_of(g_, d, values[random_.below(std::size(values))]);
  }
  ValueId any() { return random_.pick(tensors_); }
  void add(ValueId v) { (g_.is_tensor(v) ? tensors_ : scalars_).push_back(v); }

  void step() {
    switch (random_.below(15)) {
      case 0:
      case 1: {
        const OpKind kinds[] = {OpKind::kAdd,        OpKind::kSub,        OpKind::kMul,
                                OpKind::kTruediv,    OpKind::kDiv,        OpKind::kBitwiseOr,
                                OpKind::kBitwiseXor, OpKind::kBitwiseAnd, OpKind::kMaximum};
        const ValueId x = any();
        const Dtype d = random_.one_in(3) ? Dtype::kDouble : g_[x].dtype;
        const ValueId c = number(d);
        const OpKind kind = kinds[random_.below(std::size(kinds))];
        return add(random_.one_in(2) ? binary(g_, kind, x, c) : binary(g_, kind, c, x));
      }
      case 2: {
        const OpKind kinds[] = {OpKind::kAdd, OpKind::kMul, OpKind::kMinimum, OpKind::kLogicalAnd, OpKind::kEq};
        const ValueId x = any(), y = random_.one_in(3) ? x : any();
        return add(binary(g_, kinds[random_.below(std::size(kinds))], x, y));
      }
      case 3: {
        const OpKind kinds[] = {OpKind::kNeg,  OpKind::kNeg, OpKind::kAbs, OpKind::kFloor, OpKind::kCeil,
                                OpKind::kRelu, OpKind::kSet, OpKind::kSet, OpKind::kTrunc};
        const OpKind kind = kinds[random_.below(std::size(kinds))];
        const ValueId y = unary(g_, kind, any());
        add(y);
        return random_.one_in(2) ? add(unary(g_, kind, y)) : void();
      }
      case 4:
      case 5: {
        const Dtype dtypes[] = {Dtype::kHalf,       Dtype::kBfloat16,   Dtype::kFloat, Dtype::kDouble,
                                Dtype::kInt8,       Dtype::kInt16,      Dtype::kInt32, Dtype::kInt64,
                                Dtype::kFloat8E4m3, Dtype::kFloat8E5m2, Dtype::kUint8, Dtype::kBool};
        const ValueId x = any();
        const ValueId y = cast(g_, x, dtypes[random_.below(std::size(dtypes))]);
        add(y);
        return random_.one_in(2) ? add(cast(g_, y, g_[x].dtype)) : void();
      }
      case 6:
      case 7: {
        const ValueId x = any();
        Axes dims(rank_of(g_, x));
        for (size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
        if (dims.size() > 1) std::rotate(dims.begin(), dims.begin() + 1, dims.end());
        return add(permute(g_, x, dims));
      }
      case 8: {
        const ValueId x = any();
        std::vector<bool> mask(rank_of(g_, x) + 1);
        const size_t axis = random_.below(mask.size());
        mask[axis] = true;
        const ValueId y = broadcast(g_, x, mask);
        add(y);
        return random_.one_in(2) ? add(squeeze(g_, y, {static_cast<int64_t>(axis)})) : void();
      }
      case 9: {
        const ValueId x = any();
        Shape shape;
        for (size_t i = 0; i < rank_of(g_, x); ++i) shape.push_back(size_of(g_, x, static_cast<int64_t>(i)));
        const ValueId flat = reshape(g_, x, {-1});
        add(flat);
        return add(reshape(g_, flat, shape));
      }
      case 10: {
        const ValueId x = any();
        Shape starts, stops;
        const bool all = random_.one_in(2);
        for (size_t i = 0; i < rank_of(g_, x); ++i) {
          starts.push_back(all || i > 0 ? 0 : 1);
          stops.push_back(size_of(g_, x, static_cast<int64_t>(i)));
        }
        return add(slice(g_, x, starts, stops));
      }
      case 11: {
        const ValueId s = random_.pick(scalars_);
        const OpKind kinds[] = {OpKind::kAdd, OpKind::kMul, OpKind::kFloorDiv, OpKind::kSub};
        add(binary(g_, kinds[random_.below(std::size(kinds))], s, number(Dtype::kIndex)));
        return add(mul(g_, any(), cast(g_, random_.pick(scalars_), Dtype::kFloat)));
      }
      case 12: {
        const ValueId x = any();
        return add(reduce(g_, random_.one_in(2) ? OpKind::kSum : OpKind::kMax, x, {0}));
      }
      case 13: {
        // The rows of a tensor, or of a cast of it, in reverse order.
        ValueId x = any();
        if (random_.one_in(2)) x = cast(g_, x, random_.one_in(2) ? Dtype::kFloat : Dtype::kInt16);
        const ValueId m = size_of(g_, x, 0);
        const ValueId last = sub(g_, m, constant_of(g_, Dtype::kIndex, 1));
        const ValueId rows = iota(g_, m, last, constant_of(g_, Dtype::kIndex, -1));
        return add(index_select(g_, x, rows, 0));
      }
      default: {
        const ValueId x = any();
        if (random_.one_in(6)) {
          // Expands all axes to the last extent. Only the inputs tell whether an axis stretches.
          const ValueId n = size_of(g_, x, -1);
          return add(expand(g_, x, Shape(rank_of(g_, x), n)));
        }
        // The same op again, with the same operands.
        const Op op = g_[g_[x].def];
        if (op.kind == OpKind::kInput) return;
        return add(g_[add_op(g_, Graph::body(), op.kind, op.operands, op.attrs)].results[0]);
      }
    }
  }

  bool has_shape(ValueId v, const std::vector<ValueId>& extents) const {
    const auto axes = logical_without_reductions(g_, g_.tensor_of(v));
    if (axes.size() != extents.size()) return false;
    for (size_t i = 0; i < axes.size(); ++i)
      if (g_[axes[i]].iter_type != IterType::kIteration || g_[axes[i]].extent != extents[i]) return false;
    return true;
  }

  Random random_;
  bool aliases_;
  Graph g_;
  std::vector<ValueId> tensors_, scalars_;
};

inline Graph random_fusion(uint64_t seed, RandomFusionOptions options = {}) {
  return FusionGenerator(seed, options).run();
}

inline std::vector<Argument> random_inputs(const Graph& g, Random& random) {
  const int64_t shapes[][2] = {{1, 1}, {3, 5}, {7, 1}, {4, 4}, {1, 6}};
  const auto& shape = shapes[random.below(std::size(shapes))];
  std::vector<Argument> result;
  for (ValueId v : inputs(g)) {
    InputSpec spec;
    spec.name = g[v].name;
    spec.dtype = g[v].dtype;
    spec.shape = {shape[0], shape[1]};
    spec.generator = random.one_in(2) ? InputGenerator::kBoundary : InputGenerator::kIntegers;
    spec.low = g[v].dtype == Dtype::kBool ? 0 : -3;
    spec.high = g[v].dtype == Dtype::kBool ? 2 : 4;
    spec.seed = random.next() % 1000;
    result.push_back(make_argument(spec));
  }
  return result;
}

}  // namespace fusebox::testing
