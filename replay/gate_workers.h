// Work in child processes that may die: each task gets an answer or an obituary.
//
// Invariants: a worker serves one task after another; one that dies, or is killed for taking too long, is replaced. A
// task on which a worker died that had served others is tried once more in a new one, so that what an earlier task left
// behind is not blamed on it. No worker outlives this process or the call. Forks without exec: no other thread may run.
//
//   run_in_workers(paths.size(), {.jobs = 2}, [&](size_t i) { return judge(paths[i]); },
//                  [&](WorkerAnswer a) { a.death.empty() ? keep(a.task, a.answer) : blame(a.task, a.death); });
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace fusebox {

struct WorkerOptions {
  int jobs = 1;
  double timeout_s = 120;  // of one task
};

struct WorkerAnswer {
  size_t task = 0;
  std::string answer;
  std::string death;   // `killed by SIGSEGV`, `took longer than 2 s`; empty: there is an answer
  std::string output;  // the end of what a worker that died had printed
  double seconds = 0;
};

// `work` runs in a worker and throws nothing; `done` here, in the order of completion. Throws kOutOfMemory where no
// process can be started, and what `done` throws.
void run_in_workers(size_t tasks, const WorkerOptions& options, const std::function<std::string(size_t)>& work,
                    const std::function<void(WorkerAnswer)>& done);

}  // namespace fusebox
