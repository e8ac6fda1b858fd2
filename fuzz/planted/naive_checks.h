// Judges the memory rules of the host executor (replay/host/host_executor.h) again, by definition: keeps every touch of
// a launch and compares each new one with all earlier touches of the same bytes.
//
// Two touches are ordered if one thread makes both, if a barrier separates them in one block, or if a synchronisation
// of the grid separates them. Two touches of the same bytes must be ordered if one of them is a store.
//
//   NaiveChecks checks;
//   make_host_device({.checks = {.unwritten = false, .races = false}, .observer = &checks})   // … and a run
//   checks.finish();
//   checks.found()                  // the rules that the first bad instruction breaks: {kRace, "%T2[0]"}, …
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/bytecode.h"
#include "ir/table/error.h"
#include "replay/host/host_executor.h"
#include "replay/host/launch_observer.h"

namespace fusebox::fuzz {

class NaiveChecks : public LaunchObserver {
 public:
  // The first bad instruction may break several rules; the executor names one. An empty place matches any line.
  struct Violation {
    ErrorCode code;
    std::string place;
    bool operator==(const Violation&) const = default;
  };
  const std::vector<Violation>& found() const { return found_; }
  // True if a launch is too large to judge, or has clusters of blocks.
  bool gave_up() const { return gave_up_; }
  // The place of an element that a launch without a violation wrongly marks as written or unwritten.
  const std::string& wrong_mark() const { return wrong_mark_; }
  // Call it after the run. Checks that all blocks of the last launch came to the same grid synchronisations.
  void finish();

  void begin(const Bytecode& code, const LaunchDims& dims, std::span<const HostArgument> args) override;
  void begin_block(int64_t block) override;
  void allocate(const At& at, int64_t elements, int64_t offset) override;
  void access(const At& at, const Access& access) override;
  void within(const At& at, const Within& within) override;
  void synchronize(const At& at, int32_t threads) override;
  void end() override;

 private:
  // A granule of memory. `space` identifies the memory (global, a block's, or a thread's buffer), `place` the granule
  // in it.
  struct Key {
    int64_t space, place;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const {
      return (static_cast<size_t>(k.space) * 0x9e3779b97f4a7c15u + static_cast<size_t>(k.place)) * 0xbf58476d1ce4e5b9u;
    }
  };
  struct Touch {
    int64_t thread, block, epoch, phase;
    bool is_store;
    int64_t instance;  // counts executed instructions
    uint32_t buffer;
    int64_t element;
  };
  struct Granule {
    bool is_written;
    std::vector<Touch> loads = {}, stores = {};
  };
  // The place of a block's buffer.
  struct Buffer {
    int64_t space = 0;
    int64_t address = 0;  // bytes
    int64_t elements = 0;
  };
  struct Block {
    int64_t epoch = 0;                      // barriers so far
    std::vector<uint32_t> grid = {};        // synchronisations of the grid so far
    std::vector<Buffer> buffers = {};       // indexed like Bytecode::buffers
    std::vector<int64_t> allocations = {};  // of local buffers
  };

  // Throws if the launch must end here.
  void begin_instance(const At& at, int32_t lane, bool follows);
  void violate(ErrorCode code, std::string place);
  std::string place_of(uint32_t buffer, int64_t element) const;
  std::string line_of(const At& at) const;
  int64_t bytes_of(uint32_t buffer) const { return size_bytes(code_->buffers[buffer].dtype); }
  int64_t threads() const { return dims_.block[0] * dims_.block[1] * dims_.block[2]; }
  Buffer buffer_of(const At& at, uint32_t buffer, int32_t lane);
  Granule& granule(const Key& key);
  template <class Visit>
  void each_granule(const Buffer& b, int64_t element, int64_t bytes, Visit&& visit);
  // `both`: unordered touches are a race even if both are stores.
  void touch(const At& at, int32_t lane, uint32_t buffer, int64_t element, bool is_store, bool both = false);
  void check_order(const std::vector<Touch>& earlier, const Touch& now, bool both);
  void use_workspace(const At& at, uint32_t buffer, int64_t first, int64_t used, int64_t needed);
  void check_counter(const At& at, uint32_t buffer, int64_t slot);
  void reduce_grid(const At& at, const Instruction& i);

  const Bytecode* code_ = nullptr;
  LaunchDims dims_;
  std::span<const HostArgument> args_;
  int64_t granule_bytes_ = 1;
  std::unordered_map<Key, Granule, KeyHash> memory_;
  std::vector<Block> blocks_;
  std::map<std::pair<uint32_t, int64_t>, int64_t> arrived_;  // blocks, by counter
  At at_;
  int32_t lane_ = -1;
  int64_t instance_ = 0, touches_ = 0;
  std::vector<Violation> found_;
  bool gave_up_ = false;
  std::string wrong_mark_;
};

}  // namespace fusebox::fuzz
