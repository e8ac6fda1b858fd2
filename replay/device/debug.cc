#include "replay/device/debug.h"

#include <cstdlib>
#include <string_view>

namespace fusebox {

bool debug_launches() {
  static const bool is_on = [] {
    const char* const value = std::getenv("FUSEBOX_DEBUG");
    return value != nullptr && std::string_view(value) != "" && std::string_view(value) != "0";
  }();
  return is_on;
}

}  // namespace fusebox
