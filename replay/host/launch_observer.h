// What the host executor tells of a launch to one who asks: the accesses and synchronisations of its threads, in the
// order in which it makes them. A checker that shares nothing with the executor's own checks judges from it.
//
// Invariants: the launch runs on one thread; an event comes before the executor checks what it says, so that the last
// ones may break a rule; accesses of one instruction follow one another, lane by lane. An observer may throw, which
// ends the launch.
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
    int64_t width = 1;  // elements; of a vector more
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
  // Shared memory, in elements and bytes, or the instruction's local buffer of every thread.
  virtual void allocate(const At& at, int64_t elements, int64_t offset) = 0;
  virtual void access(const At& at, const Access& access) = 0;
  virtual void within(const At& at, const Within& within) = 0;
  // A barrier or collective that so many threads of the block have come to.
  virtual void synchronize(const At& at, int32_t threads) = 0;
  // A launch that broke none of the executor's rules; its arguments say which elements hold a value.
  virtual void end() = 0;
};

}  // namespace fusebox
