// One to three tensors with their chains (chain.h), as a graph from which id graphs are built.
//
//   Case c{{t}};  c.build(graph);      // domain d of tensor 0 is DomainId(d)
#pragma once

#include <string>
#include <vector>

#include "fuzz/index_laws/chain.h"

namespace fusebox::index_laws {

// Tensor i + 1 reads tensor i, unchanged or transposed.
struct Case {
  std::vector<Tensor> tensors;
  bool transposed = false;  // the second tensor is transposed; the third reads it and the first
  bool branched = false;    // the third tensor reads the first

  // A graph that holds only the scalars.
  static Graph scalars() {
    Graph g;
    for (int64_t i = 0; i < kConstants; ++i) constant_index(g, i - kScalarBase);
    for (const char* name : {"n", "m"}) {
      const ValueId v = add_scalar(g, Dtype::kIndex, name);
      Op size;
      size.kind = OpKind::kSize;
      size.results = {v};
      append(g, Graph::body(), std::move(size));
    }
    return g;
  }

  // Builds into a graph from `scalars`, replacing what was built there before.
  void build(Graph& g) const {
    g.values.resize(kScalars);
    g.ops.resize(2);
    g.regions[0].ops.resize(2);
    g.domains.clear();
    g.transforms.clear();
    g.tensors.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) build(g, i);
  }

 private:
  void build(Graph& g, size_t index) const {
    static constexpr const char* kNames[] = {"x", "y", "z"};
    const Tensor& from = tensors[index];
    const fusebox::TensorId id(index);
    const ValueId value(g.values.size());
    Value& v = g.values.emplace_back();
    v.kind = ValueKind::kTensor;
    v.dtype = Dtype::kFloat;
    v.name = kNames[index];
    v.tensor = id;
    fusebox::Tensor& t = g[id];
    t = {};
    t.value = value;
    const uint32_t base = static_cast<uint32_t>(g.domains.size());
    g.domains.resize(base + static_cast<size_t>(from.count));
    for (uint32_t d = base; d < g.domains.size(); ++d) {
      g.domains[d].tensor = id;
      g.domains[d].name = "d" + std::to_string(d - base);
    }
    const auto domain = [&](int d) { return DomainId(base + static_cast<uint32_t>(d)); };
    for (size_t i = 0; i < from.axes.size(); ++i)
      g.domains[base + i].extent = ValueId(static_cast<uint32_t>(from.axes[i]));
    for (const auto* steps : {&from.op, &from.chain, &from.down})
      for (const Step& s : *steps) {
        fusebox::Transform x;
        x.inputs.push_back(domain(s.in[0]));
        if (s.two_in()) x.inputs.push_back(domain(s.in[1]));
        x.outputs.push_back(domain(s.out[0]));
        if (s.two_out()) x.outputs.push_back(domain(s.out[1]));
        x.kind = s.kind == Kind::kMerge    ? TransformKind::kMerge
                 : s.kind == Kind::kResize ? TransformKind::kResize
                 : s.two_in()              ? TransformKind::kSwizzle
                                           : TransformKind::kSplit;
        x.inner_split = s.kind != Kind::kSplitOuter;
        x.swizzle = s.kind == Kind::kCyclic ? SwizzleType::kCyclic : SwizzleType::kXor;
        if (!s.two_in()) x.factor = ValueId(static_cast<uint32_t>(s.factor));
        if (s.kind == Kind::kResize) x.right = ValueId(static_cast<uint32_t>(s.right));
        const fusebox::TransformId transform(g.transforms.size());
        for (DomainId d : x.outputs) g[d].def = transform;
        g.transforms.push_back(std::move(x));
        t.transforms.push_back(transform);
      }
    if (!from.op.empty())
      for (size_t i = 0; i < from.axes.size(); ++i) t.root.push_back(domain(static_cast<int>(i)));
    for (int d : from.logical) t.logical.push_back(domain(d));
    if (from.loops != from.logical)
      for (int d : from.loops) t.loop.push_back(domain(d));
    Op op;
    op.results = {value};
    const auto operand = [&](size_t i) { return g.tensors[i].value; };
    op.kind = OpKind::kInput;
    if (index > 0) {
      op.operands = {operand(branched && index == 2 ? 0 : index - 1)};
      op.kind = from.reshaped ? OpKind::kReshape : !from.op.empty() ? OpKind::kPad : OpKind::kSet;
      if (op.kind == OpKind::kPad) op.operands.push_back(ValueId());  // no value; the resizes hold the widths
    }
    if (transposed && index == 1) {
      op.kind = OpKind::kPermute;
      op.attrs.set(AttrKey::kDims, std::vector<int64_t>{1, 0});
    } else if (transposed && index == 2) {
      op.kind = OpKind::kAdd;
      op.operands = {operand(0), operand(1)};
    }
    const OpId def(g.ops.size());
    g.values[value.index].def = def;
    g.ops.push_back(std::move(op));
    g.regions[0].ops.push_back(def);
  }
};

}  // namespace fusebox::index_laws
