// Expects coded errors: code and place must match, and there must be a sentence.
#pragma once

#include <gtest/gtest.h>
#include <string>

#include "ir/table/error.h"

namespace fusebox::testing {

template <class Call>
void expect_error(ErrorCode code, const std::string& place, Call call) {
  try {
    call();
    ADD_FAILURE() << "no error; expected " << code_text(code) << " at " << place;
  } catch (const Error& error) {
    EXPECT_EQ(code_text(error.code), code_text(code)) << error.what();
    EXPECT_EQ(error.place, place) << error.what();
    EXPECT_STRNE(error.what(), "");
  }
}

}  // namespace fusebox::testing
