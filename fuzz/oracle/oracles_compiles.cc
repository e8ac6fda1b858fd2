// The oracle that gives the text of every kernel to NVRTC, which needs no GPU. A compilation takes as long as about a hundred
// cases, so few cases are judged. Half of them are compiled for sm_90a, the others for an older or a newer architecture.
// NVRTC writes unrolled loops out, which takes it many seconds for a random loop of a hundred iterations around another loop.
// Such kernels are left out.
#include <algorithm>
#include <sstream>

#include "codegen/cuda.h"
#include "fuzz/base/random_source.h"
#include "fuzz/oracle/oracle.h"
#include "ir/table/error.h"
#include "passes/kernel/loop_count.h"
#include "replay/device/cuda_loader.h"

namespace fusebox::fuzz {
namespace {

constexpr std::string_view kUsual = "sm_90a";
constexpr std::string_view kOthers[] = {"sm_80", "sm_89", "sm_100a"};

constexpr int64_t kMostOps = 2048;  // of a kernel, with its unrolled loops written out

// Whether the kernel is so long that NVRTC takes many seconds.
bool is_long(const Graph& kernel) {
  const WrittenOut unrolled{.copies = [](const Op& loop) { return loop.attrs.flag(AttrKey::kUnroll); },
                            .counts = [](const Op&) { return true; }};
  return ops_written_out(kernel, Graph::body(), kMostOps, unrolled) > kMostOps;
}

// The compiler's answer: the reason why it refuses the text, or a warning, or nothing.
std::optional<Error> objection(CudaBackend& compiler, const std::string& text, std::string_view architecture) {
  try {
    const CudaBinary binary = compiler.compile(
        {.text = text, .headers = cuda_headers(), .architecture = architecture, .options = cuda_compile_options()});
    // A step `bound_launch` may ask for more threads of a multiprocessor than this architecture has.
    std::istringstream lines(binary.log);
    bool is_about_bounds = true;
    for (std::string line; std::getline(lines, line);)
      is_about_bounds &= line.empty() || line.find("minnctapersm will be ignored") != std::string::npos;
    if (is_about_bounds) return std::nullopt;
    return Error(ErrorCode::kCompileFailure, "nvrtc for " + std::string(architecture) + " warns: " + binary.log);
  } catch (const Error& e) {
    return e;
  }
}

// One text has all kernels, so that they share the time that the headers take. If that is refused, each kernel is compiled
// alone to name the bad one. Returns whether the compiler took it.
bool compile_for(OracleRun& run, CudaBackend& compiler, std::span<const Graph* const> kernels,
                 std::string_view architecture) {
  const CudaOptions options{.defects = run.options().defects};
  const auto whole = objection(compiler, emit_cuda_module(kernels, options).text, architecture);
  if (!whole) return true;
  for (const Graph* kernel : kernels)
    if (const auto own = objection(compiler, emit_cuda(*kernel, options).text, architecture)) {
      run.report("compiles", code_text(own->code), "", "@" + kernel->name + ": " + own->what());
      return false;
    }
  run.report("compiles", code_text(whole->code), "", "the kernels in one text: " + std::string(whole->what()));
  return false;
}

}  // namespace

void compiles(OracleRun& run) {
  const Compiled* c = run.compiled();
  if (!c) return;
  std::vector<const Graph*> kernels;
  for (size_t i = 0; i < c->kernels.size(); ++i)
    if (c->segmentation.segments[i].executor == SegmentExecutor::kKernel && !is_long(c->kernels[i]))
      kernels.push_back(&c->kernels[i]);
  if (kernels.empty()) return;
  CudaBackend* compiler = find_cuda_compiler();
  if (!compiler) return;
  RandomSource random = run.random(89);
  // Clusters came with sm_90.
  const bool has_clusters =
      std::ranges::any_of(kernels, [](const Graph* kernel) { return has_in_body(*kernel, OpKind::kCluster); });
  const bool is_usual = random.one_in(2) || has_clusters;
  const std::string_view other = random.pick(kOthers);
  const bool is_alone = run.options().field_changes >= kFieldChangesAlone;
  if ((is_usual || is_alone) && !compile_for(run, *compiler, kernels, kUsual)) return;
  if (!is_usual) compile_for(run, *compiler, kernels, other);
}

}  // namespace fusebox::fuzz
