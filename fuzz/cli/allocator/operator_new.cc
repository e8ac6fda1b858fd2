// operator new and delete of the programs that run campaigns. Compiling a case makes and drops tens of thousands of
// small vectors, and malloc took a quarter of a campaign's time. These operators keep blocks of a few sizes in one free
// list per size. They never search or merge.
//
// Invariants: the thread that starts the program owns the pool. Other threads get memory from malloc; a pool block that
// they free goes onto a list, which the owner empties. A page holds blocks of one size. Larger requests go to malloc,
// and so do all once the pages are used up. All pages lie in one address range, which tells pool blocks from malloc's.
//
// Sanitizers have their own operators.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FUSEBOX_OWN_NEW 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define FUSEBOX_OWN_NEW 0
#endif
#endif
#ifndef FUSEBOX_OWN_NEW
#define FUSEBOX_OWN_NEW 1
#endif

#if FUSEBOX_OWN_NEW
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <sys/mman.h>

namespace {

// Blocks of class c have c granules; those of class 0 have one.
constexpr size_t kGranule = 16, kLargest = 2048, kClasses = kLargest / kGranule + 1;
constexpr size_t class_of_size(size_t bytes) { return (bytes + kGranule - 1) / kGranule; }
constexpr size_t bytes_of_class(size_t size_class) { return (size_class != 0 ? size_class : 1) * kGranule; }
constexpr size_t kPage = size_t{1} << 15, kRange = size_t{1} << 30;
// Pages become writable in stretches of this size, because only writable pages count against a memory limit.
constexpr size_t kStretch = size_t{1} << 20;

struct Block {
  Block* next;
};

// Zero before any constructor runs, and never destroyed: blocks are freed until the very end.
struct Pool {
  std::byte* begin;
  std::byte* end;
  std::byte* next_page;
  std::byte* writable;
  Block* free[kClasses];
  std::byte* fresh[kClasses];  // the unused part of the newest page
  std::byte* fresh_end[kClasses];
  std::atomic<Block*> returned;  // freed by other threads, of any size
  uint8_t class_of_page[kRange / kPage];
};
constinit Pool pool{};
constinit thread_local bool is_owner = false;
constinit bool has_owner = false;

bool is_ours(const void* p) { return p >= pool.begin && p < pool.end; }

size_t class_of(const void* p) {
  return pool.class_of_page[static_cast<size_t>(static_cast<const std::byte*>(p) - pool.begin) / kPage];
}

void keep(void* p) {
  auto* block = static_cast<Block*>(p);
  Block*& list = pool.free[class_of(p)];
  block->next = list;
  list = block;
}

// The first call comes from the constructor of a global object, so the thread that starts the program makes it.
bool take_ownership() {
  if (has_owner) return false;
  has_owner = true;
  void* range = ::mmap(nullptr, kRange, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return false;
  pool.begin = pool.next_page = pool.writable = static_cast<std::byte*>(range);
  pool.end = pool.begin + kRange;
  return is_owner = true;
}

bool add_page(size_t size_class) {
  if (pool.next_page == pool.writable) {
    if (pool.writable == pool.end || ::mprotect(pool.writable, kStretch, PROT_READ | PROT_WRITE) != 0) return false;
    pool.writable += kStretch;
  }
  pool.class_of_page[static_cast<size_t>(pool.next_page - pool.begin) / kPage] = static_cast<uint8_t>(size_class);
  pool.fresh[size_class] = pool.next_page;
  pool.next_page += kPage;
  const size_t bytes = bytes_of_class(size_class);
  pool.fresh_end[size_class] = pool.fresh[size_class] + kPage / bytes * bytes;
  return true;
}

// Returns nullptr if no page is left.
void* take_fresh(size_t size_class) {
  if (pool.returned.load(std::memory_order_relaxed) != nullptr) {
    for (Block* b = pool.returned.exchange(nullptr, std::memory_order_acquire); b != nullptr;) {
      Block* next = b->next;
      keep(b);
      b = next;
    }
    if (Block* b = pool.free[size_class]) {
      pool.free[size_class] = b->next;
      return b;
    }
  }
  if (pool.fresh[size_class] == pool.fresh_end[size_class] && !add_page(size_class)) return nullptr;
  void* block = pool.fresh[size_class];
  pool.fresh[size_class] += bytes_of_class(size_class);
  return block;
}

void* from_malloc(size_t bytes) {
  for (;;) {
    if (void* p = std::malloc(bytes != 0 ? bytes : 1)) return p;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

// Not inlined, so that the usual case saves no registers.
[[gnu::noinline]] void* new_block(size_t bytes) {
  if (bytes <= kLargest && (is_owner || take_ownership()))
    if (void* p = take_fresh(class_of_size(bytes))) return p;
  return from_malloc(bytes);
}

[[gnu::noinline]] void give_back(void* p) {
  if (!is_ours(p)) return std::free(p);
  auto* block = static_cast<Block*>(p);
  block->next = pool.returned.load(std::memory_order_relaxed);
  while (!pool.returned.compare_exchange_weak(block->next, block, std::memory_order_release)) {
  }
}

}  // namespace

void* operator new(size_t bytes) {
  if (bytes > kLargest || !is_owner) return new_block(bytes);
  Block*& list = pool.free[class_of_size(bytes)];
  Block* b = list;
  if (b == nullptr) return new_block(bytes);
  list = b->next;
  return b;
}

void operator delete(void* p) noexcept {
  if (is_ours(p) && is_owner) return keep(p);
  give_back(p);
}

void operator delete(void* p, size_t) noexcept { operator delete(p); }
#endif
