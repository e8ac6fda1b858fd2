// Every kernel of the corpus, by the unfused plan and by its own schedule, compiles with NVRTC for sm_80, sm_90a and
// sm_100a, without a warning, and to the same bytes each time. No GPU is needed. A digest of each program's binaries is
// printed, to be compared between machines.
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "codegen/cuda.h"
#include "ir/canonical.h"
#include "ir/parse.h"
#include "passes/pipeline.h"
#include "replay/cuda_loader.h"
#include "replay/file.h"
#include "replay/run.h"

namespace fusebox {
namespace {

CudaBinary compile_for(const std::string& text, std::string_view architecture) {
  return cuda_backend().compile(
      {.text = text, .headers = cuda_headers(), .architecture = architecture, .options = cuda_compile_options()});
}

class Corpus : public testing::TestWithParam<const char*> {};

TEST_P(Corpus, CompilesForTheArchitecture) {
  try {
    cuda_backend().compiler_version();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator("corpus/programs")) files.insert(entry.path());
  ASSERT_FALSE(files.empty());
  std::map<std::string, Digest> binaries;  // by text: programs share kernels
  for (const auto& file : files) {
    const Module m = parse_module(read_text_file(file.string()));
    const Graph& g = main_graph(m);
    const auto inputs = make_arguments(g, find_input_specs(m, g.name, "host"), {});
    const Bindings bindings = bind_sizes(g, bound_inputs(inputs));
    std::vector<Digest> parts;
    for (const bool own_schedule : {false, true}) {
      CompileOptions options;
      const StepList* steps = find_steps(m, g.name);
      if (own_schedule && !steps) continue;
      if (own_schedule) options.steps = steps->steps;
      for (const Graph& kernel : compile(g, bindings, options).kernels) {
        const std::string text = emit_cuda(kernel).text;
        auto [it, is_new] = binaries.try_emplace(text);
        if (is_new) {
          const CudaBinary binary = compile_for(text, GetParam());
          EXPECT_EQ(binary.log, "") << file << "\n" << text;
          EXPECT_FALSE(binary.bytes.empty());
          it->second = digest(std::string_view(binary.bytes));
        }
        parts.push_back(it->second);
      }
    }
    std::printf("  %s %-24s %s\n", GetParam(), g.name.c_str(), text(combine(parts)).c_str());
  }
  const auto& [first, digest_of_first] = *binaries.begin();
  EXPECT_EQ(digest(std::string_view(compile_for(first, GetParam()).bytes)), digest_of_first);
  std::printf("  %s: %zu kernels\n", GetParam(), binaries.size());
}

INSTANTIATE_TEST_SUITE_P(Architectures, Corpus, testing::Values("sm_80", "sm_90a", "sm_100a"));

}  // namespace
}  // namespace fusebox
