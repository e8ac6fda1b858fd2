// The kernels of the corpus keep nothing on a thread's stack: what a thread keeps lies in its registers. NVRTC says so
// in the binary, which needs no GPU.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>

#include "codegen/cuda.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/file.h"
#include "replay/data/input.h"
#include "replay/device/cuda_loader.h"

namespace fusebox {
namespace {

template <class T>
T number_at(std::string_view bytes, size_t at) {
  T value{};
  if (at + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// The stack frames of all functions of a binary, in bytes. They stand in the section .nv.info of the ELF file, as
// attributes (format 4, attribute 17) of 8 bytes: a symbol, and its frame.
std::vector<uint32_t> stack_frames(std::string_view elf) {
  const auto sections = static_cast<size_t>(number_at<uint64_t>(elf, 0x28));
  const size_t size = number_at<uint16_t>(elf, 0x3a), count = number_at<uint16_t>(elf, 0x3c),
               names = number_at<uint16_t>(elf, 0x3e);
  const auto offset = [&](size_t i) {
    return static_cast<size_t>(number_at<uint64_t>(elf, sections + i * size + 0x18));
  };
  const auto length = [&](size_t i) {
    return static_cast<size_t>(number_at<uint64_t>(elf, sections + i * size + 0x20));
  };
  std::vector<uint32_t> frames;
  for (size_t i = 0; i < count; ++i) {
    const size_t name = offset(names) + number_at<uint32_t>(elf, sections + i * size);
    if (name >= elf.size() || std::string_view(elf.data() + name) != ".nv.info") continue;
    for (size_t at = offset(i), end = at + length(i); at + 4 <= end;) {
      const auto format = number_at<uint8_t>(elf, at), attribute = number_at<uint8_t>(elf, at + 1);
      if (format == 4 && attribute == 17) frames.push_back(number_at<uint32_t>(elf, at + 8));
      at += 4 + (format == 4 ? number_at<uint16_t>(elf, at + 2) : 0u);
    }
  }
  return frames;
}

std::vector<std::filesystem::path> corpus() {
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"programs", "schedules"})
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path("corpus") / folder))
      if (entry.path().extension() == ".fir") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

TEST(Stack, CorpusKernelsHaveNone) {
  try {
    cuda_backend().compiler_version();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  size_t kernels = 0;
  for (const auto& path : corpus()) {
    SCOPED_TRACE(path.filename().string());
    const Module m = parse_module(read_text_file(path.string()));
    const Graph& fusion = m.graphs.at(0);
    std::vector<Argument> arguments;
    for (const InputSpec& spec : find_input_specs(m, fusion.name, "host")->specs)
      arguments.push_back(make_argument(spec, 1));
    CompileOptions options;
    if (!m.step_lists.empty()) options.steps = m.step_lists[0].steps;
    const Compiled c = compile(fusion, bind_sizes(fusion, bound_inputs(arguments)), options);
    for (const Graph& kernel : c.kernels) {
      if (kernel.ops.empty()) continue;
      const CudaSource source = emit_cuda(kernel);
      // A reduction across the grid sums its blocks' results in pairs, and keeps them in an array.
      if (source.text.find("grid_reduce<") != std::string::npos) continue;
      const CudaBinary binary = cuda_backend().compile({.text = source.text,
                                                        .headers = cuda_headers(),
                                                        .architecture = "sm_90a",
                                                        .options = cuda_compile_options()});
      const auto frames = stack_frames(binary.bytes);
      EXPECT_FALSE(frames.empty());
      for (uint32_t bytes : frames) EXPECT_EQ(bytes, 0u) << source.text;
      ++kernels;
    }
  }
  EXPECT_GT(kernels, 30u);
}

}  // namespace
}  // namespace fusebox
