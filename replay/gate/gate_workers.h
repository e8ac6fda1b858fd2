// Work in child processes that may die: each task gets an answer or an obituary.
//
// Invariants: a worker serves one task after another; one that dies, or is killed for taking too long, is replaced. No
// worker outlives this process or the call, but for one that the kernel cannot end yet. Forks without exec: no other
// thread may run.
//
//   run_in_workers(paths.size(), {.jobs = 2}, [&](size_t i) { return judge(paths[i]); },
//                  [&](WorkerAnswer a) { a.death.empty() ? keep(a.task, a.answer) : blame(a.task, a.death); });
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fusebox {

struct WorkerOptions {
  int jobs = 1;
  double timeout_s = 120;    // of one task, or, where the work beats, between two beats
  double grace_s = 0;        // how long what runs may take after the order to finish; 0: as long as it likes
  int64_t memory_bytes = 0;  // of a worker's data; 0: no limit
  // A task on which a worker died that had served others is tried once more in a new one, so that what an earlier task
  // left behind is not blamed on it.
  bool retry = true;
};

struct WorkerAnswer {
  uint64_t task = 0;  // its number, in the order in which they were given
  std::string request, answer;
  std::string death;  // `killed by SIGSEGV`, `took longer than 2 s`, `ran out of memory`; empty: there is an answer
  bool was_stopped = false;     // the death: it was told to finish, and did not in time
  std::string output;           // the end of what a worker that died had printed
  uint64_t item = 0, part = 0;  // where it died, as its note said
  double seconds = 0;
};

// A page that a worker shares with this process, which reads it even after the worker died.
struct WorkerNote {
  std::atomic<uint64_t> item = 0, part = 0;  // what the work is at
  std::atomic<uint64_t> beats = 0;
  std::atomic<uint64_t> patience = 1;  // what it is at may take so many times WorkerOptions::timeout_s
  std::atomic<bool> stop = false;      // the work should answer soon with what there is

  void begin(uint64_t new_item, uint64_t new_part, uint64_t new_patience = 1) {
    item.store(new_item, std::memory_order_relaxed);
    part.store(new_part, std::memory_order_relaxed);
    patience.store(new_patience, std::memory_order_relaxed);
    beats.fetch_add(1, std::memory_order_relaxed);
  }
};

// A part of a worker's answer, before the answer itself.
using WorkerTell = std::function<void(const std::string&)>;

enum class WorkerOrder { kGoOn, kFinish, kGiveUp };  // `stop` is set; or all are killed, without an answer

struct WorkerCalls {
  // A task, as it goes to `work`; nothing: there is none now. Asked whenever a worker is free.
  std::function<std::optional<std::string>()> next;
  // In a worker. Memory that runs out (std::bad_alloc) may be thrown, nothing else.
  std::function<std::string(const std::string& request, WorkerNote& note)> work;
  // Instead of `work`: an answer in parts, of which those that were told are there even if the worker dies.
  std::function<std::string(const std::string& request, WorkerNote& note, const WorkerTell& tell)> work_in_parts;
  std::function<void(WorkerAnswer)> told;  // a part
  // A task for a process that is made for it, of this one as it is now, and ends with it: one at a time, beside the
  // others. May be empty.
  std::function<std::optional<std::string>()> next_fresh;
  std::function<void(WorkerAnswer)> done;  // in the order of completion
  std::function<WorkerOrder()> tick;       // about ten times a second; may be empty
};

// Until nothing is left to do. Throws kOutOfMemory where no process can be started, and what the calls here throw.
void run_workers(const WorkerOptions& options, const WorkerCalls& calls);

// So many tasks, in their order.
void run_in_workers(size_t tasks, const WorkerOptions& options, const std::function<std::string(size_t)>& work,
                    const std::function<void(WorkerAnswer)>& done);

}  // namespace fusebox
