// `Module`: what a file holds: named graphs, step lists, segmentations and default inputs. A value, like Graph.
//
//   fusion @f { … }     steps @f { … }     segments @f { … }     inputs @f host { %x = f32[5, 7] normal seed 1 }
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/module/step.h"

namespace fusebox {

// A list of steps for the graph of the same name.
struct StepList {
  std::string name;  // of the list: one graph may have several; empty: the graph's default
  std::string graph;
  std::vector<Step> steps;
  bool operator==(const StepList&) const = default;
};

// A tensor or scalar that crosses a segment's border.
struct Crossing {
  std::string value;
  std::vector<int64_t> allocation_order;  // logical axes, outermost first; empty: in order
  std::vector<Contiguity> contiguity;     // empty: contiguous
  std::string alias;                      // the value whose memory it shares, or empty
  bool operator==(const Crossing&) const = default;
};

// Ops of the fusion, named by their first result; an op may be in several segments, recomputed.
struct Segment {
  std::string name;
  SegmentExecutor executor = SegmentExecutor::kKernel;
  std::vector<std::string> ops;
  std::vector<Crossing> inputs;
  std::vector<Crossing> outputs;
  std::vector<Step> steps;
  bool operator==(const Segment&) const = default;
};

struct Segmentation {
  std::string graph;
  std::vector<Segment> segments;  // in an order in which they can run
  bool operator==(const Segmentation&) const = default;
};

// One input: a tensor's shape, strides (in elements; empty: contiguous), offset and values, or a scalar's value.
struct InputSpec {
  std::string name;
  Dtype dtype = Dtype::kFloat;
  bool is_scalar = false;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  int64_t offset = 0;  // elements before the first one in its storage
  InputGenerator generator = InputGenerator::kNormal;
  uint64_t seed = 0;
  double low = 0;  // uniform, integers: [low, high); normal: mean and deviation; constant: low
  double high = 1;
  ConstantBits value;  // a scalar's
  // As the text shows them: -0 is not 0, and NaN is NaN.
  bool operator==(const InputSpec& other) const;
};

struct InputSpecs {
  std::string graph;
  std::string where;  // "host": small; "gpu": full size
  std::vector<InputSpec> specs;
  bool operator==(const InputSpecs&) const = default;
};

struct Module {
  std::vector<Graph> graphs;
  std::vector<StepList> step_lists;
  std::vector<Segmentation> segmentations;
  std::vector<InputSpecs> input_specs;
  bool operator==(const Module&) const = default;
};

const Graph* find_graph(const Module& m, std::string_view name);
// The fusion that `run` runs: the only graph of level math, or the first.
const Graph& main_graph(const Module& m);
// The first step list of a graph, or of that name.
const StepList* find_steps(const Module& m, std::string_view graph, std::string_view name = {});
const InputSpecs* find_input_specs(const Module& m, std::string_view graph, std::string_view where);

}  // namespace fusebox
