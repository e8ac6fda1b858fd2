#include "replay/run/arena_places.h"

#include <algorithm>

namespace fusebox {

void place_in_arena(ResolvedCall& call, std::span<const TensorLife> lives, const Defects& defects) {
  struct Taken {
    int64_t first, end;
    size_t until;
  };
  std::vector<Taken> taken;
  for (const TensorLife& life : lives) {
    ResolvedTensor& t = call.tensors[life.slot];
    if (t.is_output || t.is_by_aten || t.bytes == 0) continue;
    std::erase_if(taken, [&](const Taken& other) { return other.until <= life.begin; });
    std::ranges::sort(taken, {}, &Taken::first);
    const int64_t bytes = (t.bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
    int64_t at = 0;
    for (const Taken& other : taken) {
      if (at + bytes <= other.first) break;
      at = std::max(at, other.end);
    }
    t.in_arena = at;
    const bool is_early = life.end > life.begin + 1 && defects.has(Defect::kArenaReleasedEarly);
    taken.push_back({at, at + bytes, is_early ? std::min(life.end, call.steps.size()) - 1 : life.end});
    call.arena_bytes = std::max(call.arena_bytes, at + bytes);
  }
}

}  // namespace fusebox
