// The kernels that were launched last: a GPU reports a fault long after the launch, and no result says whose it was.
//
// Invariants: `note` allocates nothing and takes no lock. It keeps the pointer, so names must outlive the log. Launches
// from several threads at once may stand in another order; none of the last ones is missing, unless another thread waits
// for a stream just while one is noted.
//
//   log.note("softmax", stream);
//   log.recent()   // {"softmax"}, the last one first
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace fusebox {

class LaunchLog {
 public:
  using Mark = uint64_t;

  void note(const char* kernel, const void* stream) {
    Slot& slot = slots_[next_.fetch_add(1, std::memory_order_relaxed) % kKept];
    slot.kernel.store(kernel, std::memory_order_relaxed);
    slot.stream.store(stream, std::memory_order_relaxed);
  }
  // The number of launches so far.
  Mark mark() const { return next_.load(std::memory_order_relaxed); }
  // The launches before the mark are done, and did not fail.
  void forget(Mark mark) { done_.store(mark, std::memory_order_relaxed); }
  // Those among them that were on this stream are done. A slot says of which launch it is done, so a launch that takes the slot
  // meanwhile is not forgotten.
  void forget(Mark mark, const void* stream) {
    for (Mark i = mark; i > 0 && mark - i < kKept; --i) {
      Slot& slot = slots_[(i - 1) % kKept];
      if (slot.stream.load(std::memory_order_relaxed) == stream) slot.done.store(i, std::memory_order_relaxed);
    }
  }

  // The names of the launches that are not known to be done, each once, the last one first; at most kKept of them.
  std::vector<std::string> recent() const {
    std::vector<std::string> names;
    const Mark next = mark(), done = done_.load(std::memory_order_relaxed);
    for (Mark i = next; i > done && next - i < kKept; --i) {
      const Slot& slot = slots_[(i - 1) % kKept];
      const char* const name = slot.kernel.load(std::memory_order_relaxed);
      if (slot.done.load(std::memory_order_relaxed) != i && name != nullptr && *name != 0 &&
          std::ranges::find(names, name) == names.end())
        names.emplace_back(name);
    }
    return names;
  }

 private:
  static constexpr size_t kKept = 16;
  struct Slot {
    std::atomic<const char*> kernel = nullptr;
    std::atomic<const void*> stream = nullptr;
    std::atomic<Mark> done = 0;  // the mark behind the launch that is known to be done
  };
  std::array<Slot, kKept> slots_ = {};
  std::atomic<Mark> next_ = 0, done_ = 0;
};

// The text that follows the driver's words in an error, for a fault of one of these kernels.
inline std::string late_fault_text(const std::vector<std::string>& kernels) {
  if (kernels.empty()) return "; no kernel of Fusebox was running, so look at other users of this GPU's context";
  if (kernels.size() == 1) return "; the kernel is @" + kernels[0];
  std::string list;
  for (const std::string& name : kernels) list += (list.empty() ? "@" : ", @") + name;
  return "; one of the kernels launched last, " + list + ": FUSEBOX_DEBUG=1 waits for each and names it";
}

}  // namespace fusebox
