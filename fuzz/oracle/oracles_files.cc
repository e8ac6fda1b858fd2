// The oracle of file tests: tests/filetests holds programs with everything that is expected of them, which are compiled in.
// They do not depend on the case, so a campaign asks for each of them once, at its beginning.
#include <algorithm>
#include <fmt/format.h>

#include "fuzz/known/file_test.h"
#include "fuzz/oracle/oracle.h"
#include "ir/table/error.h"
#include "replay/record/text_diff.h"

namespace fusebox::fuzz {
namespace {

// `checks` reads a folder, which a campaign does not have.
bool needs_files(const FileRequest& request) { return request.kind == "checks"; }

void judge(OracleRun& run, const FileTestText& file) {
  const FileTest test = parse_file_test(std::string(file.text));
  if (needs_files(test.request)) return;
  const std::string name = fmt::format("{}/{}", test.request.kind, file.name);
  try {
    const std::string actual = outcome_of(test.request, test.input);
    if (actual != test.expected)
      run.report("files", name, "",
                 "tests/filetests/" + name + " expects another text; if the new one is meant, run " +
                     "`BLESS=1 build/tests/filetests` and build again\n" + text_diff(test.expected, actual, 0));
  } catch (const Error& e) {
    run.report("files", e, name);
  }
}

}  // namespace

void files(OracleRun& run) {
  if (!run.options().defects.empty()) return;  // the files are made without seeded defects
  constexpr uint64_t kPerCase = 2;
  const std::span<const FileTestText> all = file_test_texts();
  const bool is_alone = run.options().field_changes >= kFieldChangesAlone;
  const uint64_t begin = is_alone ? 0 : std::min<uint64_t>(run.options().number, all.size()) * kPerCase;
  const uint64_t end = is_alone ? all.size() : std::min<uint64_t>(begin + kPerCase, all.size());
  for (uint64_t i = begin; i < end; ++i) judge(run, all[i]);
}

}  // namespace fusebox::fuzz
