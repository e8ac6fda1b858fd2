// Runs tasks in child processes that may die. Each task gets an answer, or a report of the death.
//
// Invariants: a worker serves one task after another. A worker that dies, or is killed for taking too long, is
// replaced. No worker outlives this process or the call, unless the kernel cannot end it yet. Forks without exec: no
// other thread may run.
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
  double timeout_s = 120;    // for one task, or between two beats if the work beats
  double grace_s = 0;        // for running tasks after the order to finish; 0: no limit
  int64_t memory_bytes = 0;  // of a worker's data; 0: no limit
  // If a worker that has served other tasks dies, its task is tried once more in a new worker. So the effects of an
  // earlier task are not blamed on it.
  bool retry = true;
};

struct WorkerAnswer {
  uint64_t task = 0;  // its number, in the order of `next`
  std::string request, answer;
  std::string death;  // `killed by SIGSEGV`, `took longer than 2 s`, `ran out of memory`; empty: there is an answer
  bool was_stopped = false;     // of the death: it was told to finish, and did not in time
  std::string output;           // the last text that the dead worker printed
  uint64_t item = 0, part = 0;  // where it died, by its note
  double seconds = 0;
};

// A page that a worker shares with this process, which can read it even after the worker died.
struct WorkerNote {
  std::atomic<uint64_t> item = 0, part = 0;  // the current work
  std::atomic<uint64_t> beats = 0;
  std::atomic<uint64_t> patience = 1;  // the current work may take this many times WorkerOptions::timeout_s
  std::atomic<bool> stop = false;      // the work should answer soon, with the results so far

  void begin(uint64_t new_item, uint64_t new_part, uint64_t new_patience = 1) {
    item.store(new_item, std::memory_order_relaxed);
    part.store(new_part, std::memory_order_relaxed);
    patience.store(new_patience, std::memory_order_relaxed);
    beats.fetch_add(1, std::memory_order_relaxed);
  }
};

// A part of a worker's answer, before the answer itself.
using WorkerTell = std::function<void(const std::string&)>;

enum class WorkerOrder { kGoOn, kFinish, kGiveUp };  // kFinish sets `stop`; kGiveUp kills all, without an answer

struct WorkerCalls {
  // The next task for `work`; nothing if there is none now. Called whenever a worker is free.
  std::function<std::optional<std::string>()> next;
  // Runs in a worker. It may throw std::bad_alloc, nothing else.
  std::function<std::string(const std::string& request, WorkerNote& note)> work;
  // In place of `work`: answers in parts. The parts told so far are kept even if the worker dies.
  std::function<std::string(const std::string& request, WorkerNote& note, const WorkerTell& tell)> work_in_parts;
  std::function<void(WorkerAnswer)> told;  // a part
  // A task for a new process, forked from this one as it is now, which ends with the task. One runs at a time, beside
  // the other workers. May be empty.
  std::function<std::optional<std::string>()> next_fresh;
  std::function<void(WorkerAnswer)> done;  // in the order of completion
  std::function<WorkerOrder()> tick;       // about ten times a second; may be empty
};

// Runs until nothing is left to do. Throws kOutOfMemory if no process can be started, and any exception of `calls`.
void run_workers(const WorkerOptions& options, const WorkerCalls& calls);

// Runs `tasks` tasks, in their order.
void run_in_workers(size_t tasks, const WorkerOptions& options, const std::function<std::string(size_t)>& work,
                    const std::function<void(WorkerAnswer)>& done);

}  // namespace fusebox
