// Tells an observer the accesses and synchronisations of a launch's threads, in the order in which the host executor
// makes them. A checker that shares nothing with the executor's own checks can judge from these events.
//
// Invariants: the launch runs on one thread. An event comes before the executor checks it, so the last events may break
// a rule. Accesses of one instruction follow one another, lane by lane. An observer may throw, which ends the launch.
//
//   store %y at %t, %v on two threads   ->   access(at, {.lane = 0, .buffer = 1, .element = 0, .is_store = true})
//                                            access(at, {.lane = 1, .buffer = 1, .element = 1, .is_store = true})
#pragma once

#include <cstdint>
#include <span>

namespace fusebox {

struct Bytecode;
struct HostArgument;
struct LaunchDims;

class LaunchObserver {
 public:
  struct At {
    int64_t block = 0;         // counted with x first
    uint32_t instruction = 0;  // of Bytecode::code
  };
  struct Access {
    int32_t lane = 0;
    uint32_t buffer = 0;  // of Bytecode::buffers
    int64_t element = 0;
    int64_t width = 1;  // in elements; more than 1 for a vector
    bool is_store = false;
  };
  struct Within {
    int32_t lane = 0;
    int64_t index = 0, extent = 0;
  };

  virtual ~LaunchObserver() = default;
  // Both outlive the launch.
  virtual void begin(const Bytecode& code, const LaunchDims& dims, std::span<const HostArgument> args) = 0;
  virtual void begin_block(int64_t block) = 0;
  // Shared memory, in elements and bytes; or the instruction's local buffer, for every thread.
  virtual void allocate(const At& at, int64_t elements, int64_t offset) = 0;
  virtual void access(const At& at, const Access& access) = 0;
  virtual void within(const At& at, const Within& within) = 0;
  // A barrier or collective, and the number of the block's threads that reached it.
  virtual void synchronize(const At& at, int32_t threads) = 0;
  // The launch broke none of the executor's rules. Its arguments say which elements hold a value.
  virtual void end() = 0;
};

}  // namespace fusebox
