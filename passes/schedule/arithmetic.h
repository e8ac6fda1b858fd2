// Which ops are a little arithmetic: an instruction or two for an element, which is less than storing it costs.
#pragma once

#include "ir/table/op.h"

namespace fusebox {

bool is_arithmetic(OpKind kind);

}  // namespace fusebox
