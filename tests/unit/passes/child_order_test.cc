// The order of what stands in a loop: phases between exchanges, loads first, exchanges together.
#include "passes/nest/child_order.h"

#include <gtest/gtest.h>
#include <string>

namespace fusebox::testing {
namespace {

// Children are letters: capitals exchange, those before `m` load, the others compute. An edge is two letters.
struct Children {
  std::string names;
  std::vector<std::string> edges;
};

ChildGraph graph_of(const Children& c) {
  ChildGraph g;
  for (const char name : c.names)
    g.kinds.push_back(name <= 'Z' ? ChildKind::kExchange : name < 'm' ? ChildKind::kLoad : ChildKind::kOther);
  g.successors.resize(c.names.size());
  for (const std::string& edge : c.edges) g.successors[c.names.find(edge[0])].push_back(c.names.find(edge[1]));
  return g;
}

std::string ordered(const Children& c, bool is_before_exchange = false) {
  std::string result;
  for (const size_t i : order_children(graph_of(c), is_before_exchange).order) result += c.names[i];
  return result;
}

TEST(ChildOrder, FollowsTheOpsWithoutExchanges) {
  EXPECT_EQ(ordered({"manb", {"mn"}}), "manb");
  EXPECT_EQ(ordered({"nm", {"mn"}}), "mn");
}

TEST(ChildOrder, LoadsOfAPhaseComeFirstIfItEndsWithAnExchange) {
  EXPECT_EQ(ordered({"ambnS", {"am", "bn", "mS", "nS"}}), "abmnS");
  // c is needed behind the exchange only, and stands before its reader there.
  EXPECT_EQ(ordered({"amScr", {"am", "mS", "Sr", "cr"}}), "amScr");
  EXPECT_EQ(ordered({"camSr", {"am", "mS", "Sr", "cr"}}), "amScr");
}

TEST(ChildOrder, ExchangesOfAPhaseStandTogether) {
  EXPECT_EQ(ordered({"mSxnTy", {"mS", "Sx", "nT", "Ty"}}), "mnSTxy");
  // T depends on S.
  EXPECT_EQ(ordered({"mSnTy", {"mS", "Sn", "nT", "Ty"}}), "mSnTy");
  // Nothing depends on z, which comes as early as it can.
  EXPECT_EQ(ordered({"mSzTy", {"mS", "mz", "ST", "Ty"}}), "mzSTy");
}

TEST(ChildOrder, TheBodyOfALoopBeforeAnExchangeBeginsWithItsLoads) {
  EXPECT_EQ(ordered({"ambn", {"am", "bn"}}, true), "abmn");
  const ChildOrder order = order_children(graph_of({"mSxy", {"mS", "Sx", "xy"}}), false);
  EXPECT_EQ(order.is_before_exchange, (std::vector<bool>{true, true, false, false}));
}

TEST(ChildOrder, LeavesCyclesOut) {
  EXPECT_EQ(ordered({"mno", {"no", "on"}}), "m");
  EXPECT_EQ(ordered({"mnoS", {"no", "on", "mS"}}), "mS");
}

}  // namespace
}  // namespace fusebox::testing
