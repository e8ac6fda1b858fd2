// Former findings of random programs, made small. Every oracle that needs no GPU judges them and must find nothing. A
// schedule may be refused with a code.
//
// To keep a finding: `fusebox reduce FINDING -o tests/fuzz/findings/WHAT_IT_IS.fir`.
#include <filesystem>
#include <gtest/gtest.h>
#include <set>

#include "fuzz/reduce/reduce.h"
#include "fuzz/run/runner.h"
#include "ir/table/error.h"

namespace fusebox::fuzz {
namespace {

TEST(Findings, StayMended) {
  RunnerOptions options;
  for (size_t i = 0; i < oracle_rows().size(); ++i)
    if (oracle_rows()[i].text != "gpu") options.oracles.push_back(i);
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/fuzz/findings")) files.insert(entry.path());
  ASSERT_GT(files.size(), 20u);
  for (const auto& file : files) {
    SCOPED_TRACE(file.string());
    Statistics statistics;
    for (const Finding& f : judge_case(load_finding(file.string()).subject, options, 0, statistics))
      ADD_FAILURE() << text(f.signature) << ": " << f.message;
  }
}

}  // namespace
}  // namespace fusebox::fuzz
