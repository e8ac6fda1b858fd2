// Rows that are reduced, and whose parts are reduced too: a norm whose results are scaled by the largest of each block of 128.
// A block keeps a row in registers. The lanes of a warp that take a part combine it by shuffles.
//
//   // rms norm of bf16[8192, 4096] with scales of 128: vector 8, part 16 lanes, two parts beside one another in a warp, 8 warps
#include <algorithm>

#include "ir/scalar/scalar_form.h"
#include "passes/schedule/kept_bytes.h"
#include "passes/schedule/kept_rows.h"
#include "passes/schedule/reduction_limits.h"
#include "passes/schedule/reduction_loops.h"
#include "passes/schedule/scheduler.h"

namespace fusebox {
namespace {

// What the lanes and warps of a block take of a row.
struct Parts {
  int64_t lanes = 0;      // of a part
  bool has_tail = false;  // some of them have no elements
  int64_t warps = 0, chunks = 0, longest = 0;
};

// Nothing, and why, if a part is no axis of known length that the lanes of a warp read at once, or a row does not fit.
std::optional<Parts> parts_of(const ScheduleView& view, const ReductionSpace& space, const ReductionAccess& access,
                              std::string& why) {
  const Graph& g = view.fusion;
  const std::string row = "%" + g[space.reference].name;
  if (!space.is_reduced(access.innermost)) return why = "kept axes of " + row + " lie innermost", std::nullopt;
  const auto& axes = g.tensor_of(space.parts[0]).logical;
  const auto reduces = [&](DomainId d) { return g[d].iter_type == IterType::kReduction; };
  const auto last = std::ranges::find_if(axes, reduces);
  if (std::ranges::count_if(axes, reduces) != 1 || space.axis_of(*last) != access.innermost)
    return why = "the parts of " + row + " are no axis that lies innermost", std::nullopt;
  const auto length = constant_extent(g, access.innermost);
  if (!length || *length < 2) return why = "the parts of " + row + " have no constant length", std::nullopt;
  Parts result;
  const int64_t accesses = ceil_div(*length, access.vector), warp = view.device.warp;
  result.lanes = power_of_two_from(accesses);
  if (result.lanes < 2 || result.lanes > warp)
    return why = "a part of " + row + " takes " + std::to_string(accesses) + " accesses, and not the lanes of a warp",
           std::nullopt;
  result.has_tail = accesses != result.lanes;
  std::vector<DomainId> others = access.reduced;
  others.pop_back();
  const int64_t beside = warp / result.lanes, groups = ceil_div(most_of(view.sizes, others), beside);
  const int64_t bytes = kept_bytes(g, space);
  for (int64_t threads = kThreadsOfKeptRows; threads <= view.device.block_threads; threads *= 2) {
    result.warps = std::min(groups, threads / warp);
    result.chunks = ceil_div(groups, result.warps);
    const bool is_largest = 2 * threads > view.device.block_threads;
    const int64_t elements = is_largest ? kManyElements : kElementsOfParts;
    if (result.chunks > elements / access.vector) continue;
    if (ceil_div(bytes * access.vector * result.chunks, 4) > kRegistersOfParts) continue;
    result.longest = result.warps * result.chunks * beside * *length;
    return result;
  }
  return why = "the rows of " + row + " are longer than a block keeps", std::nullopt;
}

}  // namespace

std::optional<std::string> nested_declines(const ScheduleView& view) {
  std::string why;
  const auto space = ReductionSpace::find_with_parts(view.fusion, why);
  if (!space) return why;
  for (const OutputRef& out : outputs(view.fusion))
    if (out.alias) return "%" + view.fusion[out.value].name + " overwrites an input";
  if (!parts_of(view, *space, find_access(view, *space), why)) return why;
  return std::nullopt;
}

Heuristics nested_choose(const ScheduleView& view) {
  std::string why;
  const auto space = *ReductionSpace::find_with_parts(view.fusion, why);
  const ReductionAccess access = find_access(view, space);
  const Parts parts = *parts_of(view, space, access, why);
  Heuristics h{.scheduler = "nested", .choices = {}};
  h.set("axes", "inner");
  h.set("form", "registers");
  h.set("vector", access.vector);
  h.set("in_vectors", listed_in_vectors(access));
  h.set("merge", "parts");
  h.set("lanes", view.device.warp);
  h.set("part", parts.lanes);
  if (parts.has_tail) h.set("tail", 1);
  h.set("warps", parts.warps);
  h.set("chunks", parts.chunks);
  h.set("unroll", 1);
  h.set("rows", 1);
  h.set("slices", 1);
  h.set("threads", view.device.warp * parts.warps);
  h.set("blocks", 1);
  h.set("longest", parts.longest);
  return h;
}

std::vector<Step> nested_plan(const ScheduleView& view, const Heuristics& h) {
  std::string why;
  return plan_reduction(view, *ReductionSpace::find_with_parts(view.fusion, why), h);
}

}  // namespace fusebox
