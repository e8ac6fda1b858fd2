// The interpreter: runs groups (blocks) of threads through a kernel's bytecode, from one suspension to the next.
//
// Invariants: a running group continues until it ends or waits for the whole grid. Its program counter, masks and
// registers say where it stands. `lanes` is the block's size rounded up, so that a row of any register is aligned.
// Lanes beyond the block are never active. A broken rule is thrown as Broken.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "replay/host/host_executor.h"
#include "replay/host/lane_program.h"
#include "replay/host/lanes.h"
#include "replay/host/shadow.h"

namespace fusebox::host {

struct Broken {
  HostFinding finding;
};

// Memory that is freed all at once and kept for the next run.
class Arena {
 public:
  std::byte* take(size_t bytes);  // aligned to 64; not initialised
  template <class T>
  T* take_array(size_t count) {
    return reinterpret_cast<T*>(take(count * sizeof(T)));
  }
  void clear();

 private:
  struct Chunk {
    std::unique_ptr<std::byte[]> memory;
    size_t size = 0;
  };
  void begin_chunk();

  std::vector<Chunk> chunks_;
  size_t used_ = 0;  // of the last chunk, with the bytes that align its start
};

struct Geometry {
  std::array<int64_t, 3> grid, block;
  int64_t blocks = 0;
  int32_t threads = 0;  // of a block
  int32_t lanes = 0;
  int64_t shared_bytes = 0;

  std::array<int64_t, 3> thread_at(int32_t lane) const;
  std::array<int64_t, 3> block_at(int64_t linear) const;
};

// The active lanes. `bits` are valid from `begin` to `end`, both tight; no other lane is active.
struct Mask {
  uint8_t* bits = nullptr;
  int32_t begin = 0, end = 0, count = 0;
  bool is_full_range() const { return count == end - begin; }
};

struct BufferState {
  std::byte* data = nullptr;
  int64_t elements = 0;
  const int64_t* extents = nullptr;  // of an argument
  int32_t* writers = nullptr;        // of the first element; null: not tracked
  int32_t* readers = nullptr;
  const uint8_t* written = nullptr;  // if it is not tracked and has holes
  uint8_t* local_written = nullptr;  // local: a row of lanes for each element
  int32_t granules = 1;              // of an element
  int32_t element_bytes = 1;
  MemoryType memory = MemoryType::kGlobal;
};

// An instruction that calls a lane function, with its operands in the registers of a group.
struct Call {
  LaneFunction function = nullptr;  // null: another kind of instruction
  bool uniform = false;
  bool counts = false;
  bool checks_always = false;  // an index result, whose function does not say whether it is bad
  bool checks_bad = false;     // an index result, whose function says whether it is bad
  LaneCall lanes;
};

struct Group {
  std::byte* registers = nullptr;  // the uniform ones, then the rows of the others
  Call* calls = nullptr;           // by instruction
  std::byte* local = nullptr;
  uint8_t* local_written = nullptr;
  std::byte* shared = nullptr;
  int32_t* shared_writers = nullptr;
  int32_t* shared_readers = nullptr;
  std::vector<Mask> masks;  // of each nesting depth, and one for predicates
  std::vector<BufferState> buffers;
  std::vector<std::byte> staged;  // values of the threads, while a collective combines them
  std::vector<std::byte> part;    // the block's part of a reduction across blocks
  bool came_last = false;         // to that reduction
  int32_t arrived_epoch = 0;      // since when its cluster may store to its shared memory; 0: it may not
  int32_t depth = 0;
  uint32_t pc = 0;
  std::array<int64_t, 3> block = {0, 0, 0};
  int64_t block_linear = 0;
  int32_t first_epoch = 0;  // of the block
  int32_t phase_epoch = 0;  // of the block in this phase

  Mask& mask() { return masks[static_cast<size_t>(depth)]; }
};

// A tracked stretch of global memory.
struct Space {
  std::byte* data = nullptr;
  int64_t bytes = 0;
  int32_t granule = 1;  // bytes
  int32_t* writers = nullptr;
  int32_t* readers = nullptr;
  std::shared_ptr<std::byte> reserved;  // holds both if the arena does not
  int64_t granules() const { return bytes / granule; }
};

// The bytes that a group takes for its registers, its local and shared memory, and their marks.
int64_t group_bytes(const Bytecode& code, const Geometry& geometry);

enum class Status : uint8_t { kEnded, kWaits };

class Machine {
 public:
  Machine(const LaneProgram& program, const Geometry& geometry, const HostOptions& options, std::vector<Space> spaces);

  // Gives a group its memory, with constants and arguments. Global buffers are the caller's.
  void prepare(Group& g, Arena& arena, std::span<const HostArgument> args);
  // The groups of a grid that synchronises, which all stand somewhere in the kernel until the last one ends.
  void run_together(std::span<Group> groups) { together_ = groups; }
  void start(Group& g, int64_t block);
  Status run(Group& g);
  // Finishes a grid-wide synchronisation that every group has reached, and starts the next phase.
  void synchronize_grid(std::span<Group> groups);
  void resume(Group& g);
  // Makes ready to run the blocks of one cluster together, and finishes a wait that all of them have reached.
  void begin_cluster(std::span<Group> groups);
  void synchronize_cluster(std::span<Group> groups);
  [[noreturn]] void fail(const Group& g, ErrorCode code, int32_t lane, std::string detail, uint32_t buffer = kNoBuffer,
                         int64_t element = -1) const;
  // Refuses the wait at which a group stands, whichever group ran last.
  [[noreturn]] void refuse_wait(const Group& g, std::string detail);

  int64_t thread_instructions = 0;
  int64_t instructions = 0;
  std::vector<Space>& spaces() { return spaces_; }

 private:
  enum class Pattern : uint8_t { kOne, kConsecutive, kScattered };

  // -- registers and masks
  const BytecodeRegister& info(uint32_t r) const { return code_.registers[r]; }
  std::byte* at(Group& g, uint32_t r) const { return g.registers + places_[r].offset; }
  uint8_t stride(uint32_t r) const { return places_[r].stride; }
  const int64_t* index_at(Group& g, uint32_t r) const { return reinterpret_cast<const int64_t*>(at(g, r)); }
  Mask narrowed(Group& g, const Mask& base, const uint8_t* keep, uint8_t flip, uint8_t* to) const;
  Mask predicated(Group& g, uint32_t reg);
  void tighten(Mask& m) const;
  bool whole(const Mask& m) const { return m.count == geometry_.threads; }

  // -- machine.cc
  void place_registers();
  void bind_calls(Group& g, Arena& arena);
  void welford(Group& g, const Instruction& i, const LaneProgram::Functions& f);
  void prepared_div(Group& g, const Instruction& i);
  void philox(Group& g, const Instruction& i);
  void check_index(Group& g, const Instruction& i, uint64_t bad);
  bool begin_if(Group& g, const Instruction& i);
  bool begin_for(Group& g, const Instruction& i);
  bool next_for(Group& g, const Instruction& i);
  bool next_for_lanes(Group& g, const Instruction& i);
  // Goes on to the iteration before the last one of a loop that is idle (idle_loops.h).
  void skip_idle(Group& g, const Instruction& i);
  // Whether a loop has so many iterations left that the launch meets its limit of steps, and that not soon.
  bool is_endless(int64_t index, int64_t stop, int64_t by) const;
  // Adds `by` to the index. True if the sum leaves the kernel's index type and this is checked.
  bool advance_index(int64_t& index, int64_t by) const {
    const bool fits =
        !__builtin_add_overflow(index, by, &index) && (code_.index_bits != 32 || index == static_cast<int32_t>(index));
    return !fits && options_.checks.index_overflow;
  }
  // Out of line, so that the path without failure saves fewer registers.
  [[noreturn]] void fail_at_limit(const Group& g, int32_t lane) const;
  [[noreturn]] void fail_at_index(const Group& g, int32_t lane) const;
  [[noreturn]] void fail_at_step(const Group& g, int32_t lane, int64_t step) const;
  void step(Group& g, int64_t lanes);
  void expect_whole(Group& g, std::string_view what);
  void advance(Group& g);
  void set_clock(const Group& g);
  void renumber_all(Group& g);

  // -- accesses.cc
  void allocate(Group& g, const Instruction& i);
  void load(Group& g, const Instruction& i, const MemoryFunctions& f);
  void store(Group& g, const Instruction& i, const MemoryFunctions& f);
  void load_local(Group& g, const Instruction& i, const Mask& m, const MemoryFunctions& f);
  void store_local(Group& g, const Instruction& i, const Mask& m, const MemoryFunctions& f);
  Pattern check_read(Group& g, uint32_t buffer, const int64_t* index, uint8_t stride, const Mask& m);
  Pattern check_write(Group& g, uint32_t buffer, const int64_t* index, uint8_t stride, const Mask& m);
  void read_element(Group& g, uint32_t buffer, int64_t element, int32_t lane);
  void write_element(Group& g, uint32_t buffer, int64_t element, int32_t lane);
  void read_by_all(Group& g, uint32_t buffer, int64_t element, const Mask& m);
  void count_banks(Group& g, uint32_t buffer, uint32_t reg, const Mask& m, int64_t width, bool is_store);

  void check_within(Group& g, const Instruction& i);
  // Tell options_.observer, which must be set.
  void tell_access(Group& g, uint32_t buffer, uint32_t reg, const Mask& m, bool is_store);
  void tell_copy(Group& g, const Instruction& i, const Mask& m);

  // -- vector_copies.cc
  void copy(Group& g, const Instruction& i, const MemoryFunctions& f);
  int64_t dense_place(Group& g, uint32_t buffer, uint32_t reg, const Mask& m, int64_t width);
  bool copy_dense(Group& g, const Instruction& i, const Mask& m, const MemoryFunctions& f);
  void copy_lane(Group& g, const Instruction& i, int32_t lane, const MemoryFunctions& f);
  const Clock& clock_of(const BufferState& b) const { return b.memory == MemoryType::kShared ? own_clock_ : clock_; }

  // -- collectives.cc
  // A thread among those of its block, or a block among those of the grid: its rank among those that a collective
  // combines, how many these are, and which group of how many they form.
  struct Member {
    int64_t rank = 0, size = 1, index = 0, count = 1;
    void add(bool is_combined, int64_t coordinate, int64_t extent);
  };
  using Rows = std::array<std::byte*, 3>;  // of the exchanged values, in register dtypes
  Member thread_member(const Instruction& i, int32_t lane) const;
  Member block_member(const Instruction& i, const Group& g) const;
  std::vector<Dtype> exchanged(const Instruction& i) const;
  Rows row_at(const Instruction& i, const Rows& rows, int64_t element) const;
  void combine(const Group& g, const Instruction& i, const LaneProgram::Functions& f, const Rows& a, const Rows& b,
               int64_t count);
  void reduce_ranks(const Group& g, const Instruction& i, const LaneProgram::Functions& f, const Rows& rows,
                    int64_t size, int64_t count);
  void reduce_block(const Group& g, const Instruction& i, const LaneProgram::Functions& f, const Rows& rows);
  void block_reduce(Group& g, const Instruction& i, const LaneProgram::Functions& f);
  void block_broadcast(Group& g, const Instruction& i);
  void warp_reduce(Group& g, const Instruction& i, const LaneProgram::Functions& f);
  void use_workspace(Group& g, uint32_t buffer, int64_t first, int64_t used, int64_t needed);
  void check_counter(Group& g, uint32_t buffer, int64_t slot);
  void participate(Group& g, const Instruction& i, uint32_t value, std::byte* to);
  void distribute(Group& g, const Instruction& i, uint32_t value, const std::byte* from);

  // -- grid_collectives.cc
  static constexpr int64_t kBranches = 16;  // parts that a thread adds up at a node of the tree of blocks, at most
  size_t part_offset(const Instruction& i, int64_t element, size_t value, int64_t groups) const;
  const Instruction& awaited(std::span<Group> groups, std::string_view message);
  void use_shared_workspaces(Group& g, const Instruction& i);
  void stage(Group& g, const Instruction& i, const LaneProgram::Functions& f);
  void take_part(Group& g, const Instruction& i, const LaneProgram::Functions& f);
  bool comes_last(Group& g, uint32_t buffer, int64_t slot, int64_t count);
  bool arrive(Group& g, const Instruction& i);
  std::vector<std::byte> combine_parts(Group& g, const Instruction& i, const LaneProgram::Functions& f);
  void give(Group& g, const Instruction& i, const std::vector<std::byte>* result);
  void reduce_in_last_block(Group& g, const Instruction& i, const LaneProgram::Functions& f);
  void grid_reduce(std::span<Group> groups, const Instruction& i, const LaneProgram::Functions& f);

  // -- cluster_collectives.cc
  void cluster_arrive(Group& g);
  void stage_in_cluster(Group& g, const Instruction& i, const LaneProgram::Functions& f);
  void expect_untouched(Group& g, uint32_t buffer, int64_t elements);
  void cluster_reduce(std::span<Group> groups, const Instruction& i, const LaneProgram::Functions& f);

  const LaneProgram& program_;
  const Bytecode& code_;
  const Geometry& geometry_;
  const HostOptions& options_;
  std::vector<Space> spaces_;
  std::span<Group> together_;
  struct Place {
    size_t offset = 0;  // bytes from Group::registers
    uint8_t stride = 0;
  };
  std::vector<Place> places_;  // by register
  std::vector<Call> calls_;    // by instruction, before a group binds them
  // The places of a call's registers, in bytes from Group::registers; 0 for a missing operand.
  struct CallPlaces {
    uint32_t instruction = 0;
    size_t to = 0, from[4] = {};
  };
  std::vector<CallPlaces> call_places_;
  std::vector<int64_t> thread_index_[3];
  std::vector<std::byte> scratch_, ordered_;
  // For reductions across blocks: the parts that have arrived, by instruction, group of blocks and rank, and the counters
  // at which some block has arrived.
  std::map<std::pair<uint32_t, int64_t>, std::vector<std::vector<std::byte>>> parts_;
  std::set<std::pair<uint32_t, int64_t>> counted_;
  std::vector<int64_t> addresses_;  // of a shared access, by thread, if bank conflicts are counted
  int32_t epoch_ = 1;
  int32_t phase_epoch_ = 2;
  int32_t cluster_epoch_ = 0, wait_epoch_ = 0;  // the first of the running cluster, and after its last wait
  Clock clock_, own_clock_;
  uint32_t at_ = 0;  // the running instruction
};

}  // namespace fusebox::host
