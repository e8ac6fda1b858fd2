// Law: whatever happens to the processes and files of a cache's folder, nobody gets a program that he did not ask for,
// nobody gets an error, and nothing is lost but the record that a killed process was writing.
//
// FUSEBOX_CACHE_KILLS sets how many processes are killed (default 200), FUSEBOX_CACHE_FLIPS how many bits are changed
// (default 2,000), FUSEBOX_CACHE_PROCESSES how many work at a time (default 16).
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ir/infer/bind.h"
#include "ir/text/parse.h"
#include "replay/cache/compiled_record.h"
#include "replay/cache/folder_store.h"
#include "replay/cache/fusion_cache.h"
#include "serde/decode.h"
#include "tests/support/random_module.h"
#include "tests/support/setting.h"

namespace fusebox {
namespace {

namespace fs = std::filesystem;
using testing::Random;
using testing::setting;

struct Folder {
  std::string path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "fusebox-cache-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
};

struct Program {
  Graph fusion;
  CompileOptions options;
  Bindings sizes;
  Compiled compiled;
  CompiledFusion expected;
  FusionRequest request() const { return {.fusion = fusion, .bindings = sizes, .options = options, .target = "host"}; }
};

const std::vector<Program>& programs() {
  static const std::vector<Program> all = [] {
    std::vector<Program> made;
    for (int i = 0; i < 12; ++i) {
      Program p;
      p.fusion = parse_graph("fusion @f {\n  %n = size\n  %x = input f32[%n] contiguous\n  %a = mul %x, " +
                             std::to_string(i) + ".5_f32\n  %y = exp %a\n  output %y\n}");
      p.options.inputs = {{.shape = {7}, .strides = {1}}};
      p.sizes = bind_sizes(p.fusion, p.options.inputs);
      p.compiled = compile(p.fusion, p.sizes, p.options);
      p.expected = compiled_fusion(p.compiled, {});
      made.push_back(std::move(p));
    }
    return made;
  }();
  return all;
}

// Counted by all processes.
struct Counts {
  std::atomic<uint64_t> hits, misses, wrong, errors;
};
Counts* shared_counts() {
  void* const memory = ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (memory) Counts();
}

// Asks for programs, and keeps those that are not there, until it is killed.
[[noreturn]] void work(const std::string& folder, int64_t limit_bytes, uint64_t seed, Counts& counts) {
  Random random(seed);
  for (;;) {
    try {
      FusionCache cache(
          std::make_shared<FolderStore>(FolderStoreOptions{.folder = folder, .limit_bytes = limit_bytes}));
      for (int i = 0; i < 50; ++i) {
        const Program& p = random.pick(programs());
        if (const auto found = cache.find(p.request())) {
          ++counts.hits;
          if (!(compiled_fusion(*found->compiled, {}) == p.expected)) ++counts.wrong;
        } else {
          ++counts.misses;
          cache.keep(p.request(), p.compiled, {});
        }
        if (random.one_in(20)) cache.keep(p.request(), p.compiled, {});
      }
    } catch (...) {
      ++counts.errors;
    }
  }
}

class Workers {
 public:
  Workers(std::string folder, int64_t limit_bytes, Counts& counts)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes), counts_(counts) {
    for (uint64_t n = setting("FUSEBOX_CACHE_PROCESSES", 16); n > 0; --n) start();
  }
  ~Workers() {
    while (!running_.empty()) kill(0);
  }
  void start() {
    const pid_t child = ::fork();
    if (child == 0) work(folder_, limit_bytes_, ++seed_ * 7919, counts_);
    ++seed_;
    running_.push_back(child);
  }
  void kill(size_t which) {
    ::kill(running_[which], SIGKILL);
    int status = 0;
    ::waitpid(running_[which], &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it ended by itself: " << status;
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(which));
  }
  size_t count() const { return running_.size(); }

 private:
  std::string folder_;
  int64_t limit_bytes_;
  Counts& counts_;
  uint64_t seed_ = 0;
  std::vector<pid_t> running_;
};

void expect_works(const std::string& folder) {
  FusionCache cache(std::make_shared<FolderStore>(FolderStoreOptions{.folder = folder}));
  for (const Program& p : programs()) {
    cache.keep(p.request(), p.compiled, {});
    const auto found = cache.find(p.request());
    ASSERT_TRUE(found);
    EXPECT_TRUE(compiled_fusion(*found->compiled, {}) == p.expected);
  }
}

// The bytes of about half of the programs, so that eviction never rests.
int64_t half_of_the_records() {
  const Folder folder;
  FusionCache cache(std::make_shared<FolderStore>(FolderStoreOptions{.folder = folder.path}));
  for (const Program& p : programs()) cache.keep(p.request(), p.compiled, {});
  int64_t bytes = 0;
  for (const StoredFile& f : FolderStore({.folder = folder.path}).list()) bytes += f.bytes;
  return bytes / 2;
}

void run_with_kills(int64_t limit_bytes, uint64_t kills) {
  const Folder folder;
  Counts& counts = *shared_counts();
  {
    Workers workers(folder.path, limit_bytes, counts);
    Random random(1);
    for (uint64_t i = 0; i < kills; ++i) {
      ::usleep(static_cast<useconds_t>(random.below(4000)));
      workers.kill(random.below(workers.count()));
      workers.start();
    }
  }
  std::printf("  %lu kills: %lu hits, %lu misses\n", kills, counts.hits.load(), counts.misses.load());
  EXPECT_EQ(counts.wrong, 0u);
  EXPECT_EQ(counts.errors, 0u);
  EXPECT_GT(counts.hits, 0u);
  EXPECT_GT(counts.misses, 0u);
  // A record has its name only when it is whole.
  const FolderStore store({.folder = folder.path});
  for (const StoredFile& f : store.list()) {
    const auto bytes = store.look(f.name);
    ASSERT_TRUE(bytes) << f.name;
    EXPECT_NO_THROW(decode_record(bytes_of(*bytes))) << f.name;
  }
  expect_works(folder.path);
}

TEST(CacheFolder, KilledProcessesLeaveWholeRecords) {
  run_with_kills(kCacheBytes, setting("FUSEBOX_CACHE_KILLS", 200) / 2);
}

TEST(CacheFolder, KilledProcessesLeaveWholeRecordsWhileOthersAreRemoved) {
  run_with_kills(half_of_the_records(), setting("FUSEBOX_CACHE_KILLS", 200) / 2);
}

TEST(CacheFolder, AWrongBitIsAMiss) {
  const Folder folder;
  Counts& counts = *shared_counts();
  const uint64_t flips = setting("FUSEBOX_CACHE_FLIPS", 2000);
  uint64_t done = 0;
  {
    Workers workers(folder.path, kCacheBytes, counts);
    Random random(2);
    while (done < flips) {
      const std::vector<StoredFile> files = FolderStore({.folder = folder.path}).list();
      if (files.empty()) continue;
      const StoredFile& f = random.pick(files);
      const int file = ::open((folder.path + "/" + f.name).c_str(), O_RDWR | O_CLOEXEC);
      if (file < 0) continue;
      const auto at = static_cast<off_t>(random.below(static_cast<size_t>(f.bytes)));
      char byte = 0;
      if (::pread(file, &byte, 1, at) == 1) {
        byte ^= static_cast<char>(1 << random.below(8));
        done += ::pwrite(file, &byte, 1, at) == 1;
      }
      ::close(file);
    }
  }
  std::printf("  %lu wrong bits: %lu hits, %lu misses\n", done, counts.hits.load(), counts.misses.load());
  EXPECT_EQ(counts.wrong, 0u);
  EXPECT_EQ(counts.errors, 0u);
  EXPECT_GT(counts.hits, 0u);
  EXPECT_GT(counts.misses, programs().size());
  expect_works(folder.path);
}

}  // namespace
}  // namespace fusebox
