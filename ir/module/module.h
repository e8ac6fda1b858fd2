// `Module`: the contents of a file, which are named graphs, step lists, segmentations and default inputs. It is a
// value, like Graph.
//
// Invariants (checked by verify): graphs of one level have different names. A step list, a segmentation or a list of
// inputs names a graph of the module.
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

// A list of steps for one graph.
struct StepList {
  std::string name;  // the name of the list, as one graph may have several; empty: the graph's default
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

// Ops of a fusion, named by their first result. An op may be in several segments; each computes it.
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
  // Compares numbers as the text shows them: -0 differs from 0, and NaN equals NaN.
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
// The first graph of level math, or the first graph if there is none. `run` runs it.
const Graph& main_graph(const Module& m);
// The first step list of a graph, or the one of this name.
const StepList* find_steps(const Module& m, std::string_view graph, std::string_view name = {});
const InputSpecs* find_input_specs(const Module& m, std::string_view graph, std::string_view where);

}  // namespace fusebox
