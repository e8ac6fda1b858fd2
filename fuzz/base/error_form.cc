#include "fuzz/base/error_form.h"

#include <string_view>

namespace fusebox::fuzz {

bool is_well_formed(const Error& e) {
  const std::string_view message = e.what(), place = e.place;
  if (message.find(' ') == std::string_view::npos) return false;
  // A name may hold blanks; `line 7` does.
  const bool is_name = place.starts_with('%') || place.starts_with('@') || place.starts_with("line ");
  return is_name || place.find("; ") == std::string_view::npos;
}

void expect_refusal(const Error& e) {
  if (row_of(e.code).outcome == Outcome::kInternal) throw Error(e);
  if (!is_well_formed(e))
    throw Error(ErrorCode::kInternal,
                "the error " + code_text(e.code) + " says `" + e.what() + "` at the place `" + e.place + "`");
}

}  // namespace fusebox::fuzz
