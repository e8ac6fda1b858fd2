#include "replay/aten/failures.h"

#include <c10/util/Exception.h>
#include <new>

namespace fusebox::aten {

bool is_memory_failure(const std::string& message) {
  return message.find("not enough memory") != std::string::npos ||
         message.find("can't allocate memory") != std::string::npos;
}

void throw_coded_failure(const std::string& place, const FailureWords& words) {
  const auto no_memory = [&] {
    return Error(ErrorCode::kOutOfMemory, "there is no memory for " + std::string(words.who) + "; use smaller inputs",
                 place);
  };
  try {
    throw;
  } catch (const c10::OutOfMemoryError&) {
    throw no_memory();
  } catch (const c10::Error& e) {
    const std::string message = e.what_without_backtrace();
    if (is_memory_failure(message)) throw no_memory();
    throw Error(words.code, words.what + message.substr(0, message.find('\n')) + words.advice, place);
  } catch (const std::bad_alloc&) {
    throw no_memory();
  }
}

}  // namespace fusebox::aten
