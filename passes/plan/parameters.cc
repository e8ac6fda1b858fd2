#include "passes/plan/parameters.h"

#include "ir/domain/domain.h"

namespace fusebox {

std::optional<std::string> too_many_parameters(const Graph& fusion) {
  constexpr int64_t kOthers = 512;  // sizes, divisors, workspaces
  int64_t bytes = kOthers;
  for (ValueId v : inputs(fusion)) {
    bytes += fusion.is_tensor(v) ? kPointerBytes : size_bytes(fusion[v].dtype);
    if (!fusion.is_tensor(v)) continue;
    for (Contiguity c : contiguity_of(fusion, fusion.tensor_of(v)))
      if (c == Contiguity::kFalse) bytes += sizeof(int64_t);
  }
  for (const OutputRef& out : outputs(fusion)) bytes += fusion.is_tensor(out.value) ? kPointerBytes : 0;
  if (bytes <= kMostParameterBytes) return std::nullopt;
  return "its tensors, strides and scalars would be " + std::to_string(bytes) +
         " bytes of parameters, and a kernel has " + std::to_string(kMostParameterBytes);
}

}  // namespace fusebox
