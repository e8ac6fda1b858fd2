// Law: an op with data-dependent reads or writes gives the reference's result. If an index lies outside its axis, the
// host executor reports E0419, and so does the reference, for every plan and every op, even if the place lies inside
// the buffer.
#include <gtest/gtest.h>

#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "replay/data/input.h"
#include "replay/device/module_loader.h"
#include "replay/run/compare.h"
#include "replay/run/run.h"

namespace fusebox {
namespace {

Argument made(const std::string& spec) { return make_argument(parse_input_spec("x", spec)); }

// Indices of the given shape, all 0 but one.
Argument indices(const std::string& type, int64_t count, int64_t one) {
  Argument a = made(type + " integers 0 1 seed 1");
  store_element(a.tensor, a.tensor.offset + count / 2, {static_cast<uint64_t>(one), 0});
  return a;
}

struct Op {
  const char* text;   // uses %t, %i and %s
  const char* shape;  // of the indices; empty: a scalar
  int64_t count;      // number of indices
  int64_t extent;     // of the indexed axis
  bool from_end = false;
};
// The table is f32[3, 4] inside a larger buffer.
constexpr Op kOps[] = {
    {"index_select %t, %i axis 1", "5", 5, 4},       {"index_select %t, %i axis 0", "5", 5, 3},
    {"gather %t, %i axis 1", "3, 2", 6, 4},          {"gather %t, %i axis 0", "2, 4", 8, 3},
    {"take_along_axis %t, %i axis 1", "3, 2", 6, 4}, {"take_along_axis %t, %i axis -2", "2, 1", 2, 3},
    {"select %t, %i axis 1", "", 1, 4, true},        {"select %t, %i axis 0", "", 1, 3, true},
    {"scatter %t, %i, %s axis 1", "3, 2", 6, 4},     {"scatter %t, %i, %s axis 0", "3, 2", 6, 3}};

enum class Table { kInput, kComputed, kOutput };
enum class Plan { kUnfused, kOneThread, kAssigned };

// The outcome under one plan: nothing, or the error's code.
std::optional<ErrorCode> outcome(const Op& op, int64_t index, Table table, Plan plan) {
  const bool is_scalar = op.shape[0] == '\0';
  std::string text = "fusion @f {\n  %x = input f32[3, 4] contiguity [false, true]\n  %i = input i64";
  if (!is_scalar) text += "[" + std::string(op.shape) + "]";
  text += "\n  %s = input f32[3, 2]\n";
  const bool is_input = table == Table::kInput;
  if (!is_input) text += "  %n = neg %x\n";
  std::string reads = op.text;
  reads.replace(reads.find("%t"), 2, is_input ? "%x" : "%n");
  text += "  %r = " + reads + "\n  %y = exp %r\n";
  if (table == Table::kOutput) text += "  output %n\n";
  text += "  output %y\n}\n";
  if (plan == Plan::kOneThread)
    text += "steps @f {\n  set_memory_type " + std::string(is_input ? "%r" : "%n") + " in global\n}\n";
  if (plan == Plan::kAssigned)
    text += "steps @f {\n" + std::string(is_input ? "" : "  assign of [%n] name \"a\"\n") +
            "  assign of [%r, %y] name \"b\"\n}\n";
  SCOPED_TRACE(text);
  const Module m = parse_module(text);
  const std::vector<Argument> inputs = {made("f32[3, 4] strides [16, 1] offset 40 normal seed 1"),
                                        is_scalar ? Argument::scalar(Dtype::kInt64, {static_cast<uint64_t>(index), 0})
                                                  : indices("i64[" + std::string(op.shape) + "]", op.count, index),
                                        made("f32[3, 2] normal seed 2")};
  // A bad scalar index is refused before the run.
  Run r;
  std::optional<ErrorCode> code;
  try {
    r = run_program(m, inputs, {.unfused = plan == Plan::kUnfused, .keep_sources = false});
    if (r.failure) code = r.failure->code;
  } catch (const Error& e) {
    code = e.code;
  }
  std::optional<ErrorCode> expected;
  Evaluation reference;
  try {
    reference = load_aten().evaluate(main_graph(m), inputs);
  } catch (const Error& e) {
    expected = e.code;
  }
  EXPECT_EQ(code, expected);
  if (code || expected) return code;
  for (size_t i = 0; i < r.outputs.size(); ++i)
    EXPECT_TRUE(compare(r.outputs[i].value.tensor, reference.outputs[i]).ok) << "output " << i;
  return std::nullopt;
}

TEST(ChosenIndices, StayInsideTheirAxis) {
  if (!find_aten()) GTEST_SKIP() << "no ATen";
  for (const Op& op : kOps)
    for (const Table table : {Table::kInput, Table::kComputed, Table::kOutput})
      for (const Plan plan : {Plan::kUnfused, Plan::kOneThread, Plan::kAssigned}) {
        for (const int64_t inside : {int64_t{0}, op.extent - 1}) EXPECT_FALSE(outcome(op, inside, table, plan));
        for (const int64_t outside : {op.extent, int64_t{-5}, int64_t{1} << 40, (int64_t{1} << 32) + 1})
          EXPECT_EQ(outcome(op, outside, table, plan), ErrorCode::kIndexOutOfRange);
        EXPECT_EQ(outcome(op, -1, table, plan).has_value(), !op.from_end);
      }
}

// A table whose layout the kernel itself splits into other domains than its axes.
TEST(ChosenIndices, OfATableInParts) {
  const std::string text =
      "fusion @f {\n  %x = input f32[3, 4]\n  %i = input i64[5]\n  %n = neg %x\n  %y = index_select %n, %i axis 1\n"
      "  output %y\n}\nsteps @f {\n  set_memory_type %n in global\n  split %n.i1 by 3 -> o, t\n"
      "  set_allocation %n to [%n.i0, %n.o, %n.t]\n}\n";
  for (const int64_t index : {3, 4, 5}) {
    const std::vector<Argument> inputs = {made("f32[3, 4] normal seed 1"), indices("i64[5]", 5, index)};
    const fusebox::Run r = run_program(parse_module(text), inputs, {.keep_sources = false});
    if (index < 4)
      EXPECT_FALSE(r.failure) << r.failure->message;
    else
      EXPECT_EQ(r.failure->code, ErrorCode::kIndexOutOfRange) << r.failure->message;
  }
}

}  // namespace
}  // namespace fusebox
