// The signature of a call: what a plan of the program may depend on in its arguments (ir/module/input_signature.h).
//
// Plans are looked for among those of the same signature, and `serves` (pipeline.h) decides: sizes that the program computes
// have classes of their own.
#pragma once

#include <string>

#include "ir/module/input_signature.h"
#include "passes/pipeline/pipeline.h"

namespace fusebox {

// `options` are those of the compilation, with its inputs. The classes of sizes and addresses are left out for a program that
// the schedulers do not plan.
InputSignature signature_of(const Graph& fusion, const CompileOptions& options);

// Why a plan with the same signature does not serve these sizes, in words. Throws as `serves` does.
std::string why_not(const Compiled& compiled, const Graph& fusion, const Bindings& bindings,
                    const CompileOptions& options);

}  // namespace fusebox
