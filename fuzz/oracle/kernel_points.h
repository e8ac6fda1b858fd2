// Treats a kernel's index arithmetic as functions of its threads, loops and parameters and evaluates them op by op at
// points. Uses neither the index algebra, nor the builder, nor an executor.
//
// A point gives each thread dimension an index below the launch's extent, each loop an iteration, and each parameter a
// value. Conditions are ignored: the functions in a branch are evaluated for all threads. A value computed from memory
// or from a real number has no function.
//
// Invariants: different rows belong to different functions; what `holds` confirms is true at every point; the same seed
// gives the same points.
//
//   KernelPoints points(kernel, {6, 1, 1, 32, 1, 1}, 7);
//   points.row(i)                              // the values of %i at kPoints random points
//   points.holds(two, region, [](auto v) { return v[0] == v[1]; })   // true at every point; empty: too many points
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "fuzz/base/random_source.h"
#include "ir/graph/graph.h"

namespace fusebox::fuzz {

class KernelPoints {
 public:
  static constexpr int kPoints = 64;
  static constexpr int64_t kMostSteps = int64_t{1} << 17;  // ops evaluated in one call
  using Row = std::array<int64_t, kPoints>;

  // `launch`: the extents of grid x, y, z and block x, y, z.
  KernelPoints(const Graph& kernel, std::array<int64_t, 6> launch, uint64_t seed);

  bool has_function(ValueId v) const { return is_known_[v.index]; }
  // True if the value is computed only from threads, whole loops and plain arithmetic: no parameter, no xor, no
  // remainder of a possibly negative value, and no unrolled loop that continues another one.
  bool is_closed(ValueId v) const { return (support_[v.index] & (kOpen | kXor | kPart)) == 0; }
  // True if the value is a thread's or a loop's index.
  bool is_variable(ValueId v) const { return !g_[v].def || g_[g_[v].def].kind == OpKind::kThreadIndex; }
  const Row& row(ValueId v) const { return rows_[v.index]; }
  // The points at which a region's loops run, one bit each.
  uint64_t live(RegionId r) const { return live_[r.index]; }

  // Whether the law is true at all points where the region's loops run. A parameter takes a few values. Empty if there
  // are too many points.
  std::optional<bool> holds(std::span<const ValueId> values, RegionId region,
                            const std::function<bool(std::span<const int64_t>)>& law) const;

 private:
  // Bits of a value's support: one for each thread dimension and loop, then three for things that make it less than
  // closed.
  static constexpr size_t kMostVariables = 61;
  static constexpr uint64_t kPart = uint64_t{1} << 61, kXor = uint64_t{1} << 62, kOpen = uint64_t{1} << 63;
  struct Variable {
    RegionId loop;  // or
    int dimension = 0;
    std::vector<ValueId> values;  // the values that are this variable
  };
  // One step of an evaluation: a variable or an op.
  struct Item {
    bool is_variable = false;
    uint32_t index = 0;
  };

  void walk(RegionId region);
  void enter_loop(const Op& op, RegionId inside, RegionId outside);
  void sample_op(OpId id);
  int64_t parameter(ValueId v, int turn) const;

  const Graph& g_;
  std::array<int64_t, 6> launch_;
  uint64_t seed_;
  RandomSource random_;
  std::vector<Row> rows_;
  std::vector<bool> is_known_;
  std::vector<uint64_t> support_, live_;
  std::vector<Variable> variables_;
  std::vector<Item> order_;
  std::vector<OpId> opener_;       // for each region: its `for`
  std::vector<RegionId> outside_;  // for each region: the enclosing one
  bool is_whole_ = true;           // the bounds of all loops have functions
  bool has_parts_ = false;         // some loop begins where another one ended
};

}  // namespace fusebox::fuzz
