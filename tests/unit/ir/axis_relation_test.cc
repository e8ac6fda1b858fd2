#include "ir/domain/axis_relation.h"

#include <gtest/gtest.h>

#include "ir/build/builder.h"
#include "ir/infer/infer.h"

namespace fusebox {
namespace {

using enum AxisRelation;
using Relations = std::vector<OperandAxis>;

class AxisRelationOf : public ::testing::Test {
 protected:
  AxisRelationOf() : g(fusion("f")) {}
  ValueId tensor(std::vector<int64_t> extents, Dtype dtype = Dtype::kFloat) {
    return input(g, "", dtype, Shape(extents.begin(), extents.end()));
  }
  Relations of(ValueId result, size_t operand = 0) const { return axis_relation(g, g[g[result].def], operand); }
  std::vector<bool> by_data(ValueId result) const {
    std::vector<bool> list;
    const Op& op = g[g[result].def];
    for (size_t k = 0; k < op.operands.size(); ++k) list.push_back(reads_by_data(g, op, k));
    return list;
  }

  Graph g;
};

TEST_F(AxisRelationOf, MovesPlaceAxes) {
  const ValueId x = tensor({3, 4});
  EXPECT_EQ(of(unary(g, OpKind::kNeg, x)), (Relations{{kSame, 0}, {kSame, 1}}));
  EXPECT_EQ(of(permute(g, x, {1, 0})), (Relations{{kSame, 1}, {kSame, 0}}));
  EXPECT_EQ(of(broadcast(g, x, {true, false, false})), (Relations{{kSame, 1}, {kSame, 2}}));
  EXPECT_EQ(of(broadcast_in_dim(g, x, {3, 5, 4}, {0, 2})), (Relations{{kBroadcast, 0}, {kBroadcast, 2}}));
  EXPECT_EQ(of(squeeze(g, tensor({3, 1, 4}), {1})), (Relations{{kSame, 0}, {kDropped, kNoAxis}, {kSame, 1}}));
  EXPECT_EQ(of(slice(g, x, {1, 0}, {2, 4})), (Relations{{kResized, 0}, {kResized, 1}}));
  EXPECT_EQ(of(reshape(g, x, {12})), (Relations{{kRegrouped, 0}, {kRegrouped, 1}}));
  EXPECT_EQ(of(cat(g, {x, x}, -1), 1), (Relations{{kSame, 0}, {kJoined, 1}}));
}

TEST_F(AxisRelationOf, ReductionsKeepTheirAxesInTheRoot) {
  const ValueId x = tensor({3, 4});
  EXPECT_EQ(of(sum(g, x, {-1})), (Relations{{kSame, 0}, {kReduced, 1}}));
  EXPECT_EQ(read_of(OpKind::kSum, 0), Read::kAlong);
}

TEST_F(AxisRelationOf, IndicesChoose) {
  const ValueId x = tensor({3, 4}), index = tensor({2, 4}, Dtype::kInt64), list = tensor({5}, Dtype::kInt64);
  const ValueId scalar = tensor({}, Dtype::kInt64), y = tensor({2, 4});
  const ValueId chosen = select(g, x, constant_index(g, 1), 0), at_data = select(g, x, scalar, 0);
  EXPECT_EQ(of(chosen), (Relations{{kChosen, kNoAxis}, {kSame, 0}}));
  EXPECT_EQ(of(index_select(g, x, list, 0)), (Relations{{kChosen, 0}, {kSame, 1}}));
  EXPECT_EQ(of(index_select(g, x, list, 1), 1), (Relations{{kSame, 1}}));
  EXPECT_EQ(of(gather(g, x, index, 0)), (Relations{{kChosen, 0}, {kWithin, 1}}));
  EXPECT_EQ(of(gather(g, x, index, 0), 1), (Relations{{kSame, 0}, {kSame, 1}}));
  EXPECT_EQ(of(take_along_axis(g, x, index, 0)), (Relations{{kChosen, 0}, {kSame, 1}}));
  EXPECT_EQ(of(scatter(g, x, index, y, 0)), (Relations{{kSame, 0}, {kSame, 1}}));
  EXPECT_EQ(of(scatter(g, x, index, y, 0), 2), (Relations{{kChosen, 0}, {kWithin, 1}}));
  // An index that is a scalar is the same for every element; scatter reads its first operand where it writes.
  using Reads = std::vector<bool>;
  EXPECT_EQ(by_data(chosen), (Reads{false, false}));
  EXPECT_EQ(by_data(at_data), (Reads{true, false}));
  EXPECT_EQ(by_data(gather(g, x, index, 0)), (Reads{true, false}));
  EXPECT_EQ(by_data(scatter(g, x, index, y, 0)), (Reads{false, true, true}));
  EXPECT_EQ(by_data(unary(g, OpKind::kNeg, x)), (Reads{false}));
}

TEST_F(AxisRelationOf, RanksThatDoNotFitHaveNone) {
  const Attrs none;
  EXPECT_EQ(axis_relation(AxisRule::kSame, none, 2, 3), (Relations{{}, {}}));
  Attrs at;
  at.set(AttrKey::kAxis, int64_t{7});
  EXPECT_EQ(axis_relation(AxisRule::kChosen, at, 2, 2), (Relations{{kSame, 0}, {kSame, 1}}));
  EXPECT_TRUE(axis_relation(AxisRule::kWhole, none, 0, 2).empty());
}

// Every row that reads by an index names the index, and every index chooses an axis of some operand.
TEST_F(AxisRelationOf, RowsNameTheirIndex) {
  for (const OpRow& row : op_rows()) {
    EXPECT_EQ(index_operand(row.kind).has_value(), demands(row.kind, kIndexed)) << row.text;
    bool any = false;
    for (size_t i = 0; i < row.format->all().size(); ++i) any |= read_of(row.kind, i) == Read::kData;
    EXPECT_EQ(any, demands(row.kind, kIndexed)) << row.text;
  }
}

}  // namespace
}  // namespace fusebox
