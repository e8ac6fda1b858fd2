#include "passes/automatic/cheapest_cut.h"

#include <algorithm>
#include <utility>

namespace fusebox {

CheapestCut::CheapestCut(std::vector<std::vector<double>> costs, std::function<bool(Stretch)> is_possible)
    : costs_(std::move(costs)),
      is_possible_(std::move(is_possible)),
      answers_(costs_.size() * size()),
      firsts_(costs_.size()) {
  best_.push_back({.least = 0});
}

bool CheapestCut::ask(Stretch s) {
  Answer& known = answer(s);
  if (known == Answer::kNotAsked) known = is_possible_(s) ? Answer::kPossible : Answer::kRefused;
  return known == Answer::kPossible;
}

void CheapestCut::refuse(Stretch s) {
  answer(s) = Answer::kRefused;
  best_.resize(std::min(best_.size(), s.end));
}

void CheapestCut::raise(Stretch s, double more) {
  costs_[s.end][s.begin] += more;
  best_.resize(std::min(best_.size(), s.end));
}

void CheapestCut::find_best(size_t end) {
  BestEnd best{.from = end - 1};
  for (size_t begin = end; begin-- > firsts_[end];) {
    const double total = best_[begin].least + costs_[end][begin];
    if (total < best.least && answer({begin, end}) != Answer::kRefused) best = {total, begin};
  }
  best_.push_back(best);
}

// Whether the stretch may be asked for: behind each stretch with the same end that is shorter and possible, one of the next
// kMostRefused is possible.
bool CheapestCut::is_tried(Stretch s) {
  size_t possible = s.end;
  while (possible - s.begin > kMostRefused) {
    const size_t first = possible - kMostRefused;
    size_t next = first;
    while (next < possible && answer({next, s.end}) != Answer::kPossible) ++next;
    if (next == possible) next = first;  // nothing is known yet
    while (next < possible && !ask({next, s.end})) ++next;
    if (next == possible) {
      firsts_[s.end] = first;
      return false;
    }
    possible = next;
  }
  return true;
}

std::vector<Stretch> CheapestCut::find() {
  while (true) {
    while (best_.size() <= size()) find_best(best_.size());
    std::vector<Stretch> stretches;
    size_t end = size();
    for (; end > 0; end = stretches.back().begin) {
      const Stretch s{best_[end].from, end};
      if (!is_tried(s) || !ask(s)) break;
      stretches.push_back(s);
    }
    if (end > 0) {
      best_.resize(end);
      continue;
    }
    std::ranges::reverse(stretches);
    return stretches;
  }
}

}  // namespace fusebox
