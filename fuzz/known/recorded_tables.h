// Tables of calls, which recorded_calls.cc gives by name.
#pragma once

#include <string>

namespace fusebox::fuzz {

std::string builder_calls();            // on a fusion
std::string scheduled_builder_calls();  // the same on a scheduled graph
std::string low_level_calls();          // ops of kernels and host programs
std::string type_calls();               // what ops make of dtypes

std::string evaluation_calls();      // scalars by value
std::string kernel_builder_calls();  // the builder of kernels
std::string launch_calls();          // a kernel with wrong arguments
std::string resolution_calls();      // symbolic axes
std::string many_loop_calls();       // an algebra with very many loops

}  // namespace fusebox::fuzz
