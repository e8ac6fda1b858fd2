// Memory access beyond `buffer[index]`: vectors of up to 16 bytes and cache operators. An address must be aligned to
// the bytes that are accessed.
//
//   copy_vector<4>(to, from) moves 4 elements at once;  load<Cache::kStreaming>(from);  store<Cache::kGlobal>(to,
//   value)
#ifndef FUSEBOX_MEMORY_CUH
#define FUSEBOX_MEMORY_CUH

#include "types.cuh"

enum class Cache { kDefault, kAllLevels, kStreaming, kGlobal };

// Registers of the built-in loads and stores, by size.
template <int bytes>
struct Word;
template <>
struct Word<1> {
  using type = unsigned char;
};
template <>
struct Word<2> {
  using type = unsigned short;
};
template <>
struct Word<4> {
  using type = unsigned int;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};

template <Cache cache, class W>
__device__ W load_word(const W* from) {
  if constexpr (cache == Cache::kStreaming) {
    return __ldcs(from);
  } else if constexpr (cache == Cache::kGlobal) {
    return __ldcg(from);
  } else if constexpr (cache == Cache::kAllLevels) {
    return __ldca(from);
  } else {
    return *from;
  }
}
template <Cache cache, class W>
__device__ void store_word(W* to, W value) {
  if constexpr (cache == Cache::kStreaming) {
    __stcs(to, value);
  } else if constexpr (cache == Cache::kGlobal) {
    __stcg(to, value);
  } else if constexpr (cache == Cache::kAllLevels) {
    __stwb(to, value);
  } else {
    *to = value;
  }
}

// Reads of global memory; buffers in other memory take Cache::kDefault.
template <Cache cache, class T>
__device__ T load(const T* from) {
  using W = typename Word<sizeof(T)>::type;
  union {
    W word;
    T value;
  } both = {load_word<cache>(reinterpret_cast<const W*>(from))};
  return both.value;
}
template <Cache cache, class T>
__device__ void store(T* to, T value) {
  using W = typename Word<sizeof(T)>::type;
  union {
    T value;
    W word;
  } both = {value};
  store_word<cache>(reinterpret_cast<W*>(to), both.word);
}

template <int width, Cache reading = Cache::kDefault, Cache writing = Cache::kDefault, class T>
__device__ void copy_vector(T* to, const T* from) {
  using W = typename Word<width * sizeof(T)>::type;
  store_word<writing>(reinterpret_cast<W*>(to), load_word<reading>(reinterpret_cast<const W*>(from)));
}

// An element of an array of 16-bit floats that a thread fills by `copy_vector` alone. It is read from the word that holds
// it: a conversion to float is then one shift or mask, where the compiler would first take the half out of the word.
template <class T>
__device__ T element(const T* array, int64_t index) {
  const uint32_t word = reinterpret_cast<const unsigned int*>(array)[index / 2];
  return T::from_bits(uint16_t(index % 2 == 0 ? word : word >> 16));
}

// Keeps the loads before it in front of what follows. The assembler saves registers by moving a load down to its use,
// behind a long computation, and the warp then waits twice. It does not move a load out of an `if`, and the compiler
// joins no two of them over this.
__device__ inline void issue_loads() { asm volatile("" ::: "memory"); }

#endif
