// Compiles with NVRTC, which needs no GPU.
#include <gtest/gtest.h>
#include <map>

#include "codegen/cuda.h"
#include "ir/table/error.h"
#include "replay/device/compile_together.h"
#include "replay/device/cuda_loader.h"
#include "replay/device/kernel_images.h"
#include "tests/support/kernel_cases.h"

namespace fusebox {
namespace {

constexpr std::string_view kArchitectures[] = {"sm_80", "sm_89", "sm_90a", "sm_100a"};

CudaBinary compile(const std::string& text, std::string_view architecture) {
  return cuda_backend().compile(
      {.text = text, .headers = cuda_headers(), .architecture = architecture, .options = cuda_compile_options()});
}

class Nvrtc : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      cuda_backend().compiler_version();
    } catch (const Error& e) {
      ASSERT_EQ(e.code, ErrorCode::kModuleMissing);
      GTEST_SKIP() << e.what();
    }
  }
};

// Many kernels in one translation unit, because a compilation has a fixed cost.
class NvrtcScalarOps : public Nvrtc, public ::testing::WithParamInterface<std::string_view> {};

TEST_P(NvrtcScalarOps, CompileForEveryDtype) {
  std::string text;
  int kernels = 0;
  for (const Dtype d : testing::arithmetic_dtypes()) {
    for (const auto& ops : {testing::scalar_ops(d), testing::scalar_casts(d), testing::scalar_extras(d)})
      text += emit_cuda(ops.kernel, {.entry = "kernel_" + std::to_string(kernels++)}).text;
  }
  const CudaBinary binary = compile(text, GetParam());
  EXPECT_EQ(binary.bytes.substr(1, 3), "ELF");
  EXPECT_EQ(binary.log, "");
}

INSTANTIATE_TEST_SUITE_P(Architectures, NvrtcScalarOps, ::testing::ValuesIn(kArchitectures),
                         [](const auto& info) { return std::string(info.param); });

// The version is read from the names of the library's files, before it is loaded.
TEST_F(Nvrtc, HasTheVersionThatItsFilesTell) {
  const CudaVersion version = cuda_backend().compiler_version();
  compile("static_assert(__CUDACC_VER_MAJOR__ == " + std::to_string(version.major) +
              " && __CUDACC_VER_MINOR__ == " + std::to_string(version.minor) + ");",
          "sm_90a");
  EXPECT_NE(
      cuda_backend().compiler_identity().find(std::to_string(version.major) + "." + std::to_string(version.minor)),
      std::string::npos);
}

// Every reduction over every set of coordinates, and the rest of the headers.
TEST_F(Nvrtc, CollectivesCompile) {
  std::string text = "#include \"reduce.cuh\"\n#include \"memory.cuh\"\n";
  const char* places[] = {"float",   "double",  "half_t", "bfloat16_t", "float8_e4m3_t",
                          "int64_t", "uint8_t", "bool",   "complex64_t"};
  int kernels = 0;
  const auto kernel = [&](const std::string& type, const std::string& body) {
    text += "extern \"C\" __global__ void k" + std::to_string(kernels++) + "(" + type + "* x, " + type +
            "* w, float* m, int64_t* n, uint32_t* c) {\n  " + body + "\n}\n";
  };
  for (const std::string type : places) {
    for (const char* op : {"Sum", "Prod", "Min", "Max"}) {
      if (type == "complex64_t" && op[0] == 'M') continue;
      const std::string where = "(x[threadIdx.x], Places<" + type + ">{w}";
      kernel(type, "x[0] = block_reduce<" + std::string(op) + ", kBlockX | kBlockZ, kAllThreads>" + where + ");");
      kernel(type, "x[0] = block_reduce<" + std::string(op) + ", kBlockY, kAllThreads>" + where + ");");
      kernel(type, "x[threadIdx.x] = warp_reduce<" + std::string(op) + ", 8>(x[threadIdx.x]);");
    }
    for (const char* holder : {"kLastBlock", "kAllBlocks"})
      kernel(type, type + " v[2] = {x[0], x[1]}; if (grid_reduce<Sum, kBlockX | kGridX, " + holder + ", 2>(Places<" +
                       type + ">{v}, Places<" + type + ">{w}, Places<" + type +
                       ">{w}, c, 1, c)) x[0] = v[0], x[1] = v[1];");
    // A thread that holds no value.
    const std::string none = "Places<" + type + ">{x}, Places<" + type + ">{w}, Places<" + type + ">{w}, c, 0, nullptr";
    kernel(type, "grid_reduce<Sum, kBlockX | kGridX, kLastBlock, 0>(" + none + ");");
    kernel(type, "x[0] = block_broadcast<kBlockX | kBlockY>(x[threadIdx.x], w);");
    kernel(type, "copy_vector<16 / sizeof(" + type + ")>(x, w); store<Cache::kStreaming>(x, load<Cache::kGlobal>(w));");
  }
  const std::string welford = "(Welford<float, int64_t>{x[0], m[0], n[0]}, WelfordPlaces<float, int64_t>{w, m, n}";
  kernel("float", "x[0] = warp_reduce<Merge, 2>(Welford<float, int64_t>{x[0], m[0], n[0]}).avg;");
  kernel("float", "x[0] = block_reduce<Merge, kBlockX | kBlockY | kBlockZ, kFirstThread>" + welford + ").avg;");
  kernel("float", "x[0] = block_reduce<Merge, kBlockY, kAllThreads>" + welford + ").m2;");
  const std::string triple = "WelfordPlaces<float, int64_t>{";
  kernel(
      "float",
      "float a = x[0], b = m[0]; int64_t s = n[0]; if (grid_reduce<Merge, kGridX | kGridY | kGridZ, kLastBlock, 1>(" +
          triple + "&a, &b, &s}, " + triple + "w, m, n}, " + triple + "w, m, n}, c, 0, nullptr)) x[0] = b;");
  kernel("float", "x[0] = welford_add(Welford<float, int64_t>{x[0], m[0], n[0]}, x[1]).m2;");
  kernel("double", "x[0] = welford_add(Welford<double, double>{x[0], x[1], x[2]}, x[3]).avg;");
  for (const std::string_view architecture : kArchitectures)
    EXPECT_EQ(compile(text, architecture).log, "") << architecture;
}

TEST_F(Nvrtc, ClustersCompile) {
  std::string text = "#include \"cluster.cuh\"\n";
  int kernels = 0;
  const auto kernel = [&](const std::string& parameters, const std::string& values, const std::string& places,
                          const std::string& rest) {
    text += "extern \"C\" __global__ void __cluster_dims__(1, 4, 1) __launch_bounds__(256) k" +
            std::to_string(kernels++) + "(" + parameters +
            ") {\n  extern __shared__ __align__(16) unsigned char m[];\n  " + values +
            "\n  Cluster cluster;\n  cluster.arrive();\n  cluster.reduce<" + rest + ">(" + places +
            ");\n  cluster.wait();\n}\n";
  };
  for (const std::string type :
       {"float", "double", "int64_t", "uint8_t", "bool", "bfloat16_t", "half_t", "complex64_t"})
    for (const char* over : {"kGridY", "kGridY | kBlockX", "kGridY | kBlockY | kBlockZ"}) {
      const std::string shared = "Places<" + type + ">{reinterpret_cast<" + type + "*>(m)}";
      kernel(type + "* x", type + " v[3] = {x[0], x[1], x[2]};",
             "Places<" + type + ">{v}, " + shared + ", 12, " + shared, "Sum, " + std::string(over) + ", 4, 3");
      kernel(type + "* x", "", "Places<" + type + ">{x}, " + shared + ", 0, " + shared,
             "Sum, " + std::string(over) + ", 4, 0");
    }
  const std::string shared =
      "WelfordPlaces<float, int64_t>{(float*)m, (float*)m + 64, reinterpret_cast<int64_t*>(m) + 64}";
  kernel("float* x", "float a = x[0], b = x[1]; int64_t n = 1;",
         "WelfordPlaces<float, int64_t>{&a, &b, &n}, " + shared + ", 4, " + shared, "Merge, kGridY | kBlockX, 4, 1");
  for (const std::string_view architecture : {"sm_90a", "sm_100a"})
    EXPECT_EQ(compile(text, architecture).log, "") << architecture;
}

TEST_F(Nvrtc, OldArchitecturesHaveNoClusters) {
  Graph kernel;
  kernel.name = "k";
  kernel.level = Level::kKernel;
  Op op{OpKind::kCluster, {}, {}, {}, {}};
  op.attrs.set_enum(AttrKey::kParallel, ParallelType::kGridX);
  op.attrs.set(AttrKey::kClusterBlocks, int64_t{2});
  append(kernel, Graph::body(), op);
  const CudaSource source = emit_cuda(kernel);
  EXPECT_NE(source.text.find("__cluster_dims__(2, 1, 1)"), std::string::npos) << source.text;
  for (const char* architecture : {"sm_90a", "sm_100a", "sm_120"})
    EXPECT_EQ(image_request(kernel, source, architecture).architecture, architecture);
  for (const char* architecture : {"sm_80", "sm_89"}) {
    try {
      image_request(kernel, source, architecture);
      ADD_FAILURE() << architecture << " is taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.code, ErrorCode::kIllegalCluster);
      EXPECT_EQ(e.place, "@k");
    }
  }
}

TEST_F(Nvrtc, OneSourceGivesOneBinary) {
  const std::string text = emit_cuda(testing::scalar_ops(Dtype::kInt32).kernel).text;
  const std::string once = compile(text, "sm_90a").bytes;
  EXPECT_EQ(once, compile(text, "sm_90a").bytes);
  EXPECT_NE(once, compile(text, "sm_80").bytes);
}

TEST_F(Nvrtc, TextsCompiledTogetherGiveTheirOwnBinariesAndErrors) {
  std::vector<std::string> texts;
  for (const Dtype d : {Dtype::kInt32, Dtype::kInt8, Dtype::kUint16})
    texts.push_back(emit_cuda(testing::scalar_ops(d).kernel).text);
  texts.insert(texts.begin() + 1, "extern \"C\" __global__ void k() { nonsense; }");
  for (const int threads : {1, 4, 64}) {
    const auto made = compile_together(texts, "sm_90a", {.threads = threads});
    ASSERT_EQ(made.size(), texts.size());
    for (size_t i = 0; i < made.size(); ++i) {
      ASSERT_EQ(made[i].binary.has_value(), i != 1);
      ASSERT_EQ(made[i].error.has_value(), i == 1);
      if (made[i].binary) {
        EXPECT_EQ(made[i].binary->bytes, compile(texts[i], "sm_90a").bytes);
      }
    }
    EXPECT_EQ(made[1].error->code, ErrorCode::kCompileFailure);
  }
  const auto none = compile_together(texts, "sm_90a", {.threads = 2, .go_on = [] { return false; }});
  for (const CompiledText& t : none) EXPECT_FALSE(t.binary || t.error);
  EXPECT_TRUE(compile_together({}, "sm_90a").empty());
}

TEST_F(Nvrtc, ErrorsAreCoded) {
  const auto failure = [](const std::string& text, std::string_view architecture) {
    try {
      compile(text, architecture);
    } catch (const Error& e) {
      return std::pair(e.code, std::string(e.what()));
    }
    return std::pair(ErrorCode::kInternal, std::string());
  };
  const auto [code, message] = failure("extern \"C\" __global__ void k() { nonsense; }", "sm_90a");
  EXPECT_EQ(code, ErrorCode::kCompileFailure);
  EXPECT_NE(message.find("nonsense"), std::string::npos) << message;
  EXPECT_EQ(failure("", "x86").first, ErrorCode::kBadInput);
  EXPECT_EQ(failure("", "sm_11").first, ErrorCode::kCompileFailure);
}

TEST(Cuda, AskingForADeviceThatIsNotThereIsCoded) {
  CudaBackend* backend = nullptr;
  try {
    backend = &cuda_backend();
  } catch (const Error& e) {
    GTEST_SKIP() << e.what();
  }
  try {
    backend->open(1000);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code, ErrorCode::kNoDevice);
  }
}

}  // namespace
}  // namespace fusebox
