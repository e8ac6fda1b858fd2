// Collectives of a cluster, whose blocks run together (codegen/runtime/cluster.cuh). A block stores its part to the
// shared memory of the others once they have arrived; so from its own arrival to the end of the exchange, a block may
// not touch the places of the parts. All blocks read the parts in the order of block numbers.
#include <algorithm>
#include <cstring>

#include "replay/host/machine.h"

namespace fusebox::host {

// The words of one cluster are told from those before it by their epochs. They are numbered anew in time: not while the
// cluster runs.
void Machine::begin_cluster(std::span<Group> groups) {
  if (epoch_ > kMaxEpoch / 2) {
    clock_.now = clock_.block_start = (epoch_ + 1) << kEpochShift;
    clock_.phase_start = phase_epoch_ << kEpochShift;
    for (const Space& s : spaces_) {
      renumber(s.writers, s.granules(), clock_, false);
      renumber(s.readers, s.granules(), clock_, false);
    }
    for (Group& g : groups) {
      if (!g.shared_writers) continue;
      const auto granules = static_cast<size_t>(geometry_.shared_bytes) / code_.shared_granule;
      std::fill_n(g.shared_writers, granules, 0);
      std::fill_n(g.shared_readers, granules, 0);
    }
    phase_epoch_ = 2;
    epoch_ = kRenumberedNow;
  }
  cluster_epoch_ = wait_epoch_ = epoch_ + 1;
}

void Machine::cluster_arrive(Group& g) {
  if (g.arrived_epoch != 0) fail(g, ErrorCode::kDivergentBarrier, 0, "a second arrival in the cluster without a wait");
  g.arrived_epoch = epoch_;
}

// The elements of a shared buffer, `elements` at least, must not have been touched since the block's arrival.
void Machine::expect_untouched(Group& g, uint32_t buffer, int64_t elements) {
  const BufferState& b = g.buffers[buffer];
  if (b.memory != MemoryType::kShared || b.elements < elements)
    fail(g, ErrorCode::kOutOfBounds, 0,
         "places for parts of fewer than " + std::to_string(elements) + " shared elements", buffer, b.elements);
  if (!options_.checks.races) return;
  for (int64_t k = 0; k < b.elements * b.granules; ++k)
    if (std::max(b.writers[k], b.readers[k]) >> kEpochShift > g.arrived_epoch)
      fail(g, ErrorCode::kRace, 0, "other blocks of the cluster store here since the block's arrival", buffer,
           k / b.granules);
}

// Takes the block's part of a reduction in its cluster.
void Machine::stage_in_cluster(Group& g, const Instruction& i, const LaneProgram::Functions& f) {
  if (g.arrived_epoch == 0)
    fail(g, ErrorCode::kRace, 0, "a part is stored to other blocks of the cluster, which may not have begun");
  advance(g);
  use_shared_workspaces(g, i);
  const uint32_t n = i.workspaces.count / 3;
  const int64_t elements = g.buffers[code_.lists[i.workspaces.begin]].elements;
  take_part(g, i, f);
  advance(g);
  const int64_t used = code_.cluster_blocks * elements * thread_member(i, 0).count;
  for (uint32_t k = 0; k < n; ++k) expect_untouched(g, code_.lists[i.workspaces.begin + n + k], 2 * used);
  for (uint32_t k = 0; k < n; ++k) use_workspace(g, code_.lists[i.workspaces.begin + n + k], 0, used, used);
}

void Machine::cluster_reduce(std::span<Group> groups, const Instruction& i, const LaneProgram::Functions& f) {
  const Member threads = thread_member(i, 0);
  const std::vector<Dtype> dtypes = exchanged(i);
  const int64_t elements = groups[0].buffers[code_.lists[i.workspaces.begin]].elements;
  std::vector<const std::vector<std::byte>*> parts(groups.size());
  for (const Group& g : groups) {
    const auto rank = static_cast<size_t>(block_member(i, g).rank) % parts.size();
    if (parts[rank])
      fail(g, ErrorCode::kRace, 0, "two blocks of the cluster store their parts at place " + std::to_string(rank));
    parts[rank] = &g.part;
  }
  std::vector<std::byte> result = *parts[0], next(result.size());
  for (int64_t r = 1; r < i.immediate; ++r) {
    next = *parts[static_cast<size_t>(r)];
    for (int64_t e = 0; e < elements; ++e) {
      Rows total{}, part{};
      for (size_t k = 0; k < dtypes.size(); ++k) {
        total[k] = result.data() + part_offset(i, e, k, threads.count);
        part[k] = next.data() + part_offset(i, e, k, threads.count);
      }
      combine(groups[0], i, f, total, part, threads.count);
    }
  }
  for (Group& g : groups) give(g, i, &result);
}

// Finishes a wait of all blocks of a cluster, or its exchange. An exchange leaves an arrival behind.
void Machine::synchronize_cluster(std::span<Group> groups) {
  const Instruction& i = awaited(groups, "other blocks of the cluster wait elsewhere");
  if (i.opcode == Opcode::kClusterReduce) cluster_reduce(groups, i, program_.functions[at_]);
  wait_epoch_ = ++epoch_;
  for (Group& g : groups) g.arrived_epoch = i.opcode == Opcode::kClusterReduce ? epoch_ : 0;
}

}  // namespace fusebox::host
