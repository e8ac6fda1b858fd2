#include "passes/automatic/cut_windows.h"

#include <algorithm>
#include <utility>

namespace fusebox {
namespace {

Stretch moved_down(Stretch s, size_t by) { return {s.begin - by, s.end - by}; }
Stretch moved_up(Stretch s, size_t by) { return {s.begin + by, s.end + by}; }

}  // namespace

CutWindows::CutWindows(const std::vector<Stretch>& independent, size_t most) {
  for (const Stretch& s : independent) {
    if (!windows_.empty() && s.end - windows_.back().ops.begin <= most)
      windows_.back().ops.end = s.end;
    else
      windows_.push_back({s, {}});
  }
}

size_t CutWindows::longest() const {
  size_t most = 0;
  for (const Window& w : windows_) most = std::max(most, w.ops.size());
  return most;
}

void CutWindows::begin(size_t i, std::vector<std::vector<double>> costs, std::function<bool(Stretch)> is_possible) {
  const size_t first = windows_[i].ops.begin;
  windows_[i].cut.emplace(std::move(costs), [first, is_possible = std::move(is_possible)](Stretch s) {
    return is_possible(moved_up(s, first));
  });
}

std::vector<Stretch> CutWindows::cheapest(size_t i) {
  std::vector<Stretch> result = windows_[i].cut->find();
  for (Stretch& s : result) s = moved_up(s, windows_[i].ops.begin);
  return result;
}

void CutWindows::refuse(Stretch s) {
  if (Window* w = begun(s)) w->cut->refuse(moved_down(s, w->ops.begin));
}

void CutWindows::raise(Stretch s, double more) {
  if (Window* w = begun(s)) w->cut->raise(moved_down(s, w->ops.begin), more);
}

CutWindows::Window* CutWindows::begun(Stretch s) {
  const auto it = std::ranges::find_if(
      windows_, [&](const Window& w) { return w.cut && s.begin >= w.ops.begin && s.end <= w.ops.end; });
  return it == windows_.end() ? nullptr : &*it;
}

}  // namespace fusebox
