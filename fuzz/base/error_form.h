// The form of errors: a message is a sentence, and a place is a name, a line or a field. An error whose place holds the
// sentence is a bug of the code that threw it.
#pragma once

#include "ir/table/error.h"

namespace fusebox::fuzz {

// Whether message and place of an error look like a message and a place.
bool is_well_formed(const Error& e);
// For an error that was caught and may refuse a program: throws it again if it is internal, and throws kInternal if it
// is not well formed.
void expect_refusal(const Error& e);

}  // namespace fusebox::fuzz
