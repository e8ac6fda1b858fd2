#include "passes/schedule/reduction_choices.h"

#include <algorithm>
#include <bit>

namespace fusebox {

namespace {

constexpr int64_t kUnroll = 4;                // accesses of a thread under way together
constexpr int64_t kFewElements = 16;          // of a row in the registers of a thread
constexpr int64_t kManyElements = 32;         // for rows that would be too long otherwise
constexpr int64_t kOtherRegisters = 32;       // that a thread needs beside its part of a row
constexpr int64_t kThreadsOfShortRows = 128;  // of a block that takes several rows
constexpr int64_t kLongestStripThreads = 512;
constexpr int64_t kWarpsOfColumns = 8;  // rows that a block takes at once where kept axes lie innermost
constexpr int64_t kLongWalk = 32768;    // elements of a row above which a GPU should not be left half empty

int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a - 1) / b + 1; }
int64_t power_of_two_from(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::clamp<int64_t>(n, 1, int64_t{1} << 40))));
}

struct Sizes {
  int64_t row = 1;   // elements of a row: the product of the reduced axes
  int64_t rows = 1;  // the product of the kept axes
};

class Chooser {
 public:
  Chooser(const ScheduleView& view, const ReductionSpace& space, std::string_view scheduler)
      : view_(view), space_(space), access_(find_access(view, space)) {
    h_.scheduler = scheduler;
    sizes_ = {most_of(view.sizes, space.reduced), most_of(view.sizes, space.kept)};
  }

  bool is_inner() const { return space_.is_reduced(access_.innermost); }

  // A row in registers. Nothing if no block holds one.
  std::optional<Heuristics> in_registers() {
    const int64_t width = access_.vector, warp = view_.device.warp;
    const int64_t words = kept_words();
    for (int64_t elements : {kFewElements, kManyElements}) {
      const int64_t accesses = ceil_div(sizes_.row, width * warp);  // of one warp
      int64_t chunks = std::min(std::max<int64_t>(elements / width, 1), power_of_two_from(accesses));
      const int64_t warps = std::max<int64_t>(ceil_div(accesses, chunks), 1);
      if (warps * warp > view_.device.block_threads) continue;
      const int64_t of_thread = words * chunks * width + kOtherRegisters;
      if (warps * warp * of_thread > view_.device.registers) continue;
      const int64_t rows = rows_of_block(warps * warp);
      if (view_.defects.has(Defect::kChunksFew)) chunks = std::max<int64_t>(chunks / 2, 1);
      const int64_t shorter = view_.defects.has(Defect::kLongestShort) ? 1 : 0;
      begin("registers");
      h_.set("lanes", warp);
      h_.set("warps", warps);
      h_.set("chunks", chunks);
      h_.set("unroll", 1);
      h_.set("rows", rows);
      h_.set("slices", 1);
      h_.set("threads", warp * warps * rows);
      h_.set("longest", warp * warps * chunks * width - shorter);
      return h_;
    }
    return std::nullopt;
  }

  Heuristics in_strips(bool may_slice) {
    const int64_t accesses = std::max<int64_t>(ceil_div(sizes_.row, access_.vector), 1);
    const int64_t warp = view_.device.warp;
    const int64_t blocks_wanted = 4 * view_.device.multiprocessors;
    const bool is_warp_enough = may_slice && accesses <= kUnroll * warp * 8 && sizes_.rows / 4 >= blocks_wanted;
    int64_t lanes = warp;
    if (!is_warp_enough)
      lanes = std::clamp(power_of_two_from(ceil_div(accesses, kUnroll)), warp,
                         may_slice ? kLongestStripThreads / 2 : kLongestStripThreads);
    const int64_t unroll = std::min(kUnroll, power_of_two_from(ceil_div(accesses, lanes)));
    const int64_t rows = rows_of_block(lanes);
    int64_t slices = 1;
    if (may_slice && sizes_.rows < 2 * view_.device.multiprocessors)
      slices = std::clamp<int64_t>(ceil_div(accesses, lanes * unroll), 1, blocks_wanted / sizes_.rows);
    begin("passes");
    h_.set("lanes", lanes);
    h_.set("warps", 1);
    h_.set("unroll", unroll);
    h_.set("rows", rows);
    h_.set("slices", slices);
    h_.set("threads", lanes * rows);
    return h_;
  }

  // The kept axes lie innermost: neighbouring threads take neighbouring columns.
  Heuristics in_columns(bool may_slice) {
    const int64_t warp = view_.device.warp;
    // Where there are few columns, narrow accesses give every lane one.
    while (access_.vector > 1 && ceil_div(columns(), access_.vector) < warp) access_.vector /= 2;
    const int64_t blocks = blocks_of_columns();
    const int64_t warps = std::min(kWarpsOfColumns, power_of_two_from(sizes_.row));
    const int64_t unroll = std::min(kUnroll, power_of_two_from(ceil_div(sizes_.row, warps)));
    const int64_t wanted = std::max<int64_t>(3 * view_.device.multiprocessors / blocks, 1);
    begin("passes");
    h_.set("lanes", warp);
    h_.set("warps", warps);
    h_.set("unroll", unroll);
    h_.set("rows", 1);
    h_.set("slices", may_slice ? std::clamp<int64_t>(ceil_div(sizes_.row, warps * unroll), 1, wanted) : 1);
    h_.set("threads", warp * warps);
    return h_;
  }

  // Whether the blocks that share no row are too few for the walk that each would make.
  bool leaves_most_idle() const {
    if (sizes_.row <= kLongWalk) return false;
    return (is_inner() ? sizes_.rows : blocks_of_columns()) < view_.device.multiprocessors / 4;
  }

 private:
  void begin(std::string_view form) {
    std::string names;
    if (access_.vector > 1)
      for (const auto* list : {&access_.loads, &access_.stores})
        for (const std::string& name : *list) names += (names.empty() ? "" : ",") + name;
    h_.set("axes", is_inner() ? "inner" : "outer");
    h_.set("form", form);
    h_.set("vector", access_.vector);
    h_.set("in_vectors", names.empty() ? "," : names);
    h_.set("merge", access_.merges_first ? "first" : "last");
  }

  int64_t columns() const { return std::max<int64_t>(view_.sizes.of(access_.innermost).most, 1); }

  int64_t blocks_of_columns() const {
    std::vector<DomainId> others = space_.kept;
    std::erase(others, access_.innermost);
    const int64_t across = ceil_div(columns(), access_.vector * view_.device.warp);
    int64_t blocks = 0;
    if (__builtin_mul_overflow(across, most_of(view_.sizes, others), &blocks)) return int64_t{1} << 40;
    return std::max<int64_t>(blocks, 1);
  }

  // Short rows share a block, as long as there are rows for all multiprocessors.
  int64_t rows_of_block(int64_t threads) const {
    int64_t rows = 1;
    while (threads * rows * 2 <= kThreadsOfShortRows && sizes_.rows / (rows * 2) >= 2 * view_.device.multiprocessors)
      rows *= 2;
    return rows;
  }

  // The 32-bit words that a thread keeps of each element of a row, from the pass that makes them to a later one.
  int64_t kept_words() const {
    const Graph& g = view_.fusion;
    const auto first_pass = [&](ValueId v) { return space_.passes_of(v).empty() ? 0 : *space_.passes_of(v).begin(); };
    int64_t bytes = 0;
    for (uint32_t i = 0; i < g.values.size(); ++i) {
      const ValueId v(i);
      if (!g.is_tensor(v) || !g[v].def || !space_.is_full(v) || space_.passes_of(v).size() < 2) continue;
      bool is_kept = false;
      for (OpId op : tensor_ops(g)) {
        if (std::ranges::count(g[op].operands, v) == 0) continue;
        const ValueId reader = g[op].results[0];
        const int pass = demands(g[op].kind, kReduction) ? space_.depth_of(reader) - 1 : first_pass(reader);
        is_kept = is_kept || pass > first_pass(v);
      }
      if (is_kept) bytes += size_bytes(g[v].dtype);
    }
    return ceil_div(bytes, 4);
  }

  const ScheduleView& view_;
  const ReductionSpace& space_;
  ReductionAccess access_;
  Sizes sizes_;
  Heuristics h_;
};

}  // namespace

Heuristics choose_one_pass(const ScheduleView& view, const ReductionSpace& space) {
  Chooser chooser(view, space, "reduction");
  return chooser.is_inner() ? chooser.in_strips(true) : chooser.in_columns(true);
}

std::optional<Heuristics> choose_passes(const ScheduleView& view, const ReductionSpace& space, std::string& why) {
  Chooser chooser(view, space, "persistent");
  if (chooser.is_inner())
    if (auto h = chooser.in_registers()) return h;
  if (chooser.leaves_most_idle()) {
    why = "the rows that %" + view.fusion[space.reference].name +
          " reduces are long and few, so most multiprocessors would have nothing to do";
    return std::nullopt;
  }
  return chooser.is_inner() ? chooser.in_strips(false) : chooser.in_columns(false);
}

}  // namespace fusebox
