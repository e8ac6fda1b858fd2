// Runs the parts of some work, each on a thread of its own.
//
// Invariants: every part runs to its end before `run_parts` returns or throws. If parts throw (also for lack of
// memory), `run_parts` throws the exception of the first part that did. A part whose thread cannot be started runs on
// this one.
//
//   run_parts(threads, [&](int k) { fill(rows * k / threads, rows * (k + 1) / threads); });
#pragma once

#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace fusebox {

template <class Work>
void run_parts(int parts, const Work& work) {
  std::vector<std::exception_ptr> thrown(static_cast<size_t>(parts));
  const auto guarded = [&](int k) {
    try {
      work(k);
    } catch (...) {
      thrown[static_cast<size_t>(k)] = std::current_exception();
    }
  };
  std::vector<std::thread> pool;
  pool.reserve(static_cast<size_t>(parts));
  for (int k = 1; k < parts; ++k) {
    try {
      pool.emplace_back(guarded, k);
    } catch (const std::system_error&) {
      guarded(k);
    }
  }
  guarded(0);
  for (std::thread& t : pool) t.join();
  for (const std::exception_ptr& e : thrown)
    if (e) std::rethrow_exception(e);
}

}  // namespace fusebox
