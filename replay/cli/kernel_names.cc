#include "replay/cli/kernel_names.h"

#include <charconv>
#include <map>

#include "ir/canonical/canonical.h"
#include "ir/text/print.h"
#include "ir/token/printer.h"

namespace fusebox::cli {
namespace {

// A name as programs write it: quoted if it is not plain. So a comment stays on its line, whatever the name holds.
std::string written(char mark, std::string_view name) {
  Printer p;
  p.add_name(mark, name);
  return std::move(p.out);
}

// The name in the program of a kernel's value. Lowering names a parameter or buffer T and the number of its tensor
// (with `_…` for a part of it), and a scalar s and the number of its value, in the canonical order of the scheduled
// graph.
std::string program_name(const std::string& kernel_name, const Graph& ordered) {
  if (kernel_name.starts_with("launched")) return "a quotient of sizes that the launch computes";
  if (kernel_name.starts_with("prepared")) return "what the launch prepares of a divisor";
  if (kernel_name.size() < 2) return {};
  size_t number = 0;
  const char* end = kernel_name.data() + kernel_name.size();
  const auto [rest, error] = std::from_chars(kernel_name.data() + 1, end, number);
  if (error != std::errc()) return {};
  if (kernel_name[0] == 's' && rest == end && number < ordered.values.size()) {
    const auto v = ValueId(static_cast<uint32_t>(number));
    return ordered[v].kind == ValueKind::kScalar && !ordered[v].name.empty() ? written('%', ordered[v].name) : "";
  }
  if (kernel_name[0] != 'T') return {};
  for (const Value& v : ordered.values) {
    if (v.kind != ValueKind::kTensor || v.tensor.index != number) continue;
    const std::string_view part(rest, end);
    const std::string name = written('%', v.name);
    if (part.empty()) return name;
    if (part.starts_with("_stride")) return "the stride of " + name + " on axis " + std::string(part.substr(7));
    if (part == "_acc") return "the accumulator of " + name;
    if (part.starts_with("_acc")) return "partial sum " + std::string(part.substr(4)) + " of " + name;
    return "the " + std::string(part.substr(1)) + " of " + name;
  }
  return {};
}

void collect_buffers(const Graph& g, RegionId region, std::vector<ValueId>& out) {
  for (OpId id : g[region].ops) {
    if (g[id].kind == OpKind::kAllocate) out.push_back(g[id].results[0]);
    for (RegionId inner : g[id].regions) collect_buffers(g, inner, out);
  }
}

}  // namespace

std::string kernel_comments(const Graph& kernel, const Graph* scheduled, bool cuda_first) {
  const Graph ordered = scheduled ? canonical_order(*scheduled) : Graph();
  std::map<std::string, int> numbers;
  std::string out = "// " + written('@', kernel.name) + "\n";
  const auto add = [&](ValueId v, const std::string& kind) {
    const std::string in_cuda = kind + std::to_string(numbers[kind]++);
    const std::string here = written('%', kernel[v].name);
    std::string known = program_name(kernel[v].name, ordered);
    if (known.empty()) known = cuda_first ? here + " of the kernel" : "made by lowering";
    out += "//   " + (cuda_first ? in_cuda : here) + " is " + known + (cuda_first ? "" : "; in CUDA text " + in_cuda) +
           "\n";
  };
  for (ValueId v : inputs(kernel)) add(v, kernel.is_tensor(v) ? "t" : "s");
  std::vector<ValueId> buffers;
  collect_buffers(kernel, Graph::body(), buffers);
  for (ValueId v : buffers)
    add(v, kernel[kernel[v].def].attrs.enumerator<MemoryType>(AttrKey::kMemory) == MemoryType::kShared ? "shared"
                                                                                                       : "local");
  return out;
}

}  // namespace fusebox::cli
