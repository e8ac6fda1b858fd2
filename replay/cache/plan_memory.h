// The plans in memory, by program and by the signature of their inputs. A call with new sizes takes a plan that serves them; if
// there is none, it is made once, however many threads wait for it. A `PlanStore` holds the plans of many programs, and equal
// programs share theirs. A `PlanMemory` is one program's view of a store, with its counts.
//
// Invariants: a plan that is returned is of the asked program, of which all bytes were compared, and serves the asked sizes.
// Calls may come from any thread; a plan is made without a lock, so threads with different signatures make theirs at the same
// time. The plans used last stay, as many as fit into the store's bytes, at least one.
//
//   PlanMemory plans({.store = PlanStore::of_process()});
//   const auto program = plans.store().program(key_bytes(program_key(request)));   // cache_key.h
//   auto plan = plans.find_or_make({fusion, sizes, options, "host", program}, [&] { return KnownPlan{.compiled = …}; });
//   plans.info().recompiles.back()   // "%x.1: up to 160, was up to 128"
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "ir/module/input_signature.h"
#include "ir/module/launch_record.h"
#include "passes/pipeline/pipeline.h"
#include "serde/cache_record.h"

namespace fusebox {

// The bytes of everything that a program's plans depend on, beside sizes and target.
struct PlanProgram {
  std::string bytes;
};

// A compiled fusion. It serves every set of sizes for which compilation would give the same programs.
struct KnownPlan {
  using Images = std::vector<KernelImage>;
  std::shared_ptr<const Compiled> compiled = {};
  std::optional<LaunchRecord> launch = {};  // of the host program; none if it does not fit into a record
  struct State {
    std::atomic<bool> is_kept = false;                       // on disk, or nobody wants it there
    std::atomic<std::shared_ptr<const Images>> images = {};  // of its kernels on its GPU, once they are compiled
  };
  std::shared_ptr<State> state = std::make_shared<State>();
};

struct PlanRequest {
  const Graph& fusion;
  const Bindings& sizes;
  const CompileOptions& options;
  std::string target;  // what it is compiled for, such as the GPU's number
  // Everything else that a plan depends on (PlanStore::program). Null: all requests of the store are for one program.
  std::shared_ptr<const PlanProgram> program = nullptr;
};

class PlanStore {
 public:
  explicit PlanStore(int64_t bytes = int64_t{64} << 20) : most_bytes_(bytes) {}
  // The one that all programs of this process share.
  static const std::shared_ptr<PlanStore>& of_process();

  // The same value for the same bytes, as long as one of them or a plan of the program is in use.
  std::shared_ptr<const PlanProgram> program(std::string bytes);
  // Counts the bytes of a plan's images, which are known after it.
  void keep_images(const KnownPlan& plan, KnownPlan::Images images);
  // Forgets all plans, also those that are being made: they are returned and not kept.
  void clear();

 private:
  friend class PlanMemory;
  using Key = std::tuple<const PlanProgram*, std::string, std::string>;  // program, target, text of the signature
  struct Entry {
    std::shared_ptr<const PlanProgram> program;
    std::string target;
    InputSignature signature;
    std::shared_ptr<const KnownPlan> plan;
    uint64_t maker = 0;  // the memory that made it
    int64_t bytes = 0;
    const Key* key = nullptr;  // of its list in by_key_
    bool is_for(const PlanRequest& request) const { return program == request.program && target == request.target; }
  };
  void keep(Entry made, const Key& key);
  void use(std::list<Entry>::iterator entry);
  void evict();

  const int64_t most_bytes_;
  std::mutex using_;  // guards all below
  std::condition_variable is_made_;
  std::list<Entry> entries_;                                     // used last first
  std::map<Key, std::list<std::list<Entry>::iterator>> by_key_;  // also used last first
  std::set<Key> being_made_;
  std::map<std::string, std::weak_ptr<const PlanProgram>> programs_;  // by their bytes
  size_t most_programs_ = 64;  // known ones, before those that nobody uses are forgotten
  uint64_t state_ = 0;         // counts `clear`
  uint64_t kept_ = 0;          // counts `keep`
  int64_t bytes_ = 0;
};

struct PlanMemoryOptions {
  std::shared_ptr<PlanStore> store = nullptr;        // null: one of its own
  int64_t bytes = int64_t{64} << 20;                 // of its own store
  std::function<void(const std::string&)> log = {};  // one line for each plan that is made, with the reason
};

class PlanMemory {
 public:
  explicit PlanMemory(PlanMemoryOptions options = {});

  // Throws what `serves` and `make` throw. If `make` throws, threads that waited for its plan try themselves.
  std::shared_ptr<const KnownPlan> find_or_make(const PlanRequest& request, const std::function<KnownPlan()>& make);
  PlanStore& store() { return *store_; }

  struct Info {
    int64_t hits = 0;                     // calls for which a plan was there
    int64_t shared = 0;                   // those of them whose plan another memory of the store had made
    int64_t made = 0;                     // plans
    int64_t waited = 0;                   // calls that waited for another thread's plan
    int64_t kept = 0, bytes = 0;          // plans now, of the program that was asked for last
    std::vector<std::string> recompiles;  // why plans were made, the last kReasons of them
  };
  Info info() const;
  static constexpr size_t kReasons = 32;

 private:
  // Called while the store's lock is held.
  std::string reason(const PlanRequest& request, const InputSignature& signature) const;

  const PlanMemoryOptions options_;
  const std::shared_ptr<PlanStore> store_;
  const uint64_t id_;
  // Guarded by the store's lock.
  std::shared_ptr<const PlanProgram> program_;  // asked for last
  Info counts_;
};

// The bytes that a compiled fusion takes in memory, about.
int64_t approximate_bytes(const Compiled& compiled);

}  // namespace fusebox
