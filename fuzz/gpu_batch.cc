#include "fuzz/gpu_batch.h"

#include <algorithm>

#include "ir/error.h"
#include "replay/cuda_loader.h"

namespace fusebox::fuzz {
namespace {

// The device's context lives as long as a session does; making one anew takes longer than most batches.
void keep_context() { static const std::unique_ptr<CudaSession> session = cuda_backend().open(0); }

}  // namespace

GpuBatch judge_on_gpu(std::span<const GpuCase> cases, const JudgeOptions& options, int threads) {
  GpuBatch batch;
  keep_context();
  const auto device = make_cuda_device();
  std::vector<const Graph*> kernels;
  for (const GpuCase& c : cases) {
    const Compiled& compiled = *c.subject.compiled;
    for (size_t k = 0; k < compiled.kernels.size(); ++k)
      if (compiled.segmentation.segments[k].executor == SegmentExecutor::kKernel)
        kernels.push_back(&compiled.kernels[k]);
  }
  batch.kernels = device->prepare_all(kernels, threads);
  JudgeOptions own = options;
  own.gpu = device.get();
  for (const GpuCase& c : cases) {
    OracleRun run(c.subject, own);
    try {
      gpu(run);
    } catch (const Error& e) {
      run.report("gpu", e, "the oracle itself");
    }
    ++batch.judged;
    if (run.findings.empty()) continue;
    const std::string lost = code_text(ErrorCode::kDeviceFailure);
    batch.is_device_lost = std::any_of(run.findings.begin(), run.findings.end(),
                                       [&](const Finding& f) { return f.signature.check == lost; });
    batch.verdicts.push_back({c.number, std::move(run.findings)});
    if (batch.is_device_lost) break;
  }
  return batch;
}

}  // namespace fusebox::fuzz
