// A program as `print` writes it.
#pragma once

namespace fusebox {

inline constexpr const char* kRowSumText =
    "fusion @row_sum {\n"
    "  %m, %n = size\n"
    "  %x = input bf16[%m, %n] contiguous\n"
    "  %f = cast %x as f32 : f32[%m, %n]\n"
    "  %y = sum %f over [1] : f32[%m]\n"
    "  output %y\n"
    "}\n";

}  // namespace fusebox
