// Binaries of kernels from elsewhere than the compiler: a cache, or a compiled fusion. A device asks for them before it
// compiles.
//
//   if (const auto image = images.find(request)) session.load(…, image->entry); else images.keep(request, made);
#pragma once

#include <optional>
#include <string>

#include "codegen/cuda.h"
#include "ir/table/defect.h"
#include "serde/cache_record.h"

namespace fusebox {

// What a launch of a kernel needs beside its dimensions, as in KernelImage.
struct LaunchNeeds {
  bool is_cooperative = false;
  bool opts_in_shared = false;
  bool is_dependent = false;
  bool operator==(const LaunchNeeds&) const = default;
};
LaunchNeeds launch_needs(const Graph& kernel);
LaunchNeeds launch_needs(const KernelImage& image);

// A kernel that is needed as a binary.
struct ImageRequest {
  Digest kernel;     // of the kernel program
  std::string text;  // CUDA
  std::string entry;
  std::string architecture;
  std::string options;   // with a blank between two
  std::string compiler;  // CudaBackend::compiler_identity; empty: there is none, and any will do
  int64_t numerics = 0;
  LaunchNeeds needs = {};
};

// Throws kModuleMissing if CUDA's module is not there; a compiler may be missing. Throws kIllegalCluster for a kernel with
// clusters and an architecture without.
ImageRequest image_request(const Graph& kernel, const CudaSource& source, std::string_view architecture);
// The image that answers the request; the facts that only a driver knows are 0.
KernelImage image_of(const ImageRequest& request, std::string_view binary);
// Compiles the request's text. Throws kCompileFailure, kModuleMissing.
KernelImage compile_image(const ImageRequest& request);

// Whether the image is what the request would be compiled to.
bool fits(const KernelImage& image, const ImageRequest& request, const Defects& defects = {});

class KernelImages {
 public:
  virtual ~KernelImages() = default;
  virtual std::optional<KernelImage> find(const ImageRequest& request) = 0;
  virtual void keep(const ImageRequest& request, const KernelImage& image) = 0;
};

}  // namespace fusebox
