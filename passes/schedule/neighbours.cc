#include "passes/schedule/neighbours.h"

#include <algorithm>
#include <optional>

#include "passes/schedule/reduction_choices.h"
#include "passes/schedule/reduction_limits.h"

namespace fusebox {

namespace {

constexpr int64_t kMostThreads = 1024, kWarp = 32;
constexpr int64_t kMostTile = 64;  // of which elements of 8 bytes take 32 KiB of shared memory

// One choice that becomes twice or half as large. `against`: another one that moves the other way, so that their product
// stays. Empty: none.
struct Move {
  std::string_view key, against;
};

// A row that is kept in registers has warps · chunks parts, and all of them are needed.
constexpr Move kMoves[] = {{"warps", "chunks"}, {"lanes", "chunks"}, {"vector", "chunks"}, {"warps", {}},
                           {"lanes", {}},       {"unroll", {}},      {"rows", {}},         {"slices", {}},
                           {"vector", {}},      {"reuse", {}},       {"threads", {}},      {"tile", {}},
                           {"blocks", {}},      {"tile", "rows"}};

int64_t* find_number(Heuristics& h, std::string_view key) {
  const auto it = std::ranges::find(h.choices, key, &Heuristic::key);
  return it == h.choices.end() || !it->word.empty() ? nullptr : &it->number;
}

bool scale(Heuristics& h, std::string_view key, bool up) {
  int64_t* number = find_number(h, key);
  if (!number) return false;
  const bool may_round = key == "chunks" && *number > 1;  // more parts than a row needs are never read
  if (!up && *number % 2 != 0 && !may_round) return false;
  *number = up ? *number * 2 : (*number + (may_round ? 1 : 0)) / 2;
  return *number > 0;
}

// Sets the choices that follow from others. Returns whether a block can have so many threads.
bool follow(Heuristics& h) {
  int64_t* threads = find_number(h, "threads");
  if (find_number(h, "lanes") && threads) *threads = *find_number(h, "lanes") * h.number("warps") * h.number("rows");
  const int64_t vector = find_number(h, "vector") ? h.number("vector") : 0;
  // The widths of single tensors are at most that of all.
  for (Heuristic& c : h.choices) {
    if (c.key.starts_with('%') && c.word.empty()) c.number = std::min(c.number, vector);
    if (c.key == "in_vectors" && vector == 1) c.word = ",";
  }
  if (vector == 1)
    std::erase_if(h.choices, [](const Heuristic& c) { return c.key.starts_with('%') && c.word.empty(); });
  // A row of a tile has a thread for each vector, and a block has so many rows of threads.
  if (const int64_t* tile = find_number(h, "tile"))
    if (*tile < vector || *tile > kMostTile || *tile / vector * h.number("rows") > kMostThreads) return false;
  // Rows are along block.z, but for those that have a thread each.
  const int64_t* lanes = find_number(h, "lanes");
  if (const int64_t* rows = find_number(h, "rows");
      rows && find_number(h, "chunks") && *rows > kMostKeptRows && !(lanes && *lanes == 1))
    return false;
  // In passes, the blocks that share a row or a column are the cluster. Where rows are kept there is one slice.
  if (int64_t* cluster = find_number(h, "cluster"); cluster && h.number("slices") > 1) {
    *cluster = h.number("slices");
    if (*cluster > kBlocksOfCluster) return false;
  }
  return !threads || *threads <= kMostThreads;
}

// The blocks that share rows or columns and wait for one another, at most; 0 where none wait.
int64_t waiting_blocks(const Heuristics& h) {
  if (!h.has("most_rows")) return 0;
  const int64_t rows = h.number("most_rows"), slices = h.number("slices");
  if (!h.has("most_columns")) return ceil_div(rows, h.number("rows")) * slices;
  return rows * ceil_div(h.number("most_columns"), h.number("lanes") * h.number("vector")) * slices;
}

// Whether neighbouring threads take neighbouring columns, and reduce along others.
bool is_by_columns(const Heuristics& h) { return h.has("axes") && h.word("axes") == "outer"; }

std::optional<Heuristics> moved(const Heuristics& h, Move move, bool up) {
  const bool keeps_row = std::ranges::count(h.choices, "chunks", &Heuristic::key) > 0;
  const bool has_lanes = std::ranges::count(h.choices, "lanes", &Heuristic::key) > 0;
  // The parts of a kept row move together. Those of kept columns are of warps alone, and of lanes that take places; other lanes
  // and vectors are of other columns.
  constexpr std::string_view kParts[] = {"warps", "lanes", "vector"}, kOfRows[] = {"rows", "unroll"};
  const bool has_columns = is_by_columns(h), keeps_columns = keeps_row && has_columns;
  const bool is_of_row = move.key == "warps" || (move.key == "lanes" && h.has("places"));
  const bool is_part = std::ranges::count(kParts, move.key) > 0 && (!keeps_columns || is_of_row);
  if (keeps_row && move.against.empty() && is_part) return std::nullopt;
  if (keeps_columns && move.against == "chunks" && !is_part) return std::nullopt;
  if (has_columns && std::ranges::count(kOfRows, move.key) > 0 && (keeps_columns || move.key == "rows"))
    return std::nullopt;
  // Where rows have parts, their lanes lie side by side in whole warps, and a block has one row.
  if (h.has("part") && (move.key == "lanes" || move.key == "rows")) return std::nullopt;
  // Wider vectors than the scheduler's own have no proof.
  if (move.key == "vector" && up) return std::nullopt;
  // Where a row is walked by single warps, their number has no meaning.
  if (move.key == "warps" && !keeps_row && has_lanes && h.number("warps") == 1 && h.word("axes") == "inner")
    return std::nullopt;
  if (move.key == "threads" && has_lanes) return std::nullopt;  // they follow from lanes, warps and rows
  Heuristics result = h;
  // Blocks that share a row need more of a schedule than blocks that do not.
  if (move.key == "slices" && find_number(result, "slices") && h.number("slices") <= (up ? 1 : 2)) return std::nullopt;
  // A scheduler reuses loads only where inputs lack the outer axes.
  if (move.key == "reuse" && find_number(result, "reuse") && h.number("reuse") == 1) return std::nullopt;
  if (!scale(result, move.key, up)) return std::nullopt;
  // The lanes of a part read all of it at once.
  if (move.key == "vector" && h.has("part") && (!scale(result, "part", !up) || result.number("part") > kWarp))
    return std::nullopt;
  if (!move.against.empty() && !scale(result, move.against, !up)) return std::nullopt;
  // Fewer lanes of a row leave the others of their warp to further rows. Rows of several warps or blocks have whole warps.
  if (move.key == "lanes" && !move.against.empty()) {
    const bool is_in_warp = h.number("warps") == 1 && !h.has("cluster") && result.number("lanes") <= kWarp;
    if (!is_in_warp || !scale(result, "rows", !up)) return std::nullopt;
  }
  if (!follow(result)) return std::nullopt;
  // The GPU is sure to hold as many waiting blocks as the scheduler chose, and no more.
  while (waiting_blocks(result) > waiting_blocks(h)) {
    int64_t& slices = *find_number(result, "slices");
    if (slices < 4) return std::nullopt;
    slices /= 2;
  }
  return result == h ? std::nullopt : std::optional(result);
}

}  // namespace

std::vector<Heuristics> neighbours(const Heuristics& h) {
  std::vector<Heuristics> result;
  for (const Move& move : kMoves)
    for (bool up : {true, false})
      if (auto next = moved(h, move, up); next && std::ranges::count(result, *next) == 0)
        result.push_back(*std::move(next));
  return result;
}

std::optional<Heuristics> with_narrower_vectors(const Heuristics& h) {
  const bool keeps_row = std::ranges::count(h.choices, "chunks", &Heuristic::key) > 0 && !is_by_columns(h);
  return moved(h, keeps_row ? Move{"vector", "chunks"} : Move{"vector", {}}, false);
}

std::optional<Heuristics> plainer(const Heuristics& h) {
  Heuristics result = h;
  if (std::erase_if(result.choices, [](const Heuristic& c) { return c.key.starts_with(kMultiple); }) > 0) return result;
  if (!h.has("reuse")) return std::nullopt;  // only kernels without reductions state it
  std::erase_if(result.choices, [](const Heuristic& c) { return c.key == "walk"; });
  for (Heuristic& c : result.choices)
    if (c.key == "unroll" || c.key == "reuse") c.number = 1;
  if (result == h) return std::nullopt;
  return result;
}

}  // namespace fusebox
