// The windows of a long fusion, which are cut each by itself: neighbouring stretches that are independent of one another, as
// many as have few ops enough for the cheapest cut. All stretches here are of the whole fusion.
//
//   CutWindows windows(all.independent(), 96);    // 8 updates of 15 ops: {0, 90}, {90, 120}
//   windows.begin(0, costs, is_possible);         // costs[end][begin], from the window's first op on
//   windows.cheapest(0)
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "passes/automatic/cheapest_cut.h"

namespace fusebox {

class CutWindows {
 public:
  // A stretch of more than `most` ops is a window of its own.
  CutWindows(const std::vector<Stretch>& independent, size_t most);

  size_t size() const { return windows_.size(); }
  Stretch operator[](size_t i) const { return windows_[i].ops; }
  size_t longest() const;  // in ops

  bool is_begun(size_t i) const { return windows_[i].cut.has_value(); }
  void begin(size_t i, std::vector<std::vector<double>> costs, std::function<bool(Stretch)> is_possible);
  std::vector<Stretch> cheapest(size_t i);
  // As those of CheapestCut. A stretch of several windows is in none.
  void refuse(Stretch s);
  void raise(Stretch s, double more);

 private:
  struct Window {
    Stretch ops;
    std::optional<CheapestCut> cut;
  };
  // The window that has the stretch, if it has begun.
  Window* begun(Stretch s);

  std::vector<Window> windows_;  // in order, and all ops
};

}  // namespace fusebox
