#include "replay/cache/compiled_record.h"

#include <set>

#include "ir/canonical/canonical.h"
#include "passes/host/launch_code.h"

namespace fusebox {

std::optional<LaunchRecord> launch_record(const Compiled& compiled) {
  std::vector<std::string> kernels;
  for (const Segment& s : compiled.segmentation.segments) kernels.push_back(s.name);
  return launch_code(compiled.host, kernels);
}

std::vector<KernelImage> images_of(const Compiled& compiled, std::span<const KernelImage> images) {
  std::vector<KernelImage> result;
  if (images.empty()) return result;
  std::set<Digest> kernels;
  for (const Graph& kernel : compiled.kernels)
    if (!kernel.ops.empty()) kernels.insert(digest(kernel));
  for (const KernelImage& image : images)
    if (kernels.contains(image.kernel)) result.push_back(image);
  return result;
}

CompiledFusion compiled_fusion(const Compiled& compiled, std::span<const KernelImage> images,
                               InputSignature signature) {
  CompiledFusion result;
  result.signature = std::move(signature);
  result.launch = launch_record(compiled);
  result.program.graphs = {compiled.concretized};
  result.program.step_lists = {{"concretize", compiled.concretized.name, compiled.concretize}};
  if (compiled.automatic)
    result.program.step_lists.push_back({"automatic", compiled.concretized.name, compiled.automatic->steps});
  result.program.segmentations = {compiled.segmentation};
  result.scheduled.graphs = compiled.scheduled;
  result.code.graphs = {compiled.host};
  const auto is_kernel = [&](size_t i) {
    return compiled.segmentation.segments[i].executor == SegmentExecutor::kKernel;
  };
  for (size_t i = 0; i < compiled.kernels.size(); ++i)
    if (is_kernel(i)) result.code.graphs.push_back(compiled.kernels[i]);
  for (size_t i = 0; i < compiled.launches.size(); ++i)
    if (is_kernel(i)) result.code.graphs.push_back(compiled.launches[i]);
  result.plans = compiled.plans;
  result.index_bits = compiled.index_bits;
  result.images = images_of(compiled, images);
  return result;
}

Compiled compiled_of(const CompiledFusion& fusion) {
  Compiled result;
  result.concretize = fusion.program.step_lists[0].steps;
  if (fusion.program.step_lists.size() > 1)
    result.automatic =
        Automatic{.steps = fusion.program.step_lists[1].steps, .decisions = {}, .sizes = {}, .memory = {}};
  result.concretized = fusion.program.graphs[0];
  result.segmentation = fusion.program.segmentations[0];
  result.scheduled = fusion.scheduled.graphs;
  result.host = fusion.code.graphs[0];
  const size_t kernels = fusion.code.graphs.size() / 2;
  size_t next = 1;
  for (const Segment& s : result.segmentation.segments) {
    const bool is_kernel = s.executor == SegmentExecutor::kKernel;
    result.kernels.push_back(is_kernel ? fusion.code.graphs[next] : Graph());
    result.launches.push_back(is_kernel ? fusion.code.graphs[next + kernels] : Graph());
    next += is_kernel ? 1 : 0;
  }
  result.plans = fusion.plans;
  result.index_bits = fusion.index_bits;
  return result;
}

}  // namespace fusebox
