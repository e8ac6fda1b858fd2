// A fusion made ready for one nest of loops, and what the schedulers of elementwise fusions ask of it.
//
// Its loads and stores are ops of their own, so that they can be vectorized, and each tensor is read at one place.
//
//   Prepared p(view);          // cache_after %x -> x_in; cache_before %y -> y_made
//   p.loads, p.stores          // {"x_in"}, {"y"}
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "passes/schedule/loop_space.h"
#include "passes/schedule/schedule_view.h"
#include "passes/schedule/step_writer.h"

namespace fusebox {

struct Prepared {
  explicit Prepared(const ScheduleView& view);

  StepWriter w;
  std::string reference;  // an output, or the copy that a step made one
  std::vector<std::string> loads, stores;
  ReadOnce once;
  bool begins_early;  // before the launches in front have ended

  // The other tensors that the reference's transforms reach: all but those behind another one, and those without axes.
  std::vector<std::string> along_reference() const;
  bool is_behind(const std::string& tensor) const;
  // The tensors that ops make, without the listed ones.
  std::vector<std::string> all_but(const std::vector<std::string>& left_out) const;
  // Gives the tensors behind others, but the listed ones, the loops of their readers, or the parallel types of these.
  void follow_readers(const std::vector<std::string>& left_out = {});
  void parallelize_like_readers(const std::vector<std::string>& left_out = {});
  // The last steps: inlines the tensors that inline_most leaves because an op reads them as an index, and says how the kernel
  // is launched.
  void finish();
};

bool makes_tensor(const Graph& g, OpId op);
bool is_input_tensor(const Graph& g, ValueId v);
std::vector<std::string> names_of(const Graph& g, std::span<const DomainId> domains);

// Whether the tensor has no element in any run of the classes of sizes.
bool has_no_elements(const ScheduleView& view, ValueId v);
// The name of a tensor of the fusion without elements; empty if there is none.
std::string tensor_without_elements(const ScheduleView& view);
// The bytes of the widest element that is loaded or stored for each element of the reference.
int64_t widest_stream(const ScheduleView& view, ValueId reference);
// A tensor that a kernel of these ops, in order, would compute or load at too many places, with their number. A reader that
// moves elements reads at places of its own, the others at one place together. `read` are the tensors that the ops read and
// do not make. No scheduler of elementwise fusions takes such ops.
std::optional<std::pair<ValueId, int64_t>> read_too_often(const Graph& g, std::span<const OpId> ops,
                                                          std::span<const ValueId> read,
                                                          const std::vector<bool>& is_output);
// Why the ops of the fusion do not all compute or move elements, or do not fit into one nest: a lower-case clause.
std::optional<std::string> elementwise_declines(const ScheduleView& view);
// Whether an op moves elements by an offset: slice, pad or cat.
bool has_resizes(const Graph& fusion);

}  // namespace fusebox
