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
#include "replay/cache/cache_key.h"

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
  plans.store().clear();
  EXPECT_EQ(plans.info().kept, 0);
  EXPECT_EQ(plans.info().bytes, 0);
}

// A request for a program of its own, as a definition in Python makes it.
PlanRequest of_program(const Call& call, const std::shared_ptr<const PlanProgram>& program) {
  PlanRequest r = call.request();
  r.program = program;
  return r;
}
std::string bytes_of_program(const Call& call) {
  return key_bytes(program_key({.fusion = fusion(), .bindings = call.sizes, .options = call.options, .target = ""}));
}

TEST(PlanStore, EqualProgramsShareTheirPlans) {
  const auto store = std::make_shared<PlanStore>();
  const Call call(64, 100);
  PlanMemory first({.store = store}), second({.store = store}), other({.store = store});
  const auto ask = [&](PlanMemory& plans, const Call& c, const std::shared_ptr<const PlanProgram>& program) {
    return plans.find_or_make(of_program(c, program), [&] { return c.make(); });
  };
  const auto program = store->program(bytes_of_program(call));
  const auto made = ask(first, call, program);
  EXPECT_EQ(store->program(bytes_of_program(Call(7, 9))), program) << "sizes are no part of the program";
  EXPECT_EQ(ask(second, call, store->program(bytes_of_program(call))), made);
  EXPECT_EQ(second.info().made, 0);
  EXPECT_EQ(second.info().hits, 1);
  EXPECT_EQ(second.info().shared, 1);
  EXPECT_EQ(second.info().kept, 1);
  EXPECT_TRUE(second.info().recompiles.empty());
  ask(first, call, program);
  EXPECT_EQ(first.info().hits, 1);
  EXPECT_EQ(first.info().shared, 0) << "its own";
  const Call unfused(64, 100, false);
  const auto another = store->program(bytes_of_program(unfused));
  EXPECT_NE(another, program);
  EXPECT_NE(ask(other, unfused, another), made);
  EXPECT_EQ(other.info().recompiles, std::vector<std::string>{"the first call"});
  EXPECT_EQ(other.info().kept, 1) << "plans of other programs are not its own";
  EXPECT_EQ(first.info().kept, 1);
}

TEST(PlanStore, ManyThreadsOfManyMemoriesMakeOnePlan) {
  for (int round = 0; round < 20; ++round) {
    const auto store = std::make_shared<PlanStore>();
    std::atomic<int> made = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&] {
        const Call call(64, 100);
        PlanMemory plans({.store = store});
        const auto program = store->program(bytes_of_program(call));
        plans.find_or_make(of_program(call, program), [&] {
          ++made;
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          return call.make();
        });
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(made, 1);
  }
}

TEST(PlanStore, ImagesCountAndPlansOfAllProgramsStayWithinTheBytes) {
  const Call call(64, 100);
  const int64_t one = approximate_bytes(*call.make().compiled);
  const auto store = std::make_shared<PlanStore>(3 * one + one / 2);
  PlanMemory plans({.store = store}), others({.store = store});
  const auto program = store->program(bytes_of_program(call)), other = store->program("another program");
  const auto ask = [&](PlanMemory& memory, const std::shared_ptr<const PlanProgram>& p, int64_t m) {
    const Call c(m, 100);
    return memory.find_or_make(of_program(c, p), [&] { return c.make(); });
  };
  const auto first = ask(plans, program, 64);
  ask(plans, program, 512);
  ask(others, other, 64);
  EXPECT_EQ(plans.info().kept, 2);
  EXPECT_EQ(others.info().kept, 1);
  ask(plans, program, 64);  // used last, so another one goes
  KernelImage image;
  image.binary.resize(static_cast<size_t>(one));
  const int64_t before = plans.info().bytes;
  store->keep_images(*first, {image});
  ASSERT_TRUE(first->state->images.load());
  EXPECT_EQ(first->state->images.load()->size(), 1u);
  EXPECT_EQ(plans.info().kept, 1) << "the plan used least recently went";
  EXPECT_EQ(others.info().kept, 1);
  EXPECT_GT(plans.info().bytes, before / 2 + one / 2);
  store->keep_images(*first, {});
  EXPECT_EQ(first->state->images.load()->size(), 1u) << "kept once";
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
