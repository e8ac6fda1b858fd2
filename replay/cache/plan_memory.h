// The plans that a program has in memory, by the signature of their inputs. A call with new sizes takes a plan that serves
// them; if there is none, it is made once, however many threads wait for it.
//
// Invariants: a plan that is returned serves the asked sizes. Calls may come from any thread; a plan is made without a lock, so
// threads with different signatures make theirs at the same time. The plans used last stay, as many as fit into the bytes, at
// least one.
//
//   PlanMemory plans;
//   auto plan = plans.find_or_make({fusion, sizes, options, "host"}, [&] { return KnownPlan{.compiled = …}; });
//   plans.info().recompiles.back()   // "%x.1: up to 160, was up to 128"
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/module/input_signature.h"
#include "ir/module/launch_record.h"
#include "passes/pipeline/pipeline.h"

namespace fusebox {

// A compiled fusion. It serves every set of sizes for which compilation would give the same programs.
struct KnownPlan {
  std::shared_ptr<const Compiled> compiled = {};
  std::optional<LaunchRecord> launch = {};  // of the host program; none if it does not fit into a record
  struct State {
    std::atomic<bool> is_kept = false;      // on disk, or nobody wants it there
    std::atomic<bool> is_prepared = false;  // its kernels are compiled for the device
  };
  std::shared_ptr<State> state = std::make_shared<State>();
};

struct PlanRequest {
  const Graph& fusion;
  const Bindings& sizes;
  const CompileOptions& options;
  std::string target;  // what it is compiled for, such as the GPU's number
};

struct PlanMemoryOptions {
  int64_t bytes = int64_t{64} << 20;
  std::function<void(const std::string&)> log = {};  // one line for each plan that is made, with the reason
};

class PlanMemory {
 public:
  explicit PlanMemory(PlanMemoryOptions options = {}) : options_(std::move(options)) {}

  // Throws what `serves` and `make` throw. If `make` throws, threads that waited for its plan try themselves.
  std::shared_ptr<const KnownPlan> find_or_make(const PlanRequest& request, const std::function<KnownPlan()>& make);
  // Forgets all plans, also those that are being made: they are returned and not kept.
  void clear();

  struct Info {
    int64_t hits = 0;                     // calls for which a plan was there
    int64_t made = 0;                     // plans
    int64_t waited = 0;                   // calls that waited for another thread's plan
    int64_t kept = 0, bytes = 0;          // plans now
    std::vector<std::string> recompiles;  // why plans were made, the last kReasons of them
  };
  Info info() const;
  static constexpr size_t kReasons = 32;

 private:
  struct Entry {
    std::string target;
    InputSignature signature;
    std::shared_ptr<const KnownPlan> plan;
    int64_t bytes = 0;
  };
  using Key = std::pair<std::string, std::string>;  // target, text of the signature

  // All are called while `using_` is held.
  std::shared_ptr<const KnownPlan> find(const PlanRequest& request, const InputSignature& signature);
  std::string reason(const PlanRequest& request, const InputSignature& signature) const;
  void keep(Entry made);

  const PlanMemoryOptions options_;
  mutable std::mutex using_;
  std::condition_variable is_made_;
  std::list<Entry> entries_;  // used last first
  std::set<Key> being_made_;
  uint64_t state_ = 0;  // counts `clear`
  int64_t bytes_ = 0;
  Info counts_;
};

// The bytes that a compiled fusion takes in memory, about.
int64_t approximate_bytes(const Compiled& compiled);

}  // namespace fusebox
