// The index arithmetic of a kernel as functions of its threads, loops and parameters: evaluated op by op at points,
// with nothing of the index algebra, the builder or an executor.
//
// Meaning. A point gives each thread dimension an index below the launch's extent, each loop an iteration, and each
// parameter a value. Conditions are not looked at: the functions of a branch are those of all threads. A value that
// memory or a real number is part of has no function.
//
// Invariants: rows that differ are other functions; what `holds` says is so at every point; the same seed gives the
// same points.
//
//   KernelPoints points(kernel, {6, 1, 1, 32, 1, 1}, 7);
//   points.row(i)                              // the values of %i at kPoints random points
//   points.holds(two, region, [](auto v) { return v[0] == v[1]; })   // at every point; nothing: too many
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
  static constexpr int64_t kMostSteps = int64_t{1} << 17;  // ops evaluated for one question
  using Row = std::array<int64_t, kPoints>;

  // `launch`: the extents of grid x, y, z and block x, y, z.
  KernelPoints(const Graph& kernel, std::array<int64_t, 6> launch, uint64_t seed);

  bool has_function(ValueId v) const { return is_known_[v.index]; }
  // Whether it is made of threads, whole loops and arithmetic alone: of no parameter, no xor, no remainder of what may
  // be negative, and no unrolled loop that is a part of one.
  bool is_closed(ValueId v) const { return (support_[v.index] & (kOpen | kXor | kPart)) == 0; }
  // Whether it is the index of a thread or of a loop.
  bool is_variable(ValueId v) const { return !g_[v].def || g_[g_[v].def].kind == OpKind::kThreadIndex; }
  const Row& row(ValueId v) const { return rows_[v.index]; }
  // The points at which a region's loops run, a bit each.
  uint64_t live(RegionId r) const { return live_[r.index]; }

  // Whether it is true at all points where the region's loops run. A parameter takes a few values.
  std::optional<bool> holds(std::span<const ValueId> values, RegionId region,
                            const std::function<bool(std::span<const int64_t>)>& law) const;

 private:
  // Bits of what a value is made from: a thread dimension or a loop each, then what makes it less than closed.
  static constexpr size_t kMostVariables = 61;
  static constexpr uint64_t kPart = uint64_t{1} << 61, kXor = uint64_t{1} << 62, kOpen = uint64_t{1} << 63;
  struct Variable {
    RegionId loop;  // or
    int dimension = 0;
    std::vector<ValueId> values;  // that are this variable
  };
  // One step of the evaluation of a value: a variable, or an op.
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
  std::vector<OpId> opener_;       // by region: its `for`
  std::vector<RegionId> outside_;  // by region
  bool is_whole_ = true;           // every loop's bounds have functions
  bool has_parts_ = false;         // some loop begins where another ended
};

}  // namespace fusebox::fuzz
