#include "passes/schedule/kept_columns.h"

#include <algorithm>

#include "ir/module/architecture.h"
#include "passes/schedule/kept_rows.h"
#include "passes/schedule/reduction_limits.h"
#include "passes/schedule/size_classes.h"

namespace fusebox {
namespace {

// Of what a thread keeps of a column beside its elements, the bytes that kOtherRegisters have room for: mean, reciprocal and two
// weights of batch norm.
constexpr int64_t kOnceOfOthers = 16;

// What a block may have.
struct Limits {
  int64_t bytes = 1;       // that it reads side by side, unless columns are short
  int64_t threads = 1;     // at most
  int64_t cluster = 1;     // blocks that share columns, at most
  int64_t least_held = 1;  // blocks that a multiprocessor holds
};

class ColumnKeeper {
 public:
  ColumnKeeper(const Columns& columns, ColumnBytes bytes, const DeviceProperties& device)
      : columns_(columns), bytes_(bytes), device_(device) {}

  std::optional<KeptColumns> choose(Limits limits) {
    if (!has_clusters(device_.architecture)) limits.cluster = 1;
    k_.vector = columns_.vector;
    // Others would have no column.
    const int64_t most_lanes = power_of_two_from(std::max<int64_t>(ceil_div(columns_.columns, columns_.vector), 1));
    k_.lanes = std::clamp<int64_t>(limits.bytes / (columns_.vector * bytes_.load), 1, most_lanes);
    share(std::min(kPlacesOfColumn, std::max<int64_t>(kElementsOfColumns / columns_.vector, 1)), 1);
    while (k_.chunks > 1 && registers() > kRegistersOfColumns) share(k_.chunks / 2, 1);
    // Short columns: a thread keeps a whole one, and a block has more of them.
    while (k_.chunks > 1 && 2 * columns_.places <= k_.chunks) share(k_.chunks / 2, 1);
    const int64_t all = device_.multiprocessors;
    while (k_.lanes < most_lanes &&
           (threads() < device_.warp || (threads() < kThreadsOfColumns / 2 && blocks_of(2 * k_.lanes) >= 2 * all)))
      k_.lanes *= 2;
    const auto is_held = [&] { return threads() <= limits.threads && held() >= limits.least_held; };
    while (!is_held() && k_.cluster < limits.cluster) share(k_.chunks, 2 * k_.cluster);
    // Few columns: more blocks share each, then more threads.
    while (blocks() < all && threads() > kThreadsOfColumns / 2 && limits.cluster > 1 && k_.cluster < kBlocksOfCluster)
      share(k_.chunks, 2 * k_.cluster);
    while (k_.chunks > 1 && threads() < kThreadsOfColumns / 2) share(k_.chunks / 2, k_.cluster);
    if (!is_held()) return std::nullopt;
    // Fewer blocks than a multiprocessor holds leave each thread more registers. But the blocks of a cluster need
    // multiprocessors near one another, and of a grid that just fills the GPU not all clusters would find them.
    const int64_t wanted = k_.cluster > 1 ? kMostBlocks : ceil_div(blocks(), all);
    k_.blocks = std::clamp<int64_t>(std::min(held(), wanted), 1, kMostBlocks);
    return k_;
  }

 private:
  void share(int64_t chunks, int64_t cluster) {
    k_.chunks = chunks;
    k_.cluster = cluster;
    constexpr int64_t kMany = int64_t{1} << 30;  // no block has so many
    k_.warps = std::clamp<int64_t>(ceil_div(ceil_div(columns_.places, cluster), chunks), 1, kMany);
  }

  int64_t threads() const { return k_.lanes * k_.warps; }
  int64_t registers() const {
    const int64_t once = std::max<int64_t>(bytes_.once - kOnceOfOthers, 0);
    return ceil_div((bytes_.kept * k_.chunks + once) * columns_.vector, 4) + kOtherRegisters;
  }
  int64_t blocks_of(int64_t lanes) const {
    Columns columns = columns_;
    columns.lanes = lanes;
    return columns.blocks();
  }
  int64_t held() const { return std::min(device_.registers / registers() / threads(), device_.threads / threads()); }
  int64_t blocks() const { return blocks_of(k_.lanes) * k_.cluster; }

  const Columns& columns_;
  const ColumnBytes bytes_;
  const DeviceProperties& device_;
  KeptColumns k_;
};

std::optional<KeptColumns> keep_bytes(Columns columns, ColumnBytes bytes, int64_t least_held,
                                      const DeviceProperties& device) {
  for (const int64_t threads : {kThreadsOfColumns, kThreadsOfFewRows})
    for (int64_t side = kBytesOfLine; side >= kBytesOfSector; side /= 2)
      if (auto k = ColumnKeeper(columns, bytes, device).choose({side, threads, kBlocksOfCluster / 2, least_held}))
        return k;
  // Many threads have fewer registers for the sums of an access.
  columns.vector = std::min<int64_t>(columns.vector, kVectorOfColumns);
  return ColumnKeeper(columns, bytes, device)
      .choose({kBytesOfSector, device.block_threads, kBlocksOfCluster, least_held});
}

}  // namespace

std::optional<KeptColumns> keep_columns(const Columns& columns, ColumnBytes bytes, const DeviceProperties& device) {
  const auto k = keep_bytes(columns, bytes, 1, device);
  if (bytes.inputs == 0 || bytes.inputs >= bytes.kept) return k;
  if (k) {
    Columns shared = columns;
    shared.vector = k->vector;
    shared.lanes = k->lanes;
    // Then a multiprocessor would have no more blocks.
    const bool are_at_once = shared.blocks() * k->cluster <= device.multiprocessors * k->blocks;
    if (are_at_once || (k->blocks >= kLeastHeld && !bytes.are_made_by_arithmetic)) return k;
  }
  bytes.kept = bytes.inputs;
  for (int64_t held = kWantedHeld; held >= (k ? kLeastHeld : 1); --held)
    if (auto of_inputs = keep_bytes(columns, bytes, held, device); of_inputs && (!k || of_inputs->blocks > k->blocks)) {
      of_inputs->keeps_inputs = true;
      return of_inputs;
    }
  return k;
}

int64_t lanes_of_narrow_columns(Columns columns, int64_t load, const DeviceProperties& device) {
  for (int64_t side = kBytesOfLine / 2; side >= kBytesOfSector; side /= 2) {
    columns.lanes = std::max<int64_t>(side / (columns.vector * load), 1);
    if (columns.blocks() >= device.multiprocessors / (side > kBytesOfSector ? 1 : 2)) return columns.lanes;
  }
  return 0;
}

}  // namespace fusebox
