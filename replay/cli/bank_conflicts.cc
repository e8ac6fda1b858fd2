#include "replay/cli/bank_conflicts.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "codegen/bytecode.h"
#include "ir/table/error.h"
#include "replay/run/host_program.h"

namespace fusebox::cli {
namespace {

// Showing a program must not take longer than reading it, nor much memory.
constexpr int64_t kMostElements = int64_t{1} << 22, kMostSteps = int64_t{1} << 29, kMostBytes = int64_t{1} << 30;

bool has_shared_memory(const Graph& kernel) {
  return std::any_of(kernel.ops.begin(), kernel.ops.end(), [](const Op& op) {
    return op.kind == OpKind::kAllocate && op.attrs.enumerator<MemoryType>(AttrKey::kMemory) == MemoryType::kShared;
  });
}

std::string described(const BankTotals& t) {
  if (t.accesses == 0) return "never reached";
  if (t.wavefronts == t.ideal) return "no bank conflict";
  return fmt::format("bank conflicts: {}-way, {} wavefronts for {}", t.ways, t.wavefronts, t.ideal);
}

// The notes by line. If an op both loads and stores shared memory, its notes say which is which.
std::map<uint32_t, std::string> notes_by_line(const std::vector<BankAccess>& accesses) {
  std::map<uint32_t, std::string> notes;
  for (const BankAccess& a : accesses) {
    const bool is_alone =
        std::count_if(accesses.begin(), accesses.end(), [&](const BankAccess& b) { return b.line == a.line; }) == 1;
    std::string& note = notes[a.line];
    if (!note.empty()) note += "; ";
    if (!is_alone) note += a.is_store ? "store: " : "load: ";
    note += described(a.totals);
  }
  return notes;
}

}  // namespace

BankNotes::BankNotes(const Module& executable, const std::function<std::vector<Argument>()>& inputs) {
  const Graph* host = nullptr;
  std::vector<NamedKernel> kernels;
  bool is_wanted = false;
  for (const Graph& g : executable.graphs) {
    if (g.level == Level::kHost) host = &g;
    if (g.level != Level::kKernel) continue;
    kernels.push_back({g.name, &g});
    is_wanted |= has_shared_memory(g);
  }
  if (!host || !is_wanted) return;
  try {
    const std::vector<Argument> arguments = inputs();
    int64_t elements = 0;
    for (const Argument& a : arguments) elements += a.is_scalar ? 0 : a.tensor.storage_elems;
    if (elements > kMostElements)
      throw Error(ErrorCode::kStepLimit, fmt::format("the inputs have {} elements, over {}", elements, kMostElements));
    const auto device = make_host_device({.step_limit = kMostSteps, .memory_limit = kMostBytes, .banks = &counted_});
    HostProgramOptions options;
    options.run_aten = [](const AtenCall& call) -> std::vector<RunTensor> {
      throw Error(ErrorCode::kModuleMissing,
                  "segment " + call.name + " runs in ATen, which is not loaded to show a program");
    };
    run_host_program(*host, kernels, *device, arguments, options, false);
  } catch (const Error& e) {
    failure_ = code_text(e.code) + (e.place.empty() ? "" : " at " + e.place) + ": " + e.what();
  }
}

std::string BankNotes::beside(const std::string& kernel, const std::string& text) const {
  std::map<uint32_t, std::string> notes;
  std::string above;
  const auto it =
      std::find_if(counted_.begin(), counted_.end(), [&](const BankCounter& c) { return c.kernel() == kernel; });
  if (!failure_.empty()) {
    above = "//   bank conflicts are not counted: " + failure_ + "\n";
  } else if (it != counted_.end()) {
    const auto accesses = it->accesses();
    if (accesses.empty()) return text;
    notes = notes_by_line(accesses);
  }
  std::string out;
  uint32_t line = 0;  // 0 above the kernel
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view own(text.data() + at, end - at);
    if (line == 0 && own.starts_with("kernel ")) {
      out += above;
      line = 1;
    }
    out += own;
    if (const auto note = notes.find(line); line > 0 && note != notes.end()) out += "  // " + note->second;
    out += "\n";
    if (line > 0) ++line;
    at = end + 1;
  }
  return out;
}

}  // namespace fusebox::cli
