#include "replay/host/host_executor.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include "ir/module/launch_limits.h"
#include "replay/data/parts.h"
#include "replay/data/reserved_memory.h"
#include "replay/host/launch_observer.h"
#include "replay/host/machine.h"

namespace fusebox {
namespace {

using namespace host;

// Sets rounding to nearest and subnormals on, and restores the caller's state at the end.
class FloatState {
#ifdef __SSE2__
 public:
  FloatState() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~FloatState() { _mm_setcsr(saved_); }
  FloatState(const FloatState&) = delete;
  FloatState& operator=(const FloatState&) = delete;

 private:
  unsigned saved_;
#endif
};

std::string triple(const std::array<int64_t, 3>& t) {
  return "(" + std::to_string(t[0]) + ", " + std::to_string(t[1]) + ", " + std::to_string(t[2]) + ")";
}

void check_arguments(const Bytecode& code, std::span<const HostArgument> args) {
  if (args.size() != code.parameters.size())
    throw Error(
        ErrorCode::kBadInput,
        "the kernel takes " + std::to_string(code.parameters.size()) + " arguments, not " + std::to_string(args.size()),
        "@" + code.name);
  for (size_t p = 0; p < args.size(); ++p) {
    const BytecodeParameter& parameter = code.parameters[p];
    const HostArgument& a = args[p];
    const std::string place = "%" + parameter.name;
    if (register_dtype(a.dtype) != register_dtype(parameter.dtype) ||
        (a.dtype != parameter.dtype && parameter.dtype != Dtype::kIndex && a.dtype != Dtype::kIndex))
      throw Error(ErrorCode::kBadInput,
                  "an argument of " + std::string(text(a.dtype)) + " where the kernel takes " +
                      std::string(text(parameter.dtype)),
                  place);
    if (parameter.buffer == kNoBuffer) {
      const auto value = static_cast<int64_t>(a.bits.low);
      if (parameter.dtype == Dtype::kIndex && code.index_bits == 32 && value != static_cast<int32_t>(value))
        throw Error(ErrorCode::kIndexOverflow, "the argument " + std::to_string(value) + " leaves 32 bits", place);
      continue;
    }
    if (a.elements < 0 || (a.elements > 0 && a.data == nullptr) ||
        (!a.written.empty() && a.written.size() != static_cast<size_t>(a.elements)))
      throw Error(ErrorCode::kBadInput, "memory without an address, or with another number of marks than elements",
                  place);
    if (reinterpret_cast<uintptr_t>(a.data) % static_cast<uintptr_t>(size_bytes(a.dtype)) != 0)
      throw Error(ErrorCode::kBadInput, "memory that is not aligned to its element", place);
  }
  for (const Instruction& i : code.code) {
    if (i.opcode != Opcode::kWithin || i.buffer == kNoBuffer) continue;
    for (size_t p = 0; p < args.size(); ++p)
      if (code.parameters[p].buffer == i.buffer && static_cast<uint64_t>(i.immediate) >= args[p].extents.size())
        throw Error(ErrorCode::kBadInput,
                    "the kernel checks an index with axis " + std::to_string(i.immediate) + " of an argument with " +
                        std::to_string(args[p].extents.size()) + " axes; give one with its extents",
                    "%" + code.parameters[p].name);
  }
}

// Code that was made for reads apart from all stores may load early, so it is not run on arguments that overlap.
void check_apart(const Bytecode& code, std::span<const HostArgument> args) {
  if (!code.reads_apart) return;
  const auto is_stored = [&](size_t p) { return code.buffers[code.parameters[p].buffer].is_stored; };
  const auto end = [&](const HostArgument& a) { return a.data + a.elements * size_bytes(a.dtype); };
  for (size_t r = 0; r < args.size(); ++r)
    for (size_t w = 0; w < args.size(); ++w) {
      if (code.parameters[r].buffer == kNoBuffer || code.parameters[w].buffer == kNoBuffer) continue;
      if (is_stored(r) || !is_stored(w) || args[r].elements == 0 || args[w].elements == 0) continue;
      if (args[r].data < end(args[w]) && args[w].data < end(args[r]))
        throw Error(ErrorCode::kRace,
                    "the kernel relies on it that nobody stores to the memory of this parameter, which overlaps %" +
                        code.parameters[w].name,
                    "%" + code.parameters[r].name);
    }
}

// Checks the limits that every GPU of CUDA 13 has.
Geometry geometry_of(const Bytecode& code, const LaunchDims& dims) {
  constexpr int64_t kMaxThreads = 1024, kMaxShared = 227 * 1024;
  constexpr int64_t kClusterBytes = 16;  // that a cluster's barriers take in each block (Cluster in runtime/cluster.cuh)
  Geometry g;
  g.grid = dims.grid;
  g.block = dims.block;
  g.shared_bytes = dims.shared_bytes;
  int64_t threads = 1;
  const int64_t most_shared = kMaxShared - (code.cluster_blocks > 0 ? kClusterBytes : 0);
  bool is_good = dims.shared_bytes >= 0 && dims.shared_bytes <= most_shared;
  for (size_t a = 0; a < 3; ++a) {
    is_good &=
        dims.block[a] <= kMostBlock[a] && dims.grid[a] <= kMostGrid[a] && dims.block[a] >= 0 && dims.grid[a] >= 0;
    if (is_good) threads *= dims.block[a];
  }
  if (!is_good || threads > kMaxThreads)
    throw Error(ErrorCode::kLaunchLimit,
                "a launch of grid " + triple(dims.grid) + ", block " + triple(dims.block) + " and " +
                    std::to_string(dims.shared_bytes) + " shared bytes is more than a GPU takes",
                "@" + code.name);
  // A GPU refuses such a launch. Schedules may fail in other ways, but never in this one: the launch checks it.
  if (code.most_threads > 0 && threads > code.most_threads)
    throw Error(ErrorCode::kInternal,
                "a block of " + std::to_string(threads) + " threads is over the kernel's own bound of " +
                    std::to_string(code.most_threads),
                "@" + code.name);
  g.threads = static_cast<int32_t>(threads);
  g.lanes = (g.threads + 15) / 16 * 16;
  g.blocks = dims.grid[0] * dims.grid[1] * dims.grid[2];
  // A GPU refuses such a launch too.
  if (code.cluster_blocks > 0) {
    if (code.has_grid_sync)
      throw Error(ErrorCode::kUnsupportedOp, "blocks in clusters cannot wait for the whole grid", "@" + code.name);
    const auto axis = static_cast<size_t>(code.cluster_axis) - static_cast<size_t>(ParallelType::kGridX);
    if (g.grid[axis] % code.cluster_blocks != 0)
      throw Error(ErrorCode::kInternal,
                  "a grid of " + triple(dims.grid) + " blocks does not consist of clusters of " +
                      std::to_string(code.cluster_blocks) + " along " + std::string(text(code.cluster_axis)),
                  "@" + code.name);
  }
  // 32 blocks on each of 192 multiprocessors: more than any GPU holds at once.
  constexpr int64_t kMaxResident = 32 * 192;
  if (code.has_grid_sync && g.blocks > kMaxResident)
    throw Error(ErrorCode::kLaunchLimit,
                "a grid barrier needs all " + std::to_string(g.blocks) +
                    " blocks on the GPU at once; none holds more than " + std::to_string(kMaxResident),
                "@" + code.name);
  return g;
}

// -- tracked memory: the stretches of the address space that hold stored buffers and buffers that overlap them
struct Layout {
  struct Stretch {
    std::byte* begin;
    std::byte* end;
    int32_t granule;
    bool is_tracked;
    bool is_sparse;  // its shadow is reserved, and touched only at accesses
  };
  std::vector<Stretch> stretches;    // in address order, without overlap
  std::vector<size_t> of_parameter;  // an index into stretches, or none
};
constexpr size_t kNoStretch = ~size_t{0};

Layout layout_of(const Bytecode& code, std::span<const HostArgument> args) {
  Layout layout;
  layout.of_parameter.assign(args.size(), kNoStretch);
  std::vector<size_t> order;
  for (size_t p = 0; p < args.size(); ++p)
    if (code.parameters[p].buffer != kNoBuffer && args[p].elements > 0) order.push_back(p);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(args[a].data, a) < std::pair(args[b].data, b); });
  for (const size_t p : order) {
    const auto size = static_cast<int32_t>(size_bytes(args[p].dtype));
    std::byte* begin = args[p].data;
    std::byte* end = begin + args[p].elements * size;
    const bool is_stored = code.buffers[code.parameters[p].buffer].is_stored;
    const bool is_sparse = !args[p].places.empty();
    if (layout.stretches.empty() || layout.stretches.back().end <= begin) {
      layout.stretches.push_back({begin, end, size, is_stored, is_sparse});
    } else {
      Layout::Stretch& s = layout.stretches.back();
      s.granule = std::gcd(std::gcd(s.granule, size), static_cast<int32_t>((begin - s.begin) % 16));
      s.end = std::max(s.end, end);
      s.is_tracked |= is_stored;
      s.is_sparse |= is_sparse;
    }
    layout.of_parameter[p] = layout.stretches.size() - 1;
  }
  return layout;
}

std::vector<Space> make_spaces(const Layout& layout, Arena& arena) {
  std::vector<Space> spaces;
  for (const Layout::Stretch& s : layout.stretches) {
    if (!s.is_tracked) continue;
    Space space{s.begin, s.end - s.begin, s.granule, nullptr, nullptr, nullptr};
    const auto count = static_cast<size_t>(space.granules());
    if (s.is_sparse) {
      space.reserved = reserve_zeroed(static_cast<int64_t>(2 * count * sizeof(int32_t)));
      space.writers = reinterpret_cast<int32_t*>(space.reserved.get());
      space.readers = space.writers + count;
      spaces.push_back(std::move(space));
      continue;
    }
    space.writers = arena.take_array<int32_t>(count);
    space.readers = arena.take_array<int32_t>(count);
    std::memset(space.writers, 0, count * sizeof(int32_t));
    std::memset(space.readers, 0, count * sizeof(int32_t));
    spaces.push_back(std::move(space));
  }
  return spaces;
}

Space* space_at(std::vector<Space>& spaces, const std::byte* data) {
  for (Space& s : spaces)
    if (data >= s.data && data < s.data + s.bytes) return &s;
  return nullptr;
}

// Calls visit(argument, its first granule's index, granules of an element, space) for each tracked argument.
template <class Visit>
void each_tracked(const Layout& layout, std::span<const HostArgument> args, std::vector<Space>& spaces, Visit&& visit) {
  for (size_t p = 0; p < args.size(); ++p) {
    if (layout.of_parameter[p] == kNoStretch || !layout.stretches[layout.of_parameter[p]].is_tracked) continue;
    Space& s = *space_at(spaces, args[p].data);
    visit(p, (args[p].data - s.data) / s.granule, static_cast<int32_t>(size_bytes(args[p].dtype)) / s.granule, s);
  }
}

template <class Visit>
void each_place(const HostArgument& a, Visit&& visit) {
  for (int64_t e : a.places) visit(e);
  for (int64_t e = 0; a.places.empty() && e < a.elements; ++e) visit(e);
}

void mark_defined(const Layout& layout, std::span<const HostArgument> args, std::vector<Space>& spaces) {
  each_tracked(layout, args, spaces, [&](size_t p, int64_t first, int32_t granules, Space& s) {
    int32_t* w = s.writers + first;
    if (args[p].written.empty()) {
      std::fill(w, w + args[p].elements * granules, kBeforeLaunch);
      return;
    }
    each_place(args[p], [&](int64_t e) {
      if (args[p].written[static_cast<size_t>(e)] != 0)
        std::fill(w + e * granules, w + (e + 1) * granules, kBeforeLaunch);
    });
  });
}

void report_defined(const Layout& layout, std::span<const HostArgument> args, std::vector<Space>& spaces) {
  each_tracked(layout, args, spaces, [&](size_t p, int64_t first, int32_t granules, Space& s) {
    if (args[p].written.empty()) return;
    const int32_t* w = s.writers + first;
    each_place(args[p], [&](int64_t e) {
      bool is_written = true;
      for (int32_t k = 0; k < granules; ++k)
        is_written &= w[e * granules + k] >= kBeforeLaunch && (w[e * granules + k] & kFlag) == 0;
      args[p].written[static_cast<size_t>(e)] = is_written;
    });
  });
}

// One machine with its groups, for some of the blocks.
class Worker {
 public:
  Worker(const LaneProgram& program, const Geometry& geometry, const HostOptions& options, const Layout& layout,
         std::span<const HostArgument> args, std::vector<Space> spaces, Arena& arena)
      : program_(program),
        geometry_(geometry),
        layout_(layout),
        args_(args),
        arena_(arena),
        machine_(program, geometry, options, std::move(spaces)) {}

  // Runs blocks one after another.
  void run(int64_t begin, int64_t end) {
    Group g;
    make(g);
    for (int64_t b = begin; b < end; ++b) {
      machine_.start(g, program_.code.has_arrivals ? in_turn(b) : b);
      machine_.run(g);
    }
  }

  // Runs all blocks of a grid that synchronises, each in turn to the next synchronisation.
  void run_together() {
    std::vector<Group> groups(static_cast<size_t>(geometry_.blocks));
    machine_.run_together(groups);
    for (size_t b = 0; b < groups.size(); ++b) {
      make(groups[b]);
      machine_.start(groups[b], static_cast<int64_t>(b));
    }
    const auto in_order = [&](size_t b) {
      return program_.code.has_arrivals ? static_cast<size_t>(in_turn(static_cast<int64_t>(b))) : b;
    };
    // Blocks start in one phase: the epochs of their starts order only their own accesses.
    run_in_phases(groups, in_order, [&] { machine_.synchronize_grid(groups); });
  }

  // Runs the blocks of each cluster together, one cluster after another.
  void run_clusters() {
    const auto size = static_cast<size_t>(program_.code.cluster_blocks);
    const auto axis = static_cast<size_t>(program_.code.cluster_axis) - static_cast<size_t>(ParallelType::kGridX);
    std::vector<Group> groups(size);
    for (Group& g : groups) make(g);
    Geometry clusters = geometry_;
    clusters.grid[axis] /= program_.code.cluster_blocks;
    const int64_t count = geometry_.blocks / program_.code.cluster_blocks;
    for (int64_t c = 0; c < count; ++c) {
      std::array<int64_t, 3> at = clusters.block_at(program_.code.has_arrivals ? (c + (count + 1) / 2) % count : c);
      at[axis] *= program_.code.cluster_blocks;
      machine_.begin_cluster(groups);
      for (Group& g : groups) {
        machine_.start(g, at[0] + geometry_.grid[0] * (at[1] + geometry_.grid[1] * at[2]));
        ++at[axis];
      }
      run_in_phases(groups, [](size_t b) { return b; }, [&] { machine_.synchronize_cluster(groups); });
    }
  }

  Machine& machine() { return machine_; }

 private:
  // Runs each group to its next wait, until all have ended. `synchronize` finishes a wait of all groups.
  template <class InOrder, class Synchronize>
  void run_in_phases(std::vector<Group>& groups, InOrder&& in_order, Synchronize&& synchronize) {
    for (bool is_first = true;; is_first = false) {
      size_t waiting = 0;
      for (size_t b = 0; b < groups.size(); ++b) {
        Group& g = groups[in_order(b)];
        if (!is_first || groups.size() > 1) machine_.resume(g);
        waiting += machine_.run(g) == Status::kWaits;
      }
      if (waiting == 0) return;
      if (waiting != groups.size())
        for (Group& g : groups)
          if (program_.code.code[g.pc - 1].opcode != Opcode::kEnd)
            machine_.refuse_wait(g, std::to_string(groups.size() - waiting) + " of " + std::to_string(groups.size()) +
                                        " blocks ended before");
      synchronize();
    }
  }

  // Where blocks exchange values, the one that runs last is neither the first nor the last by its number.
  int64_t in_turn(int64_t block) const { return (block + (geometry_.blocks + 1) / 2) % geometry_.blocks; }

  void make(Group& g) {
    machine_.prepare(g, arena_, args_);
    for (size_t p = 0; p < args_.size(); ++p) {
      const uint32_t buffer = program_.code.parameters[p].buffer;
      if (buffer == kNoBuffer) continue;
      BufferState& b = g.buffers[buffer];
      b.data = args_[p].data;
      b.elements = args_[p].elements;
      b.extents = args_[p].extents.data();
      if (!args_[p].written.empty()) b.written = args_[p].written.data();
      const size_t stretch = layout_.of_parameter[p];
      if (stretch == kNoStretch || !layout_.stretches[stretch].is_tracked) continue;
      const Space& s = *space_at(machine_.spaces(), b.data);
      const int64_t first = (b.data - s.data) / s.granule;
      b.granules = b.element_bytes / s.granule;
      b.writers = s.writers + first;
      b.readers = s.readers + first;
    }
  }

  const LaneProgram& program_;
  const Geometry& geometry_;
  const Layout& layout_;
  std::span<const HostArgument> args_;
  Arena& arena_;
  Machine machine_;
};

struct Run {
  const LaneProgram& program;
  const Geometry& geometry;
  const HostOptions& options;
  const Layout& layout;
  std::span<const HostArgument> args;
};

// How many blocks have their registers and their memory at once, if one worker runs them.
int64_t blocks_at_once(const Bytecode& code, const Geometry& geometry) {
  if (code.cluster_blocks > 0) return code.cluster_blocks;
  return code.has_grid_sync ? geometry.blocks : 1;
}

// Refuses a launch before any memory is taken for it.
void check_memory(const Run& run) {
  constexpr int64_t kMarks = 2 * sizeof(int32_t);  // of a granule
  const Bytecode& code = run.program.code;
  const int64_t blocks = blocks_at_once(code, run.geometry);
  int64_t bytes = blocks * group_bytes(code, run.geometry);
  for (const Layout::Stretch& s : run.layout.stretches)
    if (s.is_tracked && !s.is_sparse) bytes += (s.end - s.begin) / s.granule * kMarks;
  if (bytes <= run.options.memory_limit) return;
  throw Error(ErrorCode::kStepLimit,
              "the checks of a launch of grid " + triple(run.geometry.grid) + " and block " +
                  triple(run.geometry.block) + " need " + std::to_string(bytes) + " bytes, " + std::to_string(blocks) +
                  (blocks == 1 ? " block" : " blocks") + " at once, of " + std::to_string(run.options.memory_limit) +
                  " that are allowed; make the inputs smaller, or use fewer blocks that wait for one another",
              "@" + code.name);
}

HostResult run_serial(const Run& run, Arena& arena) {
  const FloatState state;
  std::vector<Space> spaces = make_spaces(run.layout, arena);
  mark_defined(run.layout, run.args, spaces);
  Worker worker(run.program, run.geometry, run.options, run.layout, run.args, spaces, arena);
  HostResult result;
  try {
    if (run.program.code.cluster_blocks > 0)
      worker.run_clusters();
    else if (run.program.code.has_grid_sync)
      worker.run_together();
    else
      worker.run(0, run.geometry.blocks);
  } catch (Broken& broken) {
    result.finding = std::move(broken.finding);
  }
  report_defined(run.layout, run.args, spaces);
  result.thread_instructions = worker.machine().thread_instructions;
  result.instructions = worker.machine().instructions;
  return result;
}

// Runs on several workers, each with its own shadow memory over a range of blocks. If there is no finding, and no
// granule that one worker stored and another touched, then no block saw another, and the result is that of a serial
// run. Otherwise returns nothing, and memory is as before.
std::optional<HostResult> run_parallel(const Run& run, int threads) {
  struct Saved {
    size_t stretch;
    std::vector<std::byte> bytes;
  };
  std::vector<Saved> saved;
  for (size_t s = 0; s < run.layout.stretches.size(); ++s)
    if (run.layout.stretches[s].is_tracked)
      saved.push_back({s, {run.layout.stretches[s].begin, run.layout.stretches[s].end}});

  std::vector<Arena> arenas(static_cast<size_t>(threads));
  std::vector<std::unique_ptr<Worker>> workers;
  std::vector<std::vector<Space>> spaces(static_cast<size_t>(threads));
  std::vector<uint8_t> broke(static_cast<size_t>(threads), 0);
  const auto work = [&](int part) {
    const auto w = static_cast<size_t>(part);
    const FloatState state;
    try {
      spaces[w] = make_spaces(run.layout, arenas[w]);
      mark_defined(run.layout, run.args, spaces[w]);
      workers[w] =
          std::make_unique<Worker>(run.program, run.geometry, run.options, run.layout, run.args, spaces[w], arenas[w]);
      const auto n = static_cast<int64_t>(threads), k = static_cast<int64_t>(w);
      workers[w]->run(run.geometry.blocks * k / n, run.geometry.blocks * (k + 1) / n);
    } catch (const Broken&) {
      broke[w] = 1;
    }
  };
  workers.resize(static_cast<size_t>(threads));
  run_parts(threads, work);

  bool is_good = std::none_of(broke.begin(), broke.end(), [](uint8_t b) { return b != 0; });
  HostResult result;
  for (const auto& w : workers) {
    if (!w) continue;
    result.thread_instructions += w->machine().thread_instructions;
    result.instructions += w->machine().instructions;
  }
  is_good &= result.thread_instructions <= run.options.step_limit;
  constexpr int32_t kThisLaunch = 2 << kEpochShift;
  for (size_t s = 0; is_good && s < spaces[0].size(); ++s) {
    for (int64_t k = 0; k < spaces[0][s].granules(); ++k) {
      int writers = 0, readers = 0;
      bool is_both = false;
      for (const auto& of_worker : spaces) {
        const bool stores = of_worker[s].writers[k] >= kThisLaunch, reads = of_worker[s].readers[k] >= kThisLaunch;
        writers += stores;
        readers += reads;
        is_both |= stores && reads;
      }
      is_good &= !run.options.checks.races || writers == 0 || (writers == 1 && readers == (is_both ? 1 : 0));
      for (const auto& of_worker : spaces)
        if (of_worker[s].writers[k] >= kThisLaunch) spaces[0][s].writers[k] = of_worker[s].writers[k];
    }
  }
  if (!is_good) {
    for (const Saved& s : saved) std::memcpy(run.layout.stretches[s.stretch].begin, s.bytes.data(), s.bytes.size());
    return std::nullopt;
  }
  report_defined(run.layout, run.args, spaces[0]);
  return result;
}

}  // namespace

std::string HostFinding::place() const {
  if (!buffer.empty()) return "%" + buffer + "[" + std::to_string(element) + "]";
  return "line " + std::to_string(line);
}

std::string HostFinding::message() const {
  return detail + " (" + std::string(row_of(kind).text) + " at line " + std::to_string(line) +
         (buffer.empty() ? "" : ", element " + std::to_string(element)) + ", block " + triple(block) + ", thread " +
         triple(thread) + ")";
}

HostResult run_kernel(const Bytecode& code, const LaunchDims& dims, std::span<const HostArgument> args,
                      const HostOptions& options) {
  check_arguments(code, args);
  check_apart(code, args);
  const Geometry geometry = geometry_of(code, dims);
  if (geometry.threads == 0 || geometry.blocks == 0) return {};
  const LaneProgram program(code);
  const Layout layout = layout_of(code, args);
  const Run run{program, geometry, options, layout, args};
  check_memory(run);
  const bool is_sparse = std::any_of(layout.stretches.begin(), layout.stretches.end(),
                                     [](const Layout::Stretch& s) { return s.is_tracked && s.is_sparse; });
  // Several workers copy tracked memory and compare whole shadows, which sparse memory does not allow.
  const auto threads = static_cast<int>(std::min<int64_t>({is_sparse ? 1 : options.threads, geometry.blocks, 256}));
  // The race check is what shows that blocks depend on each other's order.
  if (threads > 1 && !code.has_grid_sync && !code.has_arrivals && code.cluster_blocks == 0 && options.checks.races &&
      !options.banks && !options.observer)
    if (auto result = run_parallel(run, threads)) return *result;
  static thread_local Arena arena;
  arena.clear();
  if (options.observer) options.observer->begin(code, dims, args);
  HostResult result = run_serial(run, arena);
  if (options.observer && !result.finding) options.observer->end();
  return result;
}

}  // namespace fusebox
