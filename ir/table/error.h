// Coded errors. Every failure that a user can cause, and every limit, is a row of error_table.inc. The library throws
// one type, `Error`. It carries the row's code, a sentence and a place.
//
// Invariants: a message is one lower-case sentence that names the value and says what to do. `place` is a value (`%x`),
// a domain (`%x.i0`), a text position (`12:7`), a field of a file (`module.graphs[0]`), or empty.
//
//   throw Error(ErrorCode::kShapeMismatch, "operands differ in extent on axis 1; broadcast one of them first", "%y");
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace fusebox {

// The answer to an error that a user can give: correct the input, wait for support, make it smaller, or report it.
enum class Outcome : uint8_t { kInvalidInput, kUnsupported, kLimitExceeded, kInternal };

enum class ErrorCode : uint16_t {
#define FUSEBOX_ERROR(name, number, outcome, summary) name = number,
#include "ir/table/error_table.inc"
#undef FUSEBOX_ERROR
};

struct ErrorRow {
  ErrorCode code;
  std::string_view name;  // the enumerator without its k: `ShapeMismatch`
  Outcome outcome;
  std::string_view summary;
};

std::span<const ErrorRow> error_rows();
const ErrorRow& row_of(ErrorCode code);
// The code as users see it: `E0203`.
std::string code_text(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, std::string place = {})
      : std::runtime_error(message), code(code), place(std::move(place)) {}

  ErrorCode code;
  std::string place;
};

// Checks a condition that Fusebox itself guarantees. Throws kInternal with `what` if it does not hold.
inline void check_internal(bool holds, const char* what) {
  if (!holds) throw Error(static_cast<ErrorCode>(900), what);
}

}  // namespace fusebox
