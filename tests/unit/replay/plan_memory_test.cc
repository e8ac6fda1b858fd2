// Plans in memory: made once for each signature however many threads ask, kept by bytes, and with a reason for each miss.
#include "replay/cache/plan_memory.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "passes/pipeline/signature.h"

namespace fusebox {
namespace {

const Graph& fusion() {
  static const Module m = parse_module(R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %y = exp %x
  output %y
})");
  return m.graphs[0];
}

struct Call {
  CompileOptions options;
  Bindings sizes;
  explicit Call(int64_t m, int64_t n, bool automatic = true) {
    options.inputs = {{.shape = {m, n}, .strides = {n, 1}, .align = 16}};
    if (automatic) options.device = default_device();
    sizes = bind_sizes(fusion(), options.inputs);
  }
  PlanRequest request(std::string target = "the host") const {
    return {.fusion = fusion(), .sizes = sizes, .options = options, .target = std::move(target)};
  }
  KnownPlan make() const { return {.compiled = std::make_shared<const Compiled>(compile(fusion(), sizes, options))}; }
};

TEST(PlanMemory, ManyThreadsMakeOnePlanOfASignature) {
  for (int round = 0; round < 20; ++round) {
    PlanMemory plans;
    std::atomic<int> made = 0, wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        // Two signatures, four threads each; sizes differ and have one class.
        const Call call(t % 2 ? 512 : 64, 100);
        const auto plan = plans.find_or_make(call.request(), [&] {
          ++made;
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          return call.make();
        });
        if (!serves(*plan->compiled, fusion(), call.sizes, call.options)) ++wrong;
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(made, 2);
    EXPECT_EQ(wrong, 0);
    const PlanMemory::Info info = plans.info();
    EXPECT_EQ(info.made, 2);
    EXPECT_EQ(info.hits, 6);
    EXPECT_EQ(info.kept, 2);
  }
}

TEST(PlanMemory, ThreadsThatWaitedForAFailureTryThemselves) {
  PlanMemory plans;
  const Call call(64, 100);
  std::atomic<int> tries = 0, failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      try {
        plans.find_or_make(call.request(), [&]() -> KnownPlan {
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          if (++tries <= 2) throw Error(ErrorCode::kOutOfMemory, "no memory");
          return call.make();
        });
      } catch (const Error&) {
        ++failures;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(failures, 2);
  EXPECT_EQ(plans.info().made, 1);
}

TEST(PlanMemory, EachMissSaysWhatDiffered) {
  std::vector<std::string> lines;
  PlanMemory logged({.log = [&](const std::string& line) { lines.push_back(line); }});
  const auto ask = [&](const Call& call, const std::string& target) {
    logged.find_or_make(call.request(target), [&] { return call.make(); });
  };
  ask(Call(64, 100), "the host");
  ask(Call(64, 100), "the host");
  ask(Call(64, 112), "the host");
  ask(Call(512, 112), "the host");
  ask(Call(512, 112), "GPU 0");
  Call unaligned(64, 100);
  unaligned.options.inputs[0].align = 4;
  ask(unaligned, "the host");
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "@f for the host: the first call",
                       "@f for the host: %x.1: divisible by 16, was 4",
                       "@f for the host: %x.0: up to 512, was up to 64",
                       "@f for GPU 0: for GPU 0, was for the host",
                       "@f for the host: %x.0: up to 64, was up to 512",
                   }));
  EXPECT_EQ(logged.info().recompiles.size(), 5u);
  EXPECT_EQ(logged.info().hits, 1);
}

TEST(PlanMemory, OneScheduleServesAllSizesUntilTheIndexWidthEnds) {
  PlanMemory plans;
  const auto ask = [&](const Call& call) { plans.find_or_make(call.request(), [&] { return call.make(); }); };
  ask(Call(64, 100, false));
  ask(Call(7, 1, false));
  ask(Call(1000, 333, false));
  EXPECT_EQ(plans.info().made, 1);
  ask(Call(int64_t{1} << 20, 1 << 14, false));
  EXPECT_EQ(plans.info().made, 2);
  EXPECT_EQ(plans.info().recompiles.back(), "the width of indices, was 32");
}

TEST(PlanMemory, PlansUsedLastStayWithinTheBytes) {
  const Call first(64, 100);
  const int64_t one = approximate_bytes(*first.make().compiled);
  EXPECT_GT(one, 1000);
  PlanMemory plans({.bytes = 3 * one + one / 2});
  const auto ask = [&](int64_t m) {
    const Call call(m, 100);
    plans.find_or_make(call.request(), [&] { return call.make(); });
  };
  for (const int64_t m : {64, 512, 4096, 32768}) ask(m);
  EXPECT_LE(plans.info().bytes, 3 * one + one / 2);
  EXPECT_EQ(plans.info().kept, 3);
  const int64_t made = plans.info().made;
  ask(4096), ask(512);
  EXPECT_EQ(plans.info().made, made) << "kept";
  ask(64);
  EXPECT_EQ(plans.info().made, made + 1) << "the one that was used first went";
  plans.clear();
  EXPECT_EQ(plans.info().kept, 0);
  EXPECT_EQ(plans.info().bytes, 0);
}

TEST(InputSignature, PrintsAndTellsClassesApart) {
  const Call call(40, 100);
  EXPECT_EQ(text(signature_of(fusion(), call.options)),
            "%x f32 [up to 40 by 8 stride by 4, up to 112 by 4 stride 1] aligned to 16\n");
  EXPECT_EQ(text(signature_of(fusion(), Call(40, 100, false).options)), "%x f32 [any any stride, any any stride]\n");
  EXPECT_EQ(difference(signature_of(fusion(), call.options), signature_of(fusion(), call.options)), "");
  InputSignature other = signature_of(fusion(), call.options);
  other.inputs[0].dtype = Dtype::kHalf;
  EXPECT_EQ(difference(other, signature_of(fusion(), call.options)), "%x: dtype f16, was f32");
  other = signature_of(fusion(), call.options);
  other.facts.push_back({"index width", "64"});
  EXPECT_EQ(difference(other, signature_of(fusion(), call.options)), "index width: 64, was not there");
  EXPECT_EQ(difference(signature_of(fusion(), call.options), other), "index width: not there, was 64");
}

}  // namespace
}  // namespace fusebox
