#include "replay/device/kernel_images.h"

#include <algorithm>

#include "codegen/same_bits.h"
#include "ir/canonical/canonical.h"
#include "ir/module/architecture.h"
#include "ir/table/error.h"
#include "replay/device/cuda_loader.h"

namespace fusebox {
namespace {

// Empty without a compiler: then any compiler's binary will do.
std::string compiler_identity() {
  try {
    return cuda_backend().compiler_identity();
  } catch (const Error& e) {
    if (e.code != ErrorCode::kModuleMissing) throw;
    return {};
  }
}

std::string joined_options() {
  std::string all;
  for (std::string_view option : cuda_compile_options()) all += (all.empty() ? "" : " ") + std::string(option);
  return all;
}

// Throws kIllegalCluster for a kernel in clusters, if the architecture has none.
void check_architecture(const Graph& kernel, std::string_view architecture) {
  if (has_clusters(architecture) || !has_in_body(kernel, OpKind::kCluster)) return;
  throw Error(ErrorCode::kIllegalCluster,
              "a GPU of " + std::string(architecture) +
                  " has no clusters of blocks, sm_90 and newer ones have; leave the step `cluster` out",
              "@" + kernel.name);
}

}  // namespace

LaunchNeeds launch_needs(const Graph& kernel) {
  LaunchNeeds needs;
  needs.is_dependent = has_in_body(kernel, OpKind::kDependentLaunch);
  for (const Op& op : kernel.ops) {
    needs.is_cooperative |=
        op.kind == OpKind::kGridBarrier || (op.kind == OpKind::kGridReduce && op.attrs.flag(AttrKey::kAll));
    needs.opts_in_shared |=
        op.kind == OpKind::kAllocate && op.attrs.enumerator<MemoryType>(AttrKey::kMemory) == MemoryType::kShared;
  }
  return needs;
}

LaunchNeeds launch_needs(const KernelImage& image) {
  return {.is_cooperative = image.is_cooperative,
          .opts_in_shared = image.opts_in_shared,
          .is_dependent = image.is_dependent};
}

ImageRequest image_request(const Graph& kernel, const CudaSource& source, std::string_view architecture) {
  check_architecture(kernel, architecture);
  LaunchNeeds needs = launch_needs(kernel);
  // A text that a user wrote may not wait.
  needs.is_dependent &= source.text.find("wait_for_launches_in_front();") != std::string::npos;
  return {.kernel = digest(kernel),
          .text = source.text,
          .entry = source.entry,
          .architecture = std::string(architecture),
          .options = joined_options(),
          .compiler = compiler_identity(),
          .numerics = kNumericsVersion,
          .needs = needs};
}

KernelImage image_of(const ImageRequest& request, std::string_view binary) {
  return {.kernel = request.kernel,
          .source = digest_bytes(request.text),
          .entry = request.entry,
          .architecture = request.architecture,
          .options = request.options,
          .compiler = request.compiler,
          .numerics = request.numerics,
          .registers = 0,
          .local_bytes = 0,
          .shared_bytes = 0,
          .binary = {binary.begin(), binary.end()},
          .is_cooperative = request.needs.is_cooperative,
          .opts_in_shared = request.needs.opts_in_shared,
          .is_dependent = request.needs.is_dependent};
}

KernelImage compile_image(const ImageRequest& request) {
  const CudaBinary binary = cuda_backend().compile({.text = request.text,
                                                    .headers = cuda_headers(),
                                                    .architecture = request.architecture,
                                                    .options = cuda_compile_options()});
  return image_of(request, binary.bytes);
}

bool fits(const KernelImage& image, const ImageRequest& request, const Defects& defects) {
  const bool is_of_text = (image.source == digest_bytes(request.text) && image.kernel == request.kernel) ||
                          defects.has(Defect::kCacheStaleImage);
  return is_of_text && image.entry == request.entry && image.architecture == request.architecture &&
         image.options == request.options && image.numerics == request.numerics &&
         launch_needs(image) == request.needs && (request.compiler.empty() || image.compiler == request.compiler);
}

}  // namespace fusebox
