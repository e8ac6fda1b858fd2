// The cheapest cut of a fusion's ops into stretches. The costs of stretches are known beforehand. Whether one kernel may
// have a stretch is expensive to tell, so it is asked only where the answer decides something: the cheapest cut is found
// as if all stretches were possible that nobody has asked for, and then its stretches are asked for, from the last one on.
// As long as one of them is refused, the next cheapest cut is looked for.
//
// Longer stretches with one end are not tried once kMostRefused with that end are refused in a row.
//
// Invariants: the result depends on the costs and on which stretches are possible, and not on what was asked before. Of cuts
// that cost the same it is the one with the shortest last stretch, and so on from there. A stretch of one op is possible.
//
//   CheapestCut cut(costs, is_possible);     // costs[end][begin]
//   cut.find()                               // {0, 40}, {40, 96}
//   cut.refuse({40, 96});                    // it turned out to be impossible
//   cut.find()
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "passes/automatic/stretches.h"

namespace fusebox {

class CheapestCut {
 public:
  // So many stretches with one end are refused in a row until longer ones are no longer tried.
  static constexpr size_t kMostRefused = 16;

  CheapestCut(std::vector<std::vector<double>> costs, std::function<bool(Stretch)> is_possible);

  std::vector<Stretch> find();
  void refuse(Stretch s);
  // Makes a stretch more expensive by so much. Cuts of other stretches may be the cheapest then.
  void raise(Stretch s, double more);

 private:
  enum class Answer : uint8_t { kNotAsked, kPossible, kRefused };

  // The cheapest cut of the ops before a position: its cost, and where its last stretch begins.
  struct BestEnd {
    double least = std::numeric_limits<double>::infinity();
    size_t from = 0;
  };

  size_t size() const { return costs_.size() - 1; }  // of the fusion
  Answer& answer(Stretch s) { return answers_[s.end * size() + s.begin]; }
  bool ask(Stretch s);
  void find_best(size_t end);
  bool is_tried(Stretch s);

  std::vector<std::vector<double>> costs_;
  const std::function<bool(Stretch)> is_possible_;
  std::vector<Answer> answers_;
  std::vector<size_t> firsts_;  // by end: where the longest stretch begins that may be tried
  std::vector<BestEnd> best_;   // by end, as far as it is known
};

}  // namespace fusebox
