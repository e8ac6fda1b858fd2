#include "fuzz/targets/shared/memory_bound.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#define FUSEBOX_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FUSEBOX_ASAN 1
#endif
#endif

#ifdef FUSEBOX_ASAN
#include <sanitizer/allocator_interface.h>
#else
#include <malloc.h>
#include <new>
#endif

namespace {

// Per thread; a target runs on one.
thread_local bool counting = false;
thread_local int64_t live = 0, most = 0, limit = 0, input = 0;

void grow(size_t bytes) {
  if (!counting) return;
  live += static_cast<int64_t>(bytes);
  most = std::max(most, live);
  if (live <= limit) return;
  counting = false;
  std::fprintf(stderr, "memory: %lld bytes live at once for an input of %lld; the bound is %lld\n",
               static_cast<long long>(live), static_cast<long long>(input), static_cast<long long>(limit));
  std::abort();
}
void shrink(size_t bytes) {
  if (counting) live -= static_cast<int64_t>(bytes);
}

#ifdef FUSEBOX_ASAN
void on_malloc(const volatile void*, size_t bytes) { grow(bytes); }
void on_free(const volatile void* p) {
  if (counting && p) shrink(__sanitizer_get_allocated_size(p));
}
void install() { __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free); }
#else
void install() {}
#endif

}  // namespace

#ifndef FUSEBOX_ASAN
void* operator new(size_t bytes) {
  void* p = std::malloc(bytes ? bytes : 1);
  if (!p) throw std::bad_alloc();
  grow(malloc_usable_size(p));
  return p;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void operator delete(void* p) noexcept {
  if (!p) return;
  shrink(malloc_usable_size(p));
  std::free(p);
}
void operator delete[](void* p) noexcept { operator delete(p); }
void operator delete(void* p, size_t) noexcept { operator delete(p); }
void operator delete[](void* p, size_t) noexcept { operator delete(p); }
#endif

namespace fusebox::fuzz {

MemoryBound::MemoryBound(size_t input_bytes) {
  static const bool installed = (install(), true);
  (void)installed;
  live = most = 0;
  input = static_cast<int64_t>(input_bytes);
  limit = 64 * input + (int64_t{1} << 20);
  counting = true;
}
MemoryBound::~MemoryBound() { counting = false; }
int64_t MemoryBound::peak() { return most; }

}  // namespace fusebox::fuzz
