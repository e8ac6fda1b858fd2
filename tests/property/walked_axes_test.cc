// The law of short axes that each thread walks: a tensor along whose innermost axis the threads lie, and others that lie along a short
// axis. The kernels run on the host executor without a finding, and give what the reference gives.
#include <gtest/gtest.h>
#include <random>

#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "replay/data/input.h"
#include "replay/device/module_loader.h"
#include "replay/run/run.h"
#include "tests/support/setting.h"

namespace fusebox {
namespace {

// %x is [outer, m, n]; %t lies along the short axis m, %u too or not at all; %w has the columns alone.
std::string program(std::mt19937_64& rng) {
  const auto up_to = [&](int64_t most) { return static_cast<int64_t>(rng() % static_cast<uint64_t>(most)); };
  constexpr const char* kTypes[] = {"f32", "bf16", "f64", "i16", "i8", "f16", "c64"};
  const std::string dtype = kTypes[up_to(7)];
  const int64_t outer = up_to(3), m = 2 + up_to(16), n = 130 + up_to(400);
  const bool is_constant = up_to(3) == 0, has_u = up_to(2) == 0, has_w = up_to(2) == 0, over = up_to(4) == 0;
  const std::string front = outer > 0 ? "%o, " : "", number = outer > 0 ? std::to_string(outer + 1) + ", " : "";
  const std::string short_axis = is_constant ? std::to_string(m) : "%m", of_m = std::to_string(m) + "]",
                    of_n = std::to_string(n);
  const std::string wide = "[" + front + short_axis + ", %n]", turned = "[" + front + "%n, " + short_axis + "]";
  const std::string dims = outer > 0 ? " dims [0, 2, 1]\n" : " dims [1, 0]\n";
  const std::string random = dtype[0] == 'i' ? " integers -9 9 seed " : " normal seed ";
  std::string text = "fusion @f {\n  %n = size\n";
  if (!is_constant) text += "  %m = size\n";
  if (outer > 0) text += "  %o = size\n";
  text += "  %x = input " + dtype + wide + " contiguous\n  %t = input " + dtype + turned + " contiguous\n";
  text += "  %tt = permute %t" + dims + "  %y0 = add %x, %tt\n";
  std::string inputs = "inputs @f host {\n  %x = " + dtype + "[" + number + std::to_string(m) + ", " + of_n + "]" +
                       random + "1\n  %t = " + dtype + "[" + number + of_n + ", " + of_m + random + "2\n";
  std::string last = "%y0";
  if (has_u) {
    text +=
        "  %u = input " + dtype + turned + " contiguous\n  %ut = permute %u" + dims + "  %y1 = sub " + last + ", %ut\n";
    inputs += "  %u = " + dtype + "[" + number + of_n + ", " + of_m + random + "3\n";
    last = "%y1";
  }
  if (has_w) {
    text += "  %w = input " + dtype + "[%n] contiguous\n  %wb = broadcast %w mask [" + (outer > 0 ? "1, " : "") +
            "1, 0]\n  %y2 = mul " + last + ", %wb\n";
    inputs += "  %w = " + dtype + "[" + of_n + "]" + random + "4\n";
    last = "%y2";
  }
  text += "  %y = neg " + last + "\n  output %y" + (over ? " alias %x\n" : "\n");
  return text + "}\n" + inputs + "}\n";
}

TEST(WalkedAxes, GiveWhatTheReferenceGives) {
  if (!find_aten()) GTEST_SKIP() << "the reference is not built";
  RunOptions options;
  options.device = default_device();
  options.device->multiprocessors = 1;  // which few threads fill
  options.keep_sources = false;
  const uint64_t first = testing::setting("FUSEBOX_FIRST_SEED", 1), count = testing::setting("FUSEBOX_WALKS", 300);
  int walked = 0, in_vectors = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::mt19937_64 rng(seed);
    const Module m = parse_module(program(rng));
    std::vector<Argument> inputs;
    for (const InputSpec& s : m.input_specs[0].specs) inputs.push_back(make_argument(s));
    const fusebox::Run run = run_program(m, inputs, options);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(m) + print_steps(run.steps));
    ASSERT_FALSE(run.failure) << run.failure->message << " " << run.failure->place;
    for (const CheckedOutput& out : check_outputs(run, inputs))
      ASSERT_TRUE(out.comparison.ok) << out.comparison.message(out.name);
    const Heuristics& h = run.compiled.automatic->decisions.at(0).heuristics;
    if (!h.has("walk")) continue;
    ++walked;
    in_vectors += h.number("vector") > 1 ? 1 : 0;
  }
  std::printf("  %d walked, %d of them in vectors\n", walked, in_vectors);
  if (count < 300) return;
  EXPECT_GE(walked, 100);
  EXPECT_GE(in_vectors, 20);
}

}  // namespace
}  // namespace fusebox
