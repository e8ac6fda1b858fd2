// Every op on every dtype that it takes agrees with the reference evaluator, through the unfused plan on the host
// executor, with all its checks on.
#include <gtest/gtest.h>
#include <map>

#include "replay/input.h"
#include "replay/module_loader.h"
#include "replay/run.h"
#include "tests/support/op_cases.h"

namespace fusebox {
namespace {

TEST(Ops, AgreeWithTheReference) {
  try {
    load_aten();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  const test::OpCases all = test::op_cases();
  std::map<OpKind, int> per_op;
  std::map<std::string, int> failures;
  for (const test::OpCase& c : all.cases) {
    std::vector<Argument> inputs;
    for (const InputSpec& s : c.inputs) inputs.push_back(make_argument(s));
    Module m;
    m.graphs = {c.fusion};
    const fusebox::Run run = run_program(m, inputs, {.executor = Executor::kHost, .keep_sources = false});
    const std::string kind = std::string(row_of(c.kind).text) + " " + std::string(text(c.dtype));
    if (run.failure) {
      // Data without arithmetic is refused as such, not computed wrong.
      EXPECT_EQ(run.failure->code, ErrorCode::kUnsupportedDtype)
          << c.name << ": " << run.failure->message << " " << run.failure->place;
      continue;
    }
    ++per_op[c.kind];
    const auto checked = check_outputs(run, inputs);
    for (const CheckedOutput& out : checked)
      if (!out.comparison.ok && failures[kind]++ == 0)
        ADD_FAILURE() << c.name << ": " << out.comparison.message(out.name);
  }
  int ops = 0;
  for (const OpRow& row : op_rows()) {
    if (!row.at(Level::kMath) || demands(row.kind, kSignature)) continue;
    if (row.kind == OpKind::kFloorDiv || row.kind == OpKind::kFloorMod || row.kind == OpKind::kCeilDiv)
      continue;  // index arithmetic
    ++ops;
    EXPECT_GT(per_op[row.kind], 0) << row.text << " was never run";
  }
  std::printf("  %d ops, %zu cases, %d refused by the type rules\n", ops, all.cases.size(), all.refused);
}

}  // namespace
}  // namespace fusebox
