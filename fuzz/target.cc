#include "fuzz/target.h"

#include "fuzz/oracle.h"
#include "ir/print.h"

namespace fusebox::fuzz {

void judge_bytes(const uint8_t* data, size_t size, const CaseOptions& options, std::string_view oracles,
                 bool scheduled) {
  static const std::vector<size_t> rows = parse_oracles(oracles);
  expect_coded([&] {
    RandomSource random{std::span<const uint8_t>(data, size)};
    DrawnCase drawn = generate_case(random, options);
    Case& c = drawn.value;
    if (scheduled && drawn.refusal) return;
    if (!scheduled) {
      c.module.step_lists.clear();
      c.compiled.reset();
    }
    OracleRun run(c, {.step_limit = int64_t{1} << 22});
    for (size_t row : rows) oracle_rows()[row].judge(run);
    if (run.findings.empty()) return;
    for (const Finding& f : run.findings)
      std::fprintf(stderr, "finding %s: %s\n", text(f.signature).c_str(), f.message.c_str());
    std::fprintf(stderr, "%s", print(c.module).c_str());
    std::abort();
  });
}

}  // namespace fusebox::fuzz
