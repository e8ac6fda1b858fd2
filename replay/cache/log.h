// The environment variable FUSEBOX_LOG: a list of words such as `cache,recompiles`, each of which asks for lines on standard
// error. It is read when a log is made.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace fusebox {

// Prints `fusebox: WORD: LINE`. Null if FUSEBOX_LOG does not have the word.
std::function<void(const std::string&)> log_of(std::string_view word);

}  // namespace fusebox
