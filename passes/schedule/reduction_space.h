// The iteration space of a fusion with reductions: the axes over which all its tensors are loops, and the tensors by
// what they have of it. The schedulers of reductions decide by it.
//
// An *axis* here is a class of the tensors' axes that ops read at the same place, a broadcast with the axis that
// concretizes it. All reductions of the fusion reduce the same axes. The others are kept. A tensor is *full* if it has
// an element for each place of a reduced axis; otherwise it is *small*. A *pass* walks over the reduced axes once:
// pass 0 ends with the reductions that read no result of another, pass 1 with those that read a result of pass 0, and
// so on. Full tensors that read results of the last reductions are made in a pass of their own.
//
//   // softmax: mx = max x over [1]; s = sum (e = exp (x - mx)) over [1]; y = e / s
//   space.reductions   // mx of pass 0, s of pass 1
//   space.passes       // 3
//   space.passes_of    // x: 0 and 1;  e: 1 and 2;  y: 2
//
// A space may have *column sums* too: reductions over the kept axes, of tensors that have all axes. Only tensors without
// kept axes depend on them, and no reduction does.
//
//   // gradients of a layer norm: s1 = sum d over [1]; dx = d - s1; dw = sum e over [0]
//   space.reductions   // s1
//   space.columns      // dw
//
// Or it has *parts*: reductions over some of the axes that the others reduce. What they make is full.
//
//   // a norm with scales of blocks: s = sum x² over [1, 2]; a = max (x · rsqrt s) over [2]
//   space.reductions   // s
//   space.parts        // a
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "passes/schedule/schedule_view.h"

namespace fusebox {

class ReductionSpace {
 public:
  // Nothing if the fusion has no such space, or has column sums; `why` says why.
  static std::optional<ReductionSpace> find(const Graph& fusion, std::string& why);
  // A space with column sums. If reductions over either axes could be the column sums, those that reduce their last axis
  // are not.
  static std::optional<ReductionSpace> find_with_columns(const Graph& fusion, std::string& why);
  // A space with parts. All of them reduce the same axes.
  static std::optional<ReductionSpace> find_with_parts(const Graph& fusion, std::string& why);

  // The first result of the reduction that has the most axes. Its loops are those of the schedule.
  ValueId reference;
  std::vector<DomainId> kept, reduced;  // the axes, as domains of the reference, in its order
  std::vector<ValueId> reductions;      // the first result of each
  std::vector<ValueId> columns;         // the first result of each column sum
  std::vector<ValueId> parts;           // the first result of each reduction of parts
  int passes = 1;

  // The axis of a domain of any tensor, as a domain of the reference. None: the domain is no part of the space.
  DomainId axis_of(DomainId d) const { return by_domain_[d.index]; }
  bool is_reduced(DomainId axis) const;
  // Whether a tensor has an element for each place of a reduced axis.
  bool is_full(ValueId v) const { return is_full_[v.index]; }
  std::vector<ValueId> full_inputs(const Graph& g) const;
  // Whether it has an element for each place of a kept axis.
  bool differs_by_row(const Graph& g, ValueId v) const;
  // The passes in which the tensor is read, and those in which an output is made. Empty for a small tensor.
  const std::set<int>& passes_of(ValueId v) const { return passes_of_[v.index]; }
  // The number of reductions, one behind the other, on which the tensor depends.
  int depth_of(ValueId v) const { return depth_[v.index]; }
  // Whether the tensor depends on a column sum, or is one.
  bool is_of_columns(ValueId v) const { return is_of_columns_[v.index]; }

 private:
  // Which other reductions there may be, beside those of all reduced axes.
  enum class Others : uint8_t { kNone, kColumns, kParts };
  static std::optional<ReductionSpace> find_beside(const Graph& g, Others others, std::string& why);
  bool find_axes_of(const Graph& g, ValueId main, Others others, std::string& why);
  bool sort_columns(const Graph& g, std::string& why);
  bool sort_tensors(const Graph& g, std::string& why);
  void find_passes(const Graph& g);

  std::vector<DomainId> by_domain_;
  std::vector<bool> is_full_;             // by value
  std::vector<bool> is_of_columns_;       // by value
  std::vector<int> depth_;                // by value
  std::vector<std::set<int>> passes_of_;  // by value
};

// Whether the op reads the tensor at places that loops give, and not, or not only, where data tell.
bool reads_by_loops(const Graph& g, OpId op, ValueId tensor);
// The ops of the body that make tensors from others, in order; no inputs.
std::vector<OpId> tensor_ops(const Graph& g);
// Whether an op depends on the results of two of these reductions, each given by its first result. If blocks share the
// rows, their last blocks may differ, so that all blocks wait for both (plan_exchanges.cc).
bool are_brought_together(const Graph& g, const std::vector<ValueId>& reductions);
// Whether blocks that share the rows wait for the results of the reductions: for two at once, or because the loops of an op
// that depends on one are shared out among the blocks as well. It has a reduced axis, as a broadcast of one element, or
// reads what the rows read too.
bool are_awaited(const Graph& g, const ReductionSpace& space);
// Whether an output has an element for each place of a reduced axis.
bool stores_rows(const Graph& g, const ReductionSpace& space);
// Whether a reduction is one of running moments.
bool has_moments(const Graph& g, const ReductionSpace& space);
// The bound of the product of the domains' extents; INT64_MAX if it is not known.
int64_t most_of(const SizeClasses& sizes, const std::vector<DomainId>& domains);
// The least product of their extents that the classes allow, if there is but one domain; 0 where nothing is known.
int64_t least_of(const SizeClasses& sizes, const std::vector<DomainId>& domains);

}  // namespace fusebox
