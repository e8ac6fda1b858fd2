// Things whose end calls the driver, such as loaded modules, and that were let go of at a place where nobody may wait for the
// GPU: perhaps inside of a capture, which would end, or where a graph ends, which forbids every call of the driver. They
// rest here, and a later call that loads kernels ends them.
//
// The last ones stay, so that the driver, which waits for running kernels before it takes their code, rarely has to: what
// it unloads was let go of long ago.
//
//   Resting& resting = Resting::of_process();
//   resting.add(std::move(modules));
//   resting.end_oldest();
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace fusebox {

class Resting {
 public:
  static constexpr size_t kMost = 16;

  // It is never destroyed: where a process ends, the driver may have ended before.
  static Resting& of_process() {
    static Resting* const resting = new Resting;
    return *resting;
  }

  // Calls nothing, and throws nothing but std::bad_alloc.
  void add(std::shared_ptr<void> thing) {
    const std::lock_guard lock(using_);
    things_.push_back(std::move(thing));
  }

  // Leaves the last `most` things. Their ends may add others.
  void end_oldest(size_t most = kMost) {
    std::vector<std::shared_ptr<void>> ended;
    {
      const std::lock_guard lock(using_);
      for (; things_.size() > most; things_.pop_front()) ended.push_back(std::move(things_.front()));
    }
    for (std::shared_ptr<void>& thing : ended) thing.reset();
  }

  size_t size() {
    const std::lock_guard lock(using_);
    return things_.size();
  }

 private:
  std::mutex using_;
  std::deque<std::shared_ptr<void>> things_;  // the oldest first
};

}  // namespace fusebox
