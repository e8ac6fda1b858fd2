// The machine code of a kernel does not depend on the other kernels in its module. A campaign compiles several cases to
// a module, and one alone when it judges a finding again.
#include <array>
#include <cstring>
#include <elf.h>
#include <gtest/gtest.h>
#include <map>

#include "codegen/cuda.h"
#include "fuzz/generate/case.h"
#include "fuzz/run/gpu_batch.h"
#include "ir/table/error.h"
#include "replay/device/cuda_loader.h"

namespace fusebox::fuzz {
namespace {

constexpr uint64_t kCases = 12;
constexpr size_t kTogether = 8;

// The machine code of each function of a binary, by entry name.
std::map<std::string, std::string> functions_of(const std::string& binary) {
  const auto read = [&](auto& to, uint64_t at) { std::memcpy(&to, binary.data() + at, sizeof to); };
  Elf64_Ehdr head;
  read(head, 0);
  const auto section = [&](uint64_t i) {
    Elf64_Shdr s;
    read(s, head.e_shoff + i * head.e_shentsize);
    return s;
  };
  const Elf64_Shdr names = section(head.e_shstrndx);
  std::map<std::string, std::string> functions;
  for (uint64_t i = 0; i < head.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    const std::string name = binary.c_str() + names.sh_offset + s.sh_name;
    if (name.starts_with(".text.")) functions[name.substr(6)] = binary.substr(s.sh_offset, s.sh_size);
  }
  return functions;
}

std::map<std::string, std::string> compile_text(const std::string& text) {
  return functions_of(
      cuda_backend()
          .compile(
              {.text = text, .headers = cuda_headers(), .architecture = "sm_90a", .options = cuda_compile_options()})
          .bytes);
}

TEST(MachineCode, IsTheSameAloneAndInAModule) {
  try {
    cuda_backend().compiler_version();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  // The table of 2/π is a global variable. Where a kernel finds its address depends on the other global variables of the
  // module, so kernels with the table share modules only with each other.
  std::array<std::vector<Graph>, 2> kinds;
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    DrawnCase drawn = generate_case(seed, {});
    if (drawn.refusal) continue;
    compile_case(drawn.value, {});
    const Compiled& c = *drawn.value.compiled;
    for (size_t k = 0; k < c.kernels.size(); ++k)
      if (c.segmentation.segments[k].executor == SegmentExecutor::kKernel)
        kinds[emit_cuda(c.kernels[k]).text.find("exact_trigonometry_double") != std::string::npos ? 1 : 0].push_back(
            c.kernels[k]);
  }
  ASSERT_GT(kinds[0].size(), kTogether);
  for (const std::vector<Graph>& kernels : kinds)
    for (size_t begin = 0; begin < kernels.size(); begin += kTogether) {
      std::vector<const Graph*> some;
      for (size_t i = begin; i < std::min(begin + kTogether, kernels.size()); ++i) some.push_back(&kernels[i]);
      const CudaModuleSource source = emit_cuda_module(some);
      const auto together = compile_text(source.text);
      ASSERT_EQ(together.size(), some.size());
      for (size_t i = 0; i < some.size(); ++i) {
        const CudaSource alone = emit_cuda(*some[i]);
        const std::string code = compile_text(alone.text).at(alone.entry);
        EXPECT_FALSE(code.empty());
        EXPECT_TRUE(code == together.at(source.entries[i])) << alone.text;
      }
    }
}

}  // namespace
}  // namespace fusebox::fuzz
