// ATen's exceptions as coded errors.
//
//   const FailureWords kWords{"the reference of this program", ErrorCode::kInternal, "ATen refused an op: ", ""};
//   return with_coded_failures("@" + program.name, kWords, [&] { return at::matmul(a, b); });
//
// If ATen finds no memory, the error is `E…: there is no memory for the reference of this program; use smaller inputs`.
#pragma once

#include <string>
#include <utility>

#include "ir/table/error.h"

namespace fusebox::aten {

// Whether ATen's message says that it got no memory. Its allocators throw a type of their own for that only on a GPU.
bool is_memory_failure(const std::string& message);

struct FailureWords {
  const char* who;     // what needs memory: `an ATen segment`
  ErrorCode code;      // of any failure but that of memory
  const char* what;    // before the first line of ATen's message
  const char* advice;  // after it
};

// Throws the coded error of the exception that is being handled, at the place of the program. Throws an exception again
// that is not ATen's.
[[noreturn]] void throw_coded_failure(const std::string& place, const FailureWords& words);

// Runs `f` and returns its result. Throws what throw_coded_failure throws.
template <class F>
auto with_coded_failures(const std::string& place, const FailureWords& words, F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    throw_coded_failure(place, words);
  }
}

}  // namespace fusebox::aten
