// The choices that every generator and mutator draws. They come from a seed, which never ends, or from the finite bytes
// of a libFuzzer input; the interface is the same.
//
// Invariants: the same seed or bytes give the same choices on every machine. After the last byte, every choice is the
// first one and `one_in` is false, so every draw ends.
//
//   RandomSource random(7);                   // or RandomSource(std::span(data, size))
//   random.below(6); random.one_in(4); random.pick(list); random.pick<ParallelType>();
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/table/enums.h"

namespace fusebox::fuzz {

class RandomSource {
 public:
  explicit RandomSource(uint64_t seed) : state_(seed) {}
  // The bytes must outlive the source.
  explicit RandomSource(std::span<const uint8_t> bytes) : bytes_(bytes), finite_(true) {}

  // True if all further choices are the first one.
  bool exhausted() const { return finite_ && at_ == bytes_.size(); }

  uint64_t next() { return finite_ ? take(8) : expand(); }
  // 0 … count−1; 0 for a count of 0.
  size_t below(size_t count) {
    if (count < 2) return 0;
    if (!finite_) return static_cast<size_t>(expand() % count);
    return static_cast<size_t>(take(count <= 256 ? 1 : count <= 65536 ? 2 : 8) % count);
  }
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<size_t>(high - low) + 1));
  }
  bool one_in(size_t count) { return below(count) + 1 == count; }

  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  template <class T, size_t n>
  const T& pick(const T (&list)[n]) {
    return list[below(n)];
  }
  template <class E>
    requires kIsProgramEnum<E>
  E pick() {
    return static_cast<E>(below(enum_texts<E>().size()));
  }
  template <class T>
  void shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  }
  // A random position in a list of weights; each position is as likely as its weight. Returns the list's length if all
  // are 0.
  size_t weighted(std::span<const uint32_t> weights) {
    size_t total = 0;
    for (uint32_t w : weights) total += w;
    if (total == 0) return weights.size();
    size_t at = below(total), i = 0;
    while (at >= weights[i]) at -= weights[i++];
    return i;
  }

 private:
  // SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
  uint64_t expand() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t take(size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count && at_ < bytes_.size(); ++i) value |= uint64_t{bytes_[at_++]} << (8 * i);
    return value;
  }

  uint64_t state_ = 0;
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  bool finite_ = false;
};

// Boundary extents: 0, 1, primes, and powers of two with their neighbours. They find bugs.
inline constexpr int64_t kBoundaryExtents[] = {1,  2,  3,  4, 5,  7,  8,  9,  13,  15,  16, 17,
                                               31, 32, 33, 0, 63, 64, 65, 97, 127, 128, 129};

}  // namespace fusebox::fuzz
