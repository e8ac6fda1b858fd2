// Every error code has a source. This walks the error table; each row needs a case here that provokes it at a given
// place, or a reason why none can. tests/python/test_cli.py has the errors that only the command line throws, and a
// full disk.
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "codegen/bytecode.h"
#include "codegen/cuda.h"
#include "ir/build/builder.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/verify/verify.h"
#include "passes/lower/lower.h"
#include "passes/pipeline/pipeline.h"
#include "passes/schedule/apply_steps.h"
#include "replay/cache/folder_store.h"
#include "replay/cache/fusion_cache.h"
#include "replay/data/file.h"
#include "replay/data/input.h"
#include "replay/data/npy.h"
#include "replay/device/cuda_loader.h"
#include "replay/device/device.h"
#include "replay/device/module_loader.h"
#include "replay/record/record.h"
#include "replay/record/replay.h"
#include "replay/run/host_program.h"
#include "replay/run/run.h"
#include "serde/bundle_generated.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "serde/features.h"
#include "serde/writer.h"
#include "tests/support/program_text.h"

namespace fusebox {
namespace {

// -- sources of errors

void read(const std::string& text) { verify(parse_module(text)); }

// Adds lines to a fusion with inputs of several kinds. The first one is line 7.
void fusion_with(const std::string& lines) {
  read(
      "fusion @f {\n  %m, %n = size\n  %x = input f32[%m, %n]\n  %i = input i64[%m, %n]\n  %p = input f32[3]\n"
      "  %q = input f32[4]\n" +
      lines + "\n}\n");
}

constexpr const char* kPointwise = R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %a = add %x, 1.0_f32
  %y = mul %a, 2.0_f32
  output %y
})";
constexpr const char* kFixed = R"(fusion @f {
  %x = input f32[4, 8] contiguous
  %a = add %x, 1.0_f32
  %y = mul %a, 2.0_f32
  output %y
})";
constexpr const char* kColumns = R"(fusion @f {
  %x = input f32[4, 8] contiguous
  %a = add %x, 1.0_f32
  %s = sum %a over [0]
  %b = broadcast %s mask [1, 0]
  %y = sub %a, %b
  output %y
})";
std::string row_sums() { return testing::program_text("doubled_row_sum"); }
constexpr const char* kMatmul = R"(fusion @f {
  %x = input f32[4, 8] contiguous
  %w = input f32[8, 3] contiguous
  %y = matmul %x, %w
  output %y
})";
constexpr const char* kInPlace = R"(fusion @f {
  %x = input f32[4, 8] contiguous
  %y = add %x, 1.0_f32
  %s = sum %x over [0, 1]
  output %y alias %x
  output %s
})";

Argument tensor(std::vector<int64_t> shape, Dtype dtype = Dtype::kFloat) {
  InputSpec spec;
  spec.dtype = dtype;
  spec.shape = std::move(shape);
  return make_argument(spec);
}

// Throws the failure of a run, which is otherwise a value.
void run(const std::string& fusion, const std::string& steps, const std::vector<Argument>& inputs) {
  Module m = parse_module(fusion);
  if (!steps.empty()) m = parse_module(fusion + "\nsteps @f {\n" + steps + "\n}\n");
  const fusebox::Run r = run_program(m, inputs, {.keep_sources = false});
  if (r.failure) throw Error(r.failure->code, r.failure->message, r.failure->place);
}
void schedule(const std::string& fusion, const std::string& steps) { run(fusion, steps, {tensor({4, 8})}); }

// A kernel on eight threads %t; %x holds eight floats, %y has room for eight.
void kernel(const std::string& lines, int64_t step_limit = 1 << 20, int index_bits = 64) {
  const Module m = parse_module("kernel @k index " + std::to_string(index_bits) +
                                " {\n  %x = input f32[?] global\n  %y = input f32[?] global\n"
                                "  %t = thread_index on block.x : index\n" +
                                lines + "\n}\n");
  verify(m);
  std::vector<float> x(8, 1), y(8);
  std::vector<uint8_t> written(8, 0);
  const HostArgument arguments[] = {HostArgument::memory(Dtype::kFloat, x.data(), 8),
                                    HostArgument::memory(Dtype::kFloat, y.data(), 8, written)};
  const HostResult r = run_kernel(compile_bytecode(m.graphs[0]), {.block = {8, 1, 1}, .shared_bytes = 64}, arguments,
                                  {.step_limit = step_limit});
  if (r.finding) throw r.finding->error();
}

Bundle without_a_run() {
  Bundle b;
  b.program = "f";
  b.stages.push_back({Stage::kFusion, parse_module(kFixed)});
  return b;
}
Bundle recorded() {
  const Module m = parse_module(kFixed);
  const std::vector<Argument> inputs = {tensor({4, 8})};
  return make_bundle(run_program(m, inputs, {}), m, exact_inputs(m.graphs[0], inputs), inputs);
}
// An empty module in a format that does not exist yet.
std::string file_of_the_future() {
  Writer w;
  const std::vector<flatbuffers::Offset<wire::Feature>> needs = {
      wire::CreateFeature(w.b, 0, 1, w.b.CreateString("module"))};
  const auto header = wire::CreateHeader(w.b, format_version() + 1, 1, w.b.CreateVector(needs));
  return w.finish(wire::CreateModuleFile(w.b, header, wire::CreateModule(w.b)), wire::ModuleFileIdentifier());
}

std::span<const uint8_t> bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

struct Case {
  ErrorCode code;
  std::string place;
  std::function<void()> call;
};

std::vector<Case> cases() {
  using E = ErrorCode;
  return {
      // text and bytes
      {E::kSyntax, "1:12", [] { read("fusion @f {"); }},
      {E::kUnknownName, "7:12", [] { fusion_with("  %y = neg %z\n  output %y"); }},
      {E::kUnknownName, "7:10", [] { fusion_with("  output %z"); }},
      {E::kDuplicateName, "7:3", [] { fusion_with("  %x = neg %p"); }},
      {E::kBadLiteral, "7:16", [] { fusion_with("  %y = add %x, 300_i8"); }},
      {E::kTypeAnnotation, "7:17", [] { fusion_with("  %y = neg %x : f64[%m, %n]"); }},
      {E::kNotABundle, "bundle", [] { decode_bundle(bytes("no bundle at all")); }},
      {E::kDamagedBundle, "bundle",
       [] {
         std::string file = encode(recorded());
         file.resize(file.size() / 2);
         decode_bundle(bytes(file));
       }},
      {E::kInvalidField, "ranks", [] { replay(without_a_run()); }},
      {E::kNewerVersion, "module.header.version", [] { decode_module(bytes(file_of_the_future())); }},
      {E::kTooLarge, "README.md", [] { read_file("README.md", 1); }},
      // programs
      {E::kUnknownOp, "7:8", [] { fusion_with("  %y = frobnicate %x"); }},
      {E::kOperandCount, "7:14", [] { fusion_with("  %y = add %x"); }},
      {E::kShapeMismatch, "7:3", [] { fusion_with("  %y = add %p, %q"); }},
      {E::kDtypeMismatch, "7:3", [] { fusion_with("  %y = bitwise_and %x, %x"); }},
      {E::kRankMismatch, "7:3", [] { fusion_with("  %y = index_select %x, %i axis 0"); }},
      {E::kBadAxis, "7:3", [] { fusion_with("  %y = sum %x over [5]"); }},
      {E::kBadAttribute, "7:15", [] { fusion_with("  %y = neg %x axis 1"); }},
      {E::kWrongLevel, "%y", [] { fusion_with("  %y = thread_index on block.x"); }},
      {E::kNotDominated, "7:3", [] { fusion_with("  %y = neg %z\n  %z = neg %x\n  output %y"); }},
      {E::kInvalidGraph, "",
       [] {
         Module m = parse_module(kFixed);
         auto& ops = m.graphs[0][Graph::body()].ops;
         ops.push_back(ops[0]);
         verify(m);
       }},
      {E::kUnsupportedDtype, "3:3", [] { read("fusion @f {\n  %x = input f4e2m1[4]\n  %y = add %x, %x\n}"); }},
      {E::kUnsupportedOp, "7:8", [] { fusion_with("  %y = rand_like %x"); }},
      {E::kBadAlias, "%x", [] { fusion_with("  %y = sum %x over [0]\n  output %y alias %x"); }},
      {E::kNotConcretized, "%x.i0",
       [] {
         const Module m = parse_module(
             "fusion @f {\n  %n, %k = size\n  %x = input f32[symbolic %n]\n  %y = expand %x to [%k]\n  output %y\n}");
         lower(m.graphs[0], {});
       }},
      {E::kWrongKind, "7:3", [] { fusion_with("  %y = sum %m over [0]"); }},
      {E::kConstantRange, "7:3", [] { fusion_with("  %y = lt %x, 1e300"); }},
      // steps and schedules
      {E::kStepReferent, "%z", [] { schedule(kPointwise, "split %z.i0 by 4 -> o, t"); }},
      {E::kStepReferent, "%y.none", [] { schedule(kPointwise, "split %y.none by 4 -> o, t"); }},
      {E::kStepNotApplicable, "%y.i0", [] { schedule(kPointwise, "merge %y.i0 with %y.i0 -> o"); }},
      {E::kStepNameTaken, "o", [] { schedule(kPointwise, "split %y.i0 by 4 -> o, o"); }},
      {E::kIllegalInline, "%y.r", [] { schedule(kPointwise, "resize %y.i0 by 2, -1 -> r\ninline_most of []"); }},
      {E::kIllegalParallel, "%s.i1", [] { schedule(row_sums(), "parallelize %s.i1 on vectorize"); }},
      {E::kIllegalExchange, "%a.i0",
       [] { schedule(kFixed, "parallelize %a.i0 on block.x\nparallelize %y.i1 on block.x"); }},
      {E::kIllegalVectorize, "%y.v",
       [] {
         schedule(kFixed,
                  "cache_before %y -> c\nsplit %y.i1 by 3 -> o, v\ntransform_like %y to []\n"
                  "parallelize %y.v on vectorize\ninline_most of []");
       }},
      {E::kIllegalAllocation, "%a", [] { schedule(kPointwise, "parallelize %y.i0 on grid.x"); }},
      {E::kIllegalReduction, "%p.i1",
       [] {
         schedule(
             row_sums(),
             "split %s.i1 by 2 -> o, t\nrfactor %s over [%s.o] -> p\nset_loop_domain %p like %a\ninline_most of []");
       }},
      {E::kIllegalOrder, "%a", [] { schedule(kColumns, "inline_at %a.i0"); }},
      {E::kUnsupportedSchedule, "%a", [] { schedule(kFixed, "circular_buffer %a depth 2"); }},
      {E::kIllegalAliasOrder, "%y", [] { schedule(kInPlace, "parallelize %y.i0 on grid.x"); }},
      {E::kIllegalSwizzle, "%y.i1",
       [] { schedule(kPointwise, "swizzle %y.i0 with %y.i1 xor -> p, q\ninline_most of []"); }},
      {E::kIllegalCluster, "@f", [] { schedule(kColumns, "cluster of [] blocks 4 on grid.x"); }},
      {E::kNotInKernel, "%y", [] { run(kMatmul, "parallelize %y.i0 on grid.x", {tensor({4, 8}), tensor({8, 3})}); }},
      // execution
      {E::kNoLayout, "%y",
       [] {
         const Graph g = parse_graph(kFixed);
         const std::vector<BoundInput> given = {{.shape = {4, 8}}};
         compile(g, bind_sizes(g, given),
                 {.steps = parse_steps("assign of [%a, %y] name \"part\" by aten"),
                  .inputs = given,
                  .infer = [](const Graph&, std::span<const BoundInput>) { return std::vector<TensorLayout>(1); }});
       }},
      {E::kBadInput, "%x.i1", [] { run(kFixed, "", {tensor({4, 9})}); }},
      {E::kBadInput, "%x", [] { run(kPointwise, "", {tensor({4})}); }},
      {E::kBadInput, "%x",
       [] {
         const Module m = parse_module(std::string(kFixed) + "\ninputs @f host {\n  %x = f64[4, 8] normal seed 1\n}");
         make_arguments(m.graphs[0], find_input_specs(m, "f", "host"), {});
       }},
      {E::kMissingInput, "%x", [] { run(kFixed, "", {}); }},
      {E::kIndexOutOfRange, "%i",
       [] {
         const Module m = parse_module(
             "fusion @f {\n  %x = input f32[4] contiguous\n  %i = input i64[2] contiguous\n"
             "  %y = index_select %x, %i axis 0\n  output %y\n}\ninputs @f host {\n  %x = f32[4] normal seed 1\n"
             "  %i = i64[2] constant 4.0 4.0\n}");
         const auto inputs = make_arguments(m.graphs[0], find_input_specs(m, "f", "host"), {});
         load_aten().evaluate(m.graphs[0], inputs);
       }},
      {E::kBadInputSpec, "%x", [] { parse_input_option("x=f32[5] nothing"); }},
      {E::kUnalignedVector, "f_host",
       [] {
         run(kPointwise,
             "cache_before %y -> c\nsplit %y.i1 by 4 -> o, v\ntransform_like %y to []\nparallelize %y.v on vectorize\n"
             "inline_most of []",
             {tensor({4, 7})});
       }},
      {E::kLaunchLimit, "@f",
       [] {
         run(kPointwise, "parallelize %y.i1 on block.x\nparallelize_like %y to []\ninline_most of []",
             {tensor({1, 2048})});
       }},
      {E::kOutOfMemory, "", [] { allocate_tensor(Dtype::kDouble, {int64_t{1} << 40, int64_t{1} << 20}); }},
      {E::kSizeMismatch, "%z.i0",
       [] {
         run("fusion @f {\n  %n = size\n  %x = input f32[%n]\n  %z = input f32[%n]\n  %y = add %x, %z\n  output %y\n}",
             "", {tensor({3}), tensor({4})});
       }},
      {E::kScalarOverflow, "%i1",
       [] {
         run("fusion @f {\n  %n = size\n  %x = input f32[%n]\n  %p = pow 5, %n : index\n  %q = mul %p, %p : index\n"
             "  %y = mul %x, %q\n  output %y\n}",
             "", {tensor({14})});
       }},
      {E::kAssumptionFailed, "f_host",
       [] { run(kPointwise, "assume [%n] multiple_of 4\ninline_most of []", {tensor({4, 7})}); }},
      // %y has as many elements a row as %n - 2 where the fact holds.
      {E::kAssumptionFailed, "f_host",
       [] {
         run("fusion @f {\n  %m, %n = size\n  %x = input f32[2, %n]\n  %w = input f32[%m, %n]\n"
             "  %y = slice %x from [0, 2] to [2, 6] by [1, 1]\n  %s = slice %x from [0, 0] to [2, 2] by [1, 1]\n"
             "  %c = cat [%y, %s] axis 1\n  %z = mul %c, %w\n  output %z\n}",
             "assume [%n, %m] equal 12\nset_memory_type %y in global\nset_memory_type %c in global",
             {tensor({2, 1}), tensor({2, 1})});
       }},
      // findings of the host executor
      {E::kOutOfBounds, "%y[8]", [] { kernel("  %i = add %t, 1 : index\n  store %y at %i, 1.0_f32"); }},
      {E::kMisaligned, "%s[0]",
       [] { kernel("  %s = allocate 8 at 2 in shared align 2 : f32[8] shared\n  store %s at %t, 1.0_f32"); }},
      {E::kUnwrittenRead, "%y[0]", [] { kernel("  %v = load %y at %t : f32\n  store %x at %t, %v"); }},
      {E::kDoubleStore, "%y[0]", [] { kernel("  store %y at 0, 1.0_f32"); }},
      {E::kRace, "%y[7]",
       [] {
         kernel(
             "  store %y at %t, 1.0_f32\n  %i = sub 7, %t : index\n  %v = load %y at %i : f32\n  store %x at %t, %v");
       }},
      {E::kDivergentBarrier, "line 7", [] { kernel("  %p = lt %t, 4 : bool\n  if %p {\n    barrier\n  }"); }},
      {E::kIndexOverflow, "line 5",
       [] {
         kernel("  %i = mul %t, 1000000000 : index\n  %p = lt %i, 1 : bool\n  if %p {\n    store %y at 0, 1.0_f32\n  }",
                1 << 20, 32);
       }},
      {E::kUnwrittenOutput, "%y",
       [] {
         const auto device = make_host_device();
         device->download(device->allocate(Dtype::kFloat, {3}, {}, false), "%y");
       }},
      {E::kStepLimit, "line 5",
       [] { kernel("  for 0, 1000000, 1 { index %i\n    store %y at %t, 1.0_f32\n  }", 1000); }},
      // devices and files
      {E::kNoDevice, "", [] { make_cuda_device({.ordinal = 1000}); }},
      {E::kCompileFailure, "kernel.cu",
       [] {
         cuda_backend().compile(
             {.text = "this is no CUDA", .architecture = "sm_80", .options = cuda_compile_options()});
       }},
      {E::kDeviceFailure, "", [] { cuda_backend().open(0)->load("no binary", "kernel"); }},
      {E::kModuleMissing, "libfusebox_nothing.so", [] { load_module_entry("nothing", "entry", "build it"); }},
      {E::kFileRead, "no/such/file", [] { read_file("no/such/file"); }},
      {E::kFileWrite, "no/such/folder/file", [] { write_file("no/such/folder/file", std::string_view("text")); }},
      {E::kUnsafeFolder, "/proc/self/exe", [] { FolderStore({.folder = "/proc/self/exe"}); }},
      {E::kNotCached, "@f",
       [] {
         const Graph f = parse_graph("fusion @f {\n  %x = input f32[3]\n  %y = neg %x\n  output %y\n}");
         const Bindings sizes = bind_sizes(f, std::vector<BoundInput>{{.shape = {3}}});
         const CompileOptions options;
         plan_fusion(nullptr, {.fusion = f, .bindings = sizes, .options = options, .target = "host"},
                     {.only_cached = true});
       }},
      {E::kBadNpy, "x.npy",
       [] {
         const std::vector<std::byte> no_array(16);
         parse_npy(no_array, {}, "x.npy");
       }},
      {E::kUsage, "--from source",
       [] { replay(recorded(), {.executor = {}, .from = ReplayFrom::kSource, .trust_artifacts = true}); }},
      {E::kUntrusted, "artifacts", [] { replay(recorded(), {.executor = {}, .from = ReplayFrom::kSource}); }},
      {E::kInternal, "", [] { check_internal(false, "a condition that does not hold"); }},
  };
}

// Whether the machine lacks what is needed to provoke a code. Any other error is a failure.
bool is_excused(ErrorCode wanted, const Error& e) {
  const bool needs_gpu = wanted == ErrorCode::kDeviceFailure && e.code == ErrorCode::kNoDevice;
  const bool needs_module = (wanted == ErrorCode::kDeviceFailure || wanted == ErrorCode::kCompileFailure ||
                             wanted == ErrorCode::kNoDevice || wanted == ErrorCode::kIndexOutOfRange) &&
                            e.code == ErrorCode::kModuleMissing;
  return needs_gpu || needs_module;
}

// Codes without a case here, with the reason.
const std::map<ErrorCode, std::string>& elsewhere() {
  static const std::map<ErrorCode, std::string> result = {
      {ErrorCode::kIllegalSync,
       "lowering puts each barrier where all threads of the block come by, and leaves an unswitch that would part them "
       "a "
       "plain loop; the host executor finds a kernel that does not with kDivergentBarrier"},
  };
  return result;
}

TEST(ErrorCodes, EachIsProvoked) {
  std::set<ErrorCode> seen;
  for (const Case& c : cases()) {
    SCOPED_TRACE(code_text(c.code) + " " + std::string(row_of(c.code).name));
    try {
      c.call();
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      if (e.code != c.code && is_excused(c.code, e)) {
        std::printf("  %s was not provoked here: %s\n", code_text(c.code).c_str(), e.what());
        seen.insert(c.code);
        continue;
      }
      EXPECT_EQ(code_text(e.code), code_text(c.code)) << e.place << ": " << e.what();
      EXPECT_EQ(e.place, c.place) << e.what();
      EXPECT_STRNE(e.what(), "");
      if (e.code == c.code) seen.insert(c.code);
    }
  }
  for (const ErrorRow& row : error_rows())
    EXPECT_NE(seen.contains(row.code), elsewhere().contains(row.code))
        << code_text(row.code) << " " << row.name << " has no case that provokes it, or has one and an excuse";
  std::printf("  %zu codes, %zu provoked here\n", error_rows().size(), seen.size());
}

}  // namespace
}  // namespace fusebox
