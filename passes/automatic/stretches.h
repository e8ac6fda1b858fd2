// Stretches of a fusion: runs of its tensor ops in canonical order. They are what `cut` chooses among. The functions here
// say which ops a stretch computes, what it reads and stores, and whether one kernel may have all of that.
//
// A stretch leaves out ops that only other stretches need, and takes in cheap ops before it: an up-cast, a broadcast, a
// constant tensor or a little arithmetic on one large tensor is computed again where it is read.
//
//   const Stretches all(fusion, defects);
//   const std::vector<bool> needed = all.needed_of({0, all.size()});
//   const std::vector<OpId> ops = all.ops_of({0, all.size()}, needed);   // every op that an output needs
#pragma once

#include <compare>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/table/defect.h"

namespace fusebox {

struct Stretch {
  size_t begin = 0, end = 0;  // positions in the order of the ops
  auto operator<=>(const Stretch&) const = default;
  size_t size() const { return end - begin; }
};

class Stretches {
 public:
  // The fusion must outlive this. `views` are ops that are in no stretch; what they read of other ops is stored.
  Stretches(const Graph& g, const Defects& defects, const std::vector<OpId>& views = {});

  // How many ops make tensors.
  size_t size() const { return order_.size(); }
  OpId op(size_t position) const { return order_[position]; }
  const std::vector<std::vector<OpId>>& readers() const { return readers_; }  // by value
  const std::vector<bool>& is_output() const { return is_output_; }           // by value

  // Values that other stretches read, if each of them computes cheap ops again: then they read what these ops read.
  std::vector<bool> needed_of(Stretch s) const;
  // The ops of a stretch that the needed values need, and the cheap ops before it that these read.
  std::vector<OpId> ops_of(Stretch s, const std::vector<bool>& needed) const;
  // The tensors that ops read and do not make, in id order.
  std::vector<ValueId> inputs_of(const std::vector<OpId>& ops) const;
  // By begin, from `first` on: what the stretch from there to `end` costs as a kernel: the cost of a launch, and that of each
  // value that it reads or stores. A stretch without ops costs nothing. Each is made from the one that is shorter by an op.
  std::vector<double> costs_until(size_t first, size_t end, double of_launch, std::span<const double> of_values) const;
  // Stretches of which none reads what an op of another one makes, but what each makes again of inputs. In order, and all ops.
  std::vector<Stretch> independent() const;

  // Whether no single kernel has these ops together, whatever its schedule.
  bool is_apart(const std::vector<OpId>& ops, const std::vector<bool>& needed) const;
  // The number of reductions that stand one behind the other.
  int depth_of(const std::vector<OpId>& ops) const;

 private:
  static constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

  bool is_cheap(OpId op) const;
  // The ops of arithmetic that stand one behind the other, this one the last. More than are made again if it reads two large
  // tensors, or one of more bytes than it makes.
  int arithmetic_on(OpId op) const;
  // The same of what makes a tensor; of random numbers as many as are made again, so that nothing is made of them twice.
  int arithmetic_behind(ValueId v) const;
  // The last operand that is a tensor and not small; none if there is none.
  ValueId large_operand(OpId op) const;
  // Whether the tensor is an input that an output lies over, or arithmetic on one.
  bool is_of_overwritten(ValueId v) const;
  // Whether the tensor is stretched to its size, or filled: it is read from fewer bytes, or from none.
  bool is_small(ValueId v) const;
  // Whether a stretch that begins behind the op at this position takes it in, because `reader` reads its result `v`.
  bool is_taken_in(size_t at, ValueId v, OpId reader) const;
  // Whether the reader finds the tensor's elements in memory: ATen alone computes it, data or a scalar tell it which ones, or
  // it takes them as two parts of its result.
  bool wants_memory(ValueId v, OpId reader) const;
  std::vector<bool> among(const std::vector<OpId>& ops) const;

  const Graph& g_;
  const Defects defects_;
  std::vector<std::vector<OpId>> readers_;
  std::vector<OpId> order_;                       // the ops that make tensors
  std::vector<size_t> positions_;                 // by op: its position in the order
  std::vector<int> arithmetic_;                   // by position
  std::vector<bool> is_cheap_;                    // by position
  std::vector<bool> is_output_, is_overwritten_;  // by value
};

}  // namespace fusebox
