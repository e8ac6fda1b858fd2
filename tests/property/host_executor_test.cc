// Laws of the host executor: worker threads change neither results, counts nor findings; a finding exists exactly if
// two accesses are not ordered; checks do not change results.
#include <algorithm>
#include <random>

#include "tests/unit/replay/host_runner.h"

namespace fusebox {
namespace {

using testing::HostKernel;

// -- worker threads, on random kernels; some of them break a rule
struct Outcome {
  std::vector<std::vector<uint64_t>> memory;
  std::vector<std::vector<uint8_t>> written;
  HostResult result;
};

class RandomKernel {
 public:
  explicit RandomKernel(uint64_t seed) : random_(seed) {
    std::vector<float> values(kElements);
    for (float& v : values) v = static_cast<float>(static_cast<int>(random_() % 2001)) / 100 - 10;
    x_ = kernel_.input<float>("x", values);
    y_ = kernel_.output<float>("y", kElements);
    z_ = kernel_.output<float>("z", kElements);
    count_ = kernel_.scalar("n", kElements - static_cast<int64_t>(random_() % 3));
    shared_ = kernel_.shared(Dtype::kFloat, 32);
    thread_ = kernel_.thread_x();
    global_thread_ = kernel_.global_thread();
    values_ = {constant(kernel_.graph, Dtype::kFloat, from_double(Dtype::kFloat, 1.5)),
               kernel_.op(OpKind::kCast, {global_thread_}, Dtype::kFloat)};
    const ValueId inside = kernel_.less(global_thread_, count_);
    values_.push_back(kernel_.op(OpKind::kLoad, {x_, global_thread_, inside, {}}, Dtype::kFloat));
    arithmetic(4);
    exchange();
    loop();
    arithmetic(3);
    kernel_.effect(OpKind::kStore, {y_, place(), values_.back(), inside});
    if (random_() % 3 == 0)
      kernel_.effect(
          OpKind::kStore,
          {z_, global_thread_,
           kernel_.op(OpKind::kLoad, {random_() % 4 == 0 ? y_ : x_, global_thread_, inside, {}}, Dtype::kFloat),
           inside});
  }

  Outcome run(const HostOptions& options) {
    // Every run starts from the same memory.
    auto buffers = kernel_.buffers;
    Outcome o;
    o.result = kernel_.run({.grid = {kBlocks, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 128}, options);
    for (const auto& [name, b] : kernel_.buffers) {
      o.memory.push_back(b.storage);
      o.written.push_back(b.written);
    }
    kernel_.buffers = std::move(buffers);
    return o;
  }

 private:
  static constexpr int64_t kBlocks = 13, kElements = kBlocks * 32;

  ValueId any() { return values_[random_() % values_.size()]; }
  void arithmetic(int count) {
    constexpr std::array kinds = {OpKind::kAdd, OpKind::kMul,  OpKind::kSub, OpKind::kMaximum,
                                  OpKind::kExp, OpKind::kTanh, OpKind::kDiv, OpKind::kSilu};
    for (int o = 0; o < count; ++o) {
      const OpKind kind = kinds[random_() % kinds.size()];
      std::vector<ValueId> operands = {any()};
      if (row_of(kind).format->slot_count == 2) operands.push_back(any());
      values_.push_back(kernel_.op(kind, operands, Dtype::kFloat));
    }
  }
  void exchange() {
    kernel_.store(shared_, thread_, any());
    if (random_() % 5 != 0) kernel_.barrier();
    const ValueId other = kernel_.op(OpKind::kSub, {kernel_.index(31), thread_}, Dtype::kIndex);
    values_.push_back(kernel_.load(shared_, other));
    kernel_.barrier();
  }
  void loop() {
    const ValueId acc = kernel_.allocate(Dtype::kFloat, MemoryType::kLocal, kernel_.index(1));
    kernel_.store(acc, kernel_.index(0), any());
    const RegionId outer = kernel_.region;
    ValueId j;
    kernel_.begin_for(
        kernel_.index(0),
        random_() % 2 ? kernel_.index(3) : kernel_.op(OpKind::kMod, {thread_, kernel_.index(4)}, Dtype::kIndex),
        kernel_.index(1), j);
    if (random_() % 2)
      kernel_.begin_if(kernel_.op(OpKind::kLt, {any(), constant(kernel_.graph, Dtype::kFloat, {})}, Dtype::kBool));
    kernel_.store(acc, kernel_.index(0),
                  kernel_.op(OpKind::kAdd, {kernel_.load(acc, kernel_.index(0)), any()}, Dtype::kFloat));
    kernel_.region = outer;
    values_.push_back(kernel_.load(acc, kernel_.index(0)));
  }
  // The place to which a thread stores: its own or, now and then, a wrong one.
  ValueId place() {
    switch (random_() % 12) {
      case 0:
        return kernel_.op(OpKind::kDiv, {global_thread_, kernel_.index(2)}, Dtype::kIndex);  // two threads, one element
      case 1:
        return kernel_.add(global_thread_, kernel_.index(3));  // past the end
      case 2:
        return kernel_.op(OpKind::kMod, {global_thread_, kernel_.index(200)},
                          Dtype::kIndex);  // two blocks, one element
      case 3:
        return kernel_.op(OpKind::kSub, {kernel_.index(kElements - 1), global_thread_}, Dtype::kIndex);
      default:
        return global_thread_;
    }
  }

  std::mt19937_64 random_;
  HostKernel kernel_;
  ValueId x_, y_, z_, count_, shared_, thread_, global_thread_;
  std::vector<ValueId> values_;
};

TEST(HostExecutorLaws, WorkerThreadsChangeNothing) {
  int clean = 0, broken = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomKernel kernel(seed);
    const Outcome one = kernel.run({.threads = 1});
    (one.result.finding ? broken : clean) += 1;
    for (const int threads : {2, 3, 8, 64}) {
      const Outcome many = kernel.run({.threads = threads});
      ASSERT_EQ(many.result.finding.has_value(), one.result.finding.has_value()) << seed;
      if (one.result.finding) {
        EXPECT_EQ(many.result.finding->message(), one.result.finding->message()) << seed;
        EXPECT_EQ(many.result.finding->code, one.result.finding->code) << seed;
        continue;
      }
      EXPECT_EQ(many.memory, one.memory) << seed;
      EXPECT_EQ(many.written, one.written) << seed;
      EXPECT_EQ(many.result.thread_instructions, one.result.thread_instructions) << seed;
    }
  }
  EXPECT_GT(clean, 50);
  EXPECT_GT(broken, 50);
}

TEST(HostExecutorLaws, ChecksDoNotChangeResults) {
  HostOptions off;
  off.checks = {.unwritten = false, .races = false, .index_overflow = false};
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RandomKernel kernel(seed);
    const Outcome checked = kernel.run({}), unchecked = kernel.run(off);
    if (!checked.result.finding) {
      EXPECT_EQ(checked.memory, unchecked.memory) << seed;
    }
  }
}

// -- races: compares random accesses pairwise
struct Access {
  int64_t element;
  int block, thread, epoch, phase;
  bool is_store;
};

bool are_ordered(const Access& a, const Access& b) {
  if (a.element != b.element || (!a.is_store && !b.is_store)) return true;
  if (a.block == b.block && a.thread == b.thread) return true;
  if (a.phase != b.phase) return true;
  return a.block == b.block && a.epoch != b.epoch;
}

TEST(HostExecutorLaws, FindsARaceExactlyWhereTwoAccessesAreNotOrdered) {
  constexpr int kBlocks = 2, kThreads = 5, kElements = 40;
  int found = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    std::mt19937_64 random(seed);
    HostKernel k;
    const bool is_shared = seed % 4 == 0;
    const ValueId counters = k.input<uint32_t>("c", {0});
    const ValueId memory =
        is_shared ? k.shared(Dtype::kFloat, kElements) : k.input<float>("m", std::vector<float>(kElements, 1));
    const ValueId sink = k.output<float>("sink", kBlocks * kThreads * 8);
    const ValueId i = k.global_thread(), t = k.thread_x();
    std::vector<Access> accesses;
    int epoch = 0, phase = 0;
    if (is_shared) {
      // One thread first writes each element.
      for (int e = 0; e < kElements / kThreads; ++e)
        k.store(memory, k.add(t, k.index(e * kThreads)), constant(k.graph, Dtype::kFloat, {}));
      k.barrier();
      ++epoch;
    }
    const int steps = 2 + static_cast<int>(random() % 6);
    for (int s = 0; s < steps; ++s) {
      const uint64_t kind = random() % 8;
      if (kind == 0) {
        k.barrier();
        ++epoch;
        continue;
      }
      if (kind == 1 && seed % 3 == 0) {
        k.effect(OpKind::kGridBarrier, {counters});
        ++epoch;
        ++phase;
        continue;
      }
      // Mostly each thread's own element, shifted a little; sometimes one element for all.
      const int shift = static_cast<int>(random() % 3);
      std::vector<int64_t> table(kBlocks * kThreads);
      const bool is_one = random() % 10 == 0;
      for (size_t a = 0; a < table.size(); ++a) table[a] = is_one ? 39 : static_cast<int64_t>(a) * 3 + shift;
      if (random() % 3 == 0) table[random() % table.size()] = static_cast<int64_t>(random() % kElements);
      const bool is_store = kind < 5;
      ValueId at = k.load(k.input<int64_t>("table" + std::to_string(s), table, Dtype::kIndex), i);
      if (is_one) at = k.index(39);
      const int only =
          is_one && is_store ? static_cast<int>(random() % table.size()) : -1;  // one thread stores to one place
      const ValueId p = only < 0 ? ValueId() : k.op(OpKind::kEq, {i, k.index(only)}, Dtype::kBool);
      if (is_store)
        k.effect(OpKind::kStore, {memory, at, constant(k.graph, Dtype::kFloat, {}), p});
      else
        k.store(sink, k.add(k.mul(k.index(s), k.index(kBlocks * kThreads)), i),
                k.op(OpKind::kLoad, {memory, at, p, {}}, Dtype::kFloat));
      for (int a = 0; a < kBlocks * kThreads; ++a) {
        if (only >= 0 && a != only) continue;
        Access x{is_one ? 39 : table[static_cast<size_t>(a)], a / kThreads, a % kThreads, epoch, phase, is_store};
        if (is_shared) x.element += 1000 * x.block;  // a block's own element
        accesses.push_back(x);
      }
    }
    bool has_race = false;
    for (size_t a = 0; a < accesses.size(); ++a)
      for (size_t b = 0; b < a; ++b) has_race |= !are_ordered(accesses[a], accesses[b]);
    const HostResult r = k.run({.grid = {kBlocks, 1, 1}, .block = {kThreads, 1, 1}, .shared_bytes = 256},
                               {.threads = 1 + static_cast<int>(seed % 2)});
    ASSERT_EQ(r.finding.has_value(), has_race)
        << "seed " << seed << (r.finding ? ": " + r.finding->place() + " " + r.finding->message() : "");
    if (r.finding) {
      EXPECT_TRUE(r.finding->code == ErrorCode::kRace || r.finding->code == ErrorCode::kDoubleStore)
          << r.finding->message();
    }
    found += has_race;
  }
  EXPECT_GT(found, 500);
  EXPECT_LT(found, 3500);
}

}  // namespace
}  // namespace fusebox
