// Compiles every kernel of the corpus, under the unfused plan and under its own schedule. Its CUDA text has the digest
// in corpus_digests.txt. NVRTC compiles it for sm_80, sm_90a and sm_100a without a warning, each time to the same
// bytes, and these have the digest in the file if that is of the same NVRTC. Needs no GPU.
//
// BLESS=1 rewrites the file after texts changed on purpose, and adds digests of an NVRTC that is new to it.
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>

#include "codegen/cuda.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/text/parse.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/file.h"
#include "replay/device/cuda_loader.h"
#include "replay/run/run.h"

namespace fusebox {
namespace {

constexpr const char* kGolden = "tests/property/corpus_digests.txt";

// A program under one plan: `softmax own`, `softmax unfused`.
struct Variant {
  std::string name;
  std::vector<std::string> texts;  // of its kernels
  std::vector<Graph> kernels;
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> result = [] {
    std::vector<Variant> made;
    std::set<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator("corpus/programs")) files.insert(entry.path());
    for (const auto& file : files) {
      const Module m = parse_module(read_text_file(file.string()));
      const Graph& g = main_graph(m);
      const auto inputs = make_arguments(g, find_input_specs(m, g.name, "host"), {});
      const Bindings bindings = bind_sizes(g, bound_inputs(inputs));
      for (const bool own_schedule : {false, true}) {
        CompileOptions options;
        options.inputs = bound_inputs(inputs);
        const StepList* steps = find_steps(m, g.name);
        if (own_schedule && !steps) continue;
        if (own_schedule) options.steps = steps->steps;
        made.push_back({g.name + (own_schedule ? " own" : " unfused"), {}, {}});
        const Compiled c = compile(g, bindings, options);
        for (size_t i = 0; i < c.kernels.size(); ++i)
          if (c.segmentation.segments[i].executor == SegmentExecutor::kKernel) {
            made.back().texts.push_back(emit_cuda(c.kernels[i]).text);
            made.back().kernels.push_back(c.kernels[i]);
          }
      }
    }
    return made;
  }();
  return result;
}

// Lines `WHAT VARIANT DIGEST`; WHAT is `source`, or an NVRTC and an architecture: `V13.0.88 sm_90a`.
using Golden = std::map<std::string, std::string>;

Golden read_golden() {
  Golden lines;
  if (!std::filesystem::exists(kGolden)) return lines;
  std::istringstream file(read_text_file(kGolden));
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') lines[line.substr(0, line.rfind(' '))] = line.substr(line.rfind(' ') + 1);
  return lines;
}

bool may_bless() {
  if (!std::getenv("BLESS")) return false;
  EXPECT_EQ(std::getenv("CI"), nullptr) << "BLESS rewrites expectations: not where CI is set";
  return !std::getenv("CI");
}

void bless(const Golden& lines) {
  std::string text =
      "# Digests of the corpus' kernels: of their CUDA texts, and of what an NVRTC made of them. BLESS=1 writes "
      "them.\n";
  for (const auto& [key, digest] : lines) text += key + " " + digest + "\n";
  write_file(kGolden, std::string_view(text));
  std::printf("  blessed %s\n", kGolden);
}

TEST(CorpusSources, AreTheOnesOfTheFile) {
  Golden golden = read_golden(), actual;
  std::vector<Digest> headers;
  for (const CudaHeaderText& h : cuda_headers()) headers.push_back(digest(h.text));
  actual["source headers"] = text(combine(headers));
  for (const Variant& v : variants()) {
    std::vector<Digest> parts;
    for (const std::string& kernel : v.texts) parts.push_back(digest(std::string_view(kernel)));
    actual["source " + v.name] = text(combine(parts));
  }
  if (may_bless()) {
    // Digests of binaries from another text are obsolete.
    const Golden before = golden;
    const auto is_unchanged = [&](const std::string& key) {
      return before.contains(key) && actual.contains(key) && before.at(key) == actual.at(key);
    };
    std::erase_if(golden, [&](const auto& line) {
      const auto variant = line.first.find(' ', line.first.find(' ') + 1) + 1;
      return line.first.starts_with("source ") || !is_unchanged("source headers") ||
             !is_unchanged("source " + line.first.substr(variant));
    });
    golden.insert(actual.begin(), actual.end());
    return bless(golden);
  }
  for (const auto& [key, digest] : actual)
    EXPECT_EQ(golden[key], digest) << key << " is not what " << kGolden << " has; if it changed on purpose, BLESS=1";
  for (const auto& [key, digest] : golden)
    if (key.starts_with("source ")) {
      EXPECT_TRUE(actual.contains(key)) << key << " is in " << kGolden << " alone; BLESS=1 drops it";
    }
}

CudaBinary compile_for(const std::string& text, std::string_view architecture) {
  return cuda_backend().compile(
      {.text = text, .headers = cuda_headers(), .architecture = architecture, .options = cuda_compile_options()});
}

// A binary names its compiler: `V13.0.88`. Other builds of the same version may differ.
std::string compiler_of(const CudaBinary& binary) {
  const std::string mark = ", V";
  const size_t tools = binary.bytes.find("Cuda compilation tools, release");
  const size_t at = tools == std::string::npos ? tools : binary.bytes.find(mark, tools);
  if (at == std::string::npos) return "unknown";
  const size_t begin = at + mark.size() - 1;
  return binary.bytes.substr(begin, binary.bytes.find_first_not_of("V0123456789.", begin) - begin);
}

class Corpus : public testing::TestWithParam<const char*> {};

TEST_P(Corpus, CompilesForTheArchitecture) {
  try {
    cuda_backend().compiler_version();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  std::map<std::string, Digest> binaries;  // by text, because programs share kernels
  Golden actual;
  std::string compiler;
  for (const Variant& v : variants()) {
    std::vector<Digest> parts;
    for (const std::string& text : v.texts) {
      auto [it, is_new] = binaries.try_emplace(text);
      if (is_new) {
        const CudaBinary binary = compile_for(text, GetParam());
        EXPECT_EQ(binary.log, "") << v.name << "\n" << text;
        EXPECT_FALSE(binary.bytes.empty());
        it->second = digest(std::string_view(binary.bytes));
        compiler = compiler_of(binary);
      }
      parts.push_back(it->second);
    }
    actual[compiler + " " + GetParam() + " " + v.name] = text(combine(parts));
  }
  const auto& [first, digest_of_first] = *binaries.begin();
  EXPECT_EQ(digest(std::string_view(compile_for(first, GetParam()).bytes)), digest_of_first);
  Golden golden = read_golden();
  if (may_bless()) {
    std::erase_if(golden, [&](const auto& line) { return line.first.starts_with(compiler + " " + GetParam() + " "); });
    golden.insert(actual.begin(), actual.end());
    return bless(golden);
  }
  int compared = 0;
  for (const auto& [key, digest] : actual) {
    const auto it = golden.find(key);
    if (it == golden.end()) continue;
    ++compared;
    EXPECT_EQ(it->second, digest) << key << ": other bytes from the same NVRTC; if its text changed, BLESS=1";
  }
  if (compared == 0)
    std::printf("  %s has no digests of NVRTC %s for %s, so that none were compared; BLESS=1 adds them\n", kGolden,
                compiler.c_str(), GetParam());
  std::printf("  %s: %zu kernels by NVRTC %s; digests of %d of %zu variants compared\n", GetParam(), binaries.size(),
              compiler.c_str(), compared, actual.size());
}

// Many kernels in one text, with both index widths: each function equals that of a text of its own.
TEST(CorpusModules, CompileTogether) {
  try {
    cuda_backend().compiler_version();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  std::vector<Graph> kernels;
  for (const Variant& v : variants()) {
    if (kernels.size() >= 8) break;
    kernels.insert(kernels.end(), v.kernels.begin(), v.kernels.end());
  }
  kernels.back().index_bits = 64;
  std::vector<const Graph*> pointers;
  for (const Graph& k : kernels) pointers.push_back(&k);
  const CudaModuleSource module = emit_cuda_module(pointers);
  ASSERT_EQ(module.entries.size(), kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) {
    const CudaSource alone = emit_cuda(kernels[i], {.entry = module.entries[i]});
    const std::string function = alone.text.substr(alone.text.find("\nusing index_t"));
    EXPECT_NE(module.text.find(function), std::string::npos) << alone.text;
  }
  const CudaBinary binary = compile_for(module.text, "sm_90a");
  EXPECT_EQ(binary.log, "");
  for (const std::string& entry : module.entries) EXPECT_NE(binary.bytes.find(entry), std::string::npos) << entry;
}

INSTANTIATE_TEST_SUITE_P(Architectures, Corpus, testing::Values("sm_80", "sm_90a", "sm_100a"));

}  // namespace
}  // namespace fusebox
