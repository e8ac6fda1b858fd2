// The cache of compiled fusions in a folder: hits and misses, eviction, folders that cannot be trusted or written.
#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/module/device_properties.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "replay/cache/compiled_record.h"
#include "replay/cache/folder_store.h"
#include "replay/cache/fusion_cache.h"
#include "replay/cache/pack.h"
#include "replay/data/file.h"
#include "replay/run/run.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "tests/support/program_text.h"

namespace fusebox {
namespace {

namespace fs = std::filesystem;

// A folder that goes away with it.
struct Folder {
  std::string path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "fusebox-cache-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() {
    ::chmod(path.c_str(), 0700);
    fs::remove_all(path);
  }
};

std::string row_sums() { return testing::program_text("doubled_row_sum"); }

// A request with everything that it refers to.
struct Wanted {
  Graph fusion;
  CompileOptions options;
  Bindings sizes;
  std::string target = "host";

  explicit Wanted(const std::string& text, std::vector<int64_t> shape = {5, 7}, std::vector<BoundInput> scalars = {})
      : fusion(parse_graph(text)) {
    options.inputs = {{.shape = shape, .strides = {shape[1], 1}}};
    options.inputs.insert(options.inputs.end(), scalars.begin(), scalars.end());
    options.digest_plans = true;
    sizes = bind_sizes(fusion, options.inputs);
  }
  FusionRequest request() const { return {.fusion = fusion, .bindings = sizes, .options = options, .target = target}; }
  Compiled compiled() const { return compile(fusion, sizes, options); }
};

ErrorCode refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code;
  }
  return {};
}

TEST(Cache, AnotherProcessFindsWhatOneKept) {
  const Folder folder;
  const Wanted w(row_sums());
  const auto store = [&] { return std::make_shared<FolderStore>(FolderStoreOptions{.folder = folder.path}); };
  FusionCache first(store());
  EXPECT_FALSE(first.find(w.request()));
  const Compiled c = w.compiled();
  first.keep(w.request(), c, {});
  FusionCache second(store());
  const auto found = second.find(w.request());
  ASSERT_TRUE(found);
  EXPECT_TRUE(compiled_fusion(*found->compiled, {}) == compiled_fusion(c, {}));
  EXPECT_TRUE(found->launch && found->launch == launch_record(c)) << "the host program is not made into code again";
  EXPECT_EQ(second.counts().hits, 1);
  EXPECT_EQ(first.counts().misses, 1);
  EXPECT_EQ(first.counts().written, 1);
}

TEST(Cache, OtherSizesFindTheRecordThatServesThem) {
  const Wanted small(row_sums()), other(row_sums(), {300, 11}), large(row_sums(), {int64_t{1} << 20, int64_t{1} << 20});
  const auto store = std::make_shared<MemoryStore>();
  FusionCache cache(store);
  cache.keep(small.request(), small.compiled(), {});
  EXPECT_TRUE(cache.find(other.request()));
  EXPECT_FALSE(cache.find(large.request())) << "its indices have 32 bits";
  const Compiled wide = large.compiled();
  EXPECT_EQ(wide.index_bits, 64);
  cache.keep(large.request(), wide, {});
  EXPECT_EQ(store->records.size(), 2u) << "one does not displace the other";
  const auto found = cache.find(large.request());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->compiled->index_bits, 64);
  ASSERT_TRUE(cache.find(small.request()));
  EXPECT_EQ(cache.find(small.request())->compiled->index_bits, 32);
}

TEST(Cache, AFactThatDiffersIsAMiss) {
  const Wanted w(row_sums());
  FusionCache cache(std::make_shared<MemoryStore>());
  cache.keep(w.request(), w.compiled(), {});
  Wanted other = w;
  other.target = "cuda sm_90a";
  EXPECT_FALSE(cache.find(other.request()));
  other = w;
  other.options.steps.emplace();
  EXPECT_FALSE(cache.find(other.request()));
  other = w;
  other.options.index_bits = 64;
  EXPECT_FALSE(cache.find(other.request()));
  other = Wanted(row_sums().replace(row_sums().find("2.0"), 3, "3.0"));
  EXPECT_FALSE(cache.find(other.request()));
  other = Wanted(row_sums()
                     .replace(row_sums().find("%s = sum %a"), 11, "%z = sum %a")
                     .replace(row_sums().find("output %s"), 9, "output %z"));
  EXPECT_FALSE(cache.find(other.request())) << "names are part of the key";
  FusionRequest r = w.request();
  ++r.numerics;
  EXPECT_FALSE(cache.find(r));
  EXPECT_TRUE(cache.find(w.request()));
}

TEST(Cache, ANumberFromWhichNoSizeFollowsIsNotInTheKey) {
  Wanted w(R"(fusion @f {
    %n = size
    %x = input f32[%n, 4] contiguous
    %rate = input f32
    %seed = input i64
    %length = input i64
    %y = mul %x, %rate
    %u = add %y, %seed
    output %u
    %z = full 1.0_f32 of [%length]
    output %z
  })",
           {5, 4}, {{.is_scalar = true}, {.is_scalar = true}, {.is_scalar = true, .bits = {7}}});
  const auto is_found_with_another = [&](size_t scalar) {
    FusionCache cache(std::make_shared<MemoryStore>());
    cache.keep(w.request(), w.compiled(), {});
    Wanted other = w;
    other.options.inputs[1 + scalar].bits.low += 1;
    other.sizes = bind_sizes(other.fusion, other.options.inputs);
    return cache.find(other.request()).has_value();
  };
  w.options.device = default_device();
  EXPECT_TRUE(is_found_with_another(0)) << "the automatic plan is for any rate";
  EXPECT_TRUE(is_found_with_another(1)) << "and for any seed";
  EXPECT_FALSE(is_found_with_another(2)) << "but a length is a size";
}

TEST(Cache, ARecordOfAnotherSignatureOrAnOlderFormatIsAMiss) {
  const Wanted w(row_sums());
  const auto store = std::make_shared<MemoryStore>();
  FusionCache cache(store);
  cache.keep(w.request(), w.compiled(), {});
  ASSERT_TRUE(cache.find(w.request()));
  std::string& bytes = store->records.begin()->second;
  const std::string kept = bytes;
  CacheRecord r = decode_record(bytes_of(kept));
  r.compiled->signature.inputs[0].dtype = Dtype::kHalf;
  bytes = encode(r);
  EXPECT_FALSE(cache.find(w.request()));
  bytes = kept;
  bytes[8] = 1;  // the format that had neither signature nor launch record
  EXPECT_FALSE(cache.find(w.request()));
  bytes = kept;
  EXPECT_TRUE(cache.find(w.request()));
}

TEST(Cache, ADeadOpIsNotInTheKey) {
  const Wanted w(row_sums());
  const Wanted dead(row_sums().replace(row_sums().find("  output"), 0, "  %dead = neg %x\n"));
  FusionCache cache(std::make_shared<MemoryStore>());
  cache.keep(w.request(), w.compiled(), {});
  EXPECT_TRUE(cache.find(dead.request()));
}

TEST(Cache, AProgramWithDefectsIsNeverKept) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "a build without defects";
  Wanted w(row_sums());
  const Compiled c = w.compiled();
  w.options.defects.add(Defect::kSplitSwapped);
  const auto store = std::make_shared<MemoryStore>();
  FusionCache cache(store);
  cache.keep(w.request(), c, {});
  EXPECT_TRUE(store->records.empty());
}

TEST(Cache, ImagesBelongToTheirKernels) {
  const Wanted w(row_sums());
  const Compiled c = w.compiled();
  KernelImage mine, other;
  mine.kernel = digest(c.kernels[0]);
  mine.binary = {1};
  other.binary = {2};
  const CompiledFusion f = compiled_fusion(c, std::vector<KernelImage>{mine, other});
  ASSERT_EQ(f.images.size(), 1u);
  EXPECT_TRUE(f.images[0] == mine);
}

TEST(Cache, AnImageFitsTheRequestThatItAnswersAlone) {
  const ImageRequest wanted{.kernel = {1, 2},
                            .text = "text",
                            .entry = "k",
                            .architecture = "sm_90a",
                            .options = "-a -b",
                            .compiler = "nvrtc 13.0",
                            .numerics = 1};
  const KernelImage image = image_of(wanted, "binary");
  EXPECT_TRUE(fits(image, wanted));
  const auto expect_other = [&](const auto& change) {
    ImageRequest other = wanted;
    change(other);
    EXPECT_FALSE(fits(image, other));
    EXPECT_NE(key_bytes(image_key(other)), key_bytes(image_key(wanted)));
  };
  expect_other([](ImageRequest& r) { r.text = "other"; });
  expect_other([](ImageRequest& r) { r.entry = "other"; });
  expect_other([](ImageRequest& r) { r.architecture = "sm_80"; });
  expect_other([](ImageRequest& r) { r.options = "-a"; });
  expect_other([](ImageRequest& r) { r.compiler = "nvrtc 12.9"; });
  expect_other([](ImageRequest& r) { r.numerics = 2; });
  for (bool LaunchNeeds::* need :
       {&LaunchNeeds::is_cooperative, &LaunchNeeds::opts_in_shared, &LaunchNeeds::is_dependent}) {
    ImageRequest other = wanted;
    other.needs.*need = true;
    EXPECT_FALSE(fits(image, other)) << "it would be launched in another way";
  }
  ImageRequest without = wanted;
  without.compiler.clear();
  EXPECT_TRUE(fits(image, without)) << "where there is no compiler, any binary of the text will do";
}

TEST(Cache, RunsTakeTheProgramFromTheCacheWithTheSameDigests) {
  Module m = parse_module(row_sums() + "\ninputs @f host {\n  %x = f32[5, 7] normal seed 1\n}");
  const auto inputs = make_arguments(m.graphs[0], find_input_specs(m, "f", "host"), {});
  RunOptions options;
  options.cache = std::make_shared<FusionCache>(std::make_shared<MemoryStore>());
  const fusebox::Run cold = run_program(m, inputs, options), warm = run_program(m, inputs, options);
  options.only_cached = true;
  const fusebox::Run only = run_program(m, inputs, options);
  ASSERT_FALSE(cold.failure || warm.failure || only.failure);
  EXPECT_FALSE(cold.is_from_cache);
  EXPECT_TRUE(warm.is_from_cache && only.is_from_cache);
  EXPECT_TRUE(cold.digests == warm.digests && cold.digests == only.digests);
  const fusebox::Run without = run_program(m, inputs, {});
  EXPECT_TRUE(cold.digests == without.digests);
  m.step_lists.push_back({"", "f", parse_steps("split %s.i1 by 4 -> o, t")});
  const fusebox::Run missing = run_program(m, inputs, options);
  ASSERT_TRUE(missing.failure);
  EXPECT_EQ(missing.failure->code, ErrorCode::kNotCached);
}

TEST(Cache, WhatWasUsedLeastRecentlyGoesFirst) {
  const Folder folder;
  FolderStore store({.folder = folder.path, .limit_bytes = 250});
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  const std::string bytes(100, 'x');
  EXPECT_TRUE(store.write("a.fusion", bytes));
  pause();
  EXPECT_TRUE(store.write("b.fusion", bytes));
  pause();
  EXPECT_TRUE(store.read("a.fusion"));
  pause();
  EXPECT_TRUE(store.write("c.fusion", bytes));
  EXPECT_TRUE(store.look("a.fusion") && store.look("c.fusion"));
  EXPECT_FALSE(store.look("b.fusion"));
  EXPECT_EQ(store.list()[0].name, "c.fusion");
  EXPECT_FALSE(store.write("d.fusion", std::string(251, 'x'))) << "it alone is over the limit";
  EXPECT_EQ(store.list().size(), 2u);
  const Collected c = store.collect(0);
  EXPECT_EQ(c.removed, 2);
  EXPECT_EQ(c.removed_bytes, 200);
  EXPECT_TRUE(store.list().empty());
}

TEST(Cache, FilesOfAKilledWriterGoLater) {
  const Folder folder;
  FolderStore store({.folder = folder.path});
  const std::string fresh = folder.path + "/a.fusion.1.2.part", old = folder.path + "/b.fusion.1.2.part";
  for (const std::string& path : {fresh, old}) write_file(path, std::string_view("half"));
  const timespec times[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, old.c_str(), times, 0), 0);
  EXPECT_TRUE(store.write("c.fusion", "x"));
  EXPECT_TRUE(fs::exists(fresh)) << "its writer may live";
  EXPECT_FALSE(fs::exists(old));
}

TEST(Cache, AFolderThatOthersMayWriteIsRefused) {
  const Folder folder;
  ASSERT_EQ(::chmod(folder.path.c_str(), 0770), 0);
  EXPECT_EQ(refusal([&] { FolderStore({.folder = folder.path}); }), ErrorCode::kUnsafeFolder);
  ASSERT_EQ(::chmod(folder.path.c_str(), 0702), 0);
  EXPECT_EQ(refusal([&] { FolderStore({.folder = folder.path}); }), ErrorCode::kUnsafeFolder);
  ASSERT_EQ(::chmod(folder.path.c_str(), 0755), 0);
  EXPECT_EQ(refusal([&] { FolderStore({.folder = folder.path}); }), ErrorCode{});
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(folder.path.c_str(), 12345, 12345), 0);
    EXPECT_EQ(refusal([&] { FolderStore({.folder = folder.path}); }), ErrorCode::kUnsafeFolder);
    ASSERT_EQ(::chown(folder.path.c_str(), 0, 0), 0);
  }
  EXPECT_EQ(refusal([&] { FolderStore({.folder = "/dev/null"}); }), ErrorCode::kUnsafeFolder);
  EXPECT_EQ(refusal([&] { FolderStore({.folder = "/proc/no/such/folder"}); }), ErrorCode::kFileWrite);
}

TEST(Cache, AFileThatOthersMayWriteIsNotRead) {
  const Folder folder;
  FolderStore store({.folder = folder.path});
  EXPECT_TRUE(store.write("a.fusion", "x"));
  EXPECT_TRUE(store.read("a.fusion"));
  ASSERT_EQ(::chmod((folder.path + "/a.fusion").c_str(), 0666), 0);
  EXPECT_FALSE(store.read("a.fusion"));
  fs::create_symlink(folder.path + "/a.fusion", folder.path + "/b.fusion");
  ASSERT_EQ(::chmod((folder.path + "/a.fusion").c_str(), 0600), 0);
  EXPECT_TRUE(store.read("a.fusion"));
  EXPECT_FALSE(store.read("b.fusion")) << "a link may lead out of the folder";
}

TEST(Cache, AFolderThatTakesNothingFailsNoRun) {
  const Folder folder;
  const Wanted w(row_sums());
  const auto store = std::make_shared<FolderStore>(FolderStoreOptions{.folder = folder.path});
  fs::remove_all(folder.path);
  FusionCache cache(store);
  EXPECT_FALSE(cache.find(w.request()));
  cache.keep(w.request(), w.compiled(), {});
  EXPECT_EQ(cache.counts().written, 0);
  EXPECT_FALSE(cache.find(w.request()));
}

TEST(Cache, ThreadsShareIt) {
  const Folder folder;
  FusionCache cache(std::make_shared<FolderStore>(FolderStoreOptions{.folder = folder.path}));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const Wanted w(row_sums());
      const Compiled c = w.compiled();
      for (int i = 0; i < 20; ++i) {
        cache.keep(w.request(), c, {});
        const auto found = cache.find(w.request());
        wrong += !found || !(compiled_fusion(*found->compiled, {}) == compiled_fusion(c, {}));
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

CacheRecord record_of(const Wanted& w) {
  return {.key = fusion_key(w.request(), KeySizes::kAny), .compiled = compiled_fusion(w.compiled(), {}), .image = {}};
}

TEST(CachePack, AnImportedRecordIsFound) {
  const Wanted w(row_sums());
  const Bundle b = decode_bundle(bytes_of(encode(pack({record_of(w)}))));
  EXPECT_EQ(b.program, "f");
  MemoryStore store;
  const auto unpacked = unpack(b, store);
  ASSERT_EQ(unpacked.size(), 1u);
  EXPECT_EQ(unpacked[0].skipped, "");
  EXPECT_EQ(unpacked[0].program, "f");
  EXPECT_EQ(unpacked[0].target, "host");
  EXPECT_TRUE(store.records.contains(record_name(record_of(w).key, kFusionSuffix)));
}

TEST(CachePack, KernelsThatTheirScheduleDoesNotGiveAreRefused) {
  const Wanted w(row_sums()), other(row_sums().replace(row_sums().find("2.0"), 3, "3.0"));
  CacheRecord r = record_of(w);
  const CacheRecord from = record_of(other);
  r.compiled->code.graphs[1] = from.compiled->code.graphs[1];
  MemoryStore store;
  EXPECT_EQ(refusal([&] { unpack(pack({r}), store); }), ErrorCode::kInvalidField);
  r = record_of(w);
  r.compiled->launch = from.compiled->launch;
  r.compiled->launch->names[0] += "_";
  EXPECT_EQ(refusal([&] { unpack(pack({r}), store); }), ErrorCode::kInvalidField) << "another launch record";
  r = record_of(w);
  r.compiled->images.emplace_back();
  EXPECT_EQ(refusal([&] { unpack(pack({r}), store, {.trust_binaries = true}); }), ErrorCode::kInvalidField);
  EXPECT_TRUE(store.records.empty());
}

TEST(CachePack, AProgramOfAnotherFusionIsRefused) {
  const Wanted w(row_sums()), other(row_sums().replace(row_sums().find("2.0"), 3, "3.0"));
  CacheRecord r = record_of(w);
  r.compiled = record_of(other).compiled;
  MemoryStore store;
  EXPECT_EQ(refusal([&] { unpack(pack({r}), store); }), ErrorCode::kInvalidField);
  EXPECT_TRUE(store.records.empty());
}

TEST(CachePack, ARecordOfAnotherBuildIsSkipped) {
  CacheRecord r = record_of(Wanted(row_sums()));
  r.key[0] = key_part("build", "another");
  MemoryStore store;
  const auto unpacked = unpack(pack({r}), store);
  ASSERT_EQ(unpacked.size(), 1u);
  EXPECT_NE(unpacked[0].skipped, "");
  EXPECT_TRUE(store.records.empty());
}

}  // namespace
}  // namespace fusebox
