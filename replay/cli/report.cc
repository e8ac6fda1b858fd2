#include "replay/cli/report.h"

#include <cstdio>

#include "replay/cli/json.h"
#include "replay/record/record.h"

namespace fusebox::cli {

void print_text(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw Error(ErrorCode::kFileWrite, "standard output takes no more; give it a place with room", "stdout");
}

void print_line(std::string_view line) { print_text(std::string(line) + "\n"); }

std::string error_object(ErrorCode code, std::string_view message, std::string_view place) {
  return JsonObject().add("code", code_text(code)).add("message", message).add("place", place).text();
}

void report_error(const Error& e, const Common& common) {
  if (common.json) return print_line(JsonObject().raw("error", error_object(e.code, e.what(), e.place)).text());
  std::fflush(stdout);
  note(code_text(e.code) + (e.place.empty() ? "" : " " + e.place) + ": " + e.what());
}

// Unlike fmt::print, fputs throws nothing where standard error is closed or full.
void note(std::string_view text) { std::fputs(fmt::format("fusebox: {}\n", text).c_str(), stderr); }

int exit_code(ErrorCode code) { return row_of(code).outcome == Outcome::kInternal ? 3 : 2; }

int failure_exit_code(ErrorCode code) {
  const bool is_finding = code >= ErrorCode::kOutOfBounds && code <= ErrorCode::kUnwrittenOutput;
  return is_finding ? 1 : exit_code(code);
}

void write_reproducer(const Bundle& bundle, const Common& common) {
  const std::string path = write_to_temporary(bundle);
  if (common.json)
    print_line(JsonObject().add("reproducer", path).text());
  else
    note("this bundle reproduces it: " + path);
}

}  // namespace fusebox::cli
