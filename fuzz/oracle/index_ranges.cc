#include "fuzz/oracle/index_ranges.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "ir/module/module.h"
#include "ir/text/parse.h"
#include "passes/host/index_range.h"

namespace fusebox::fuzz {
namespace {

using Wide = __int128;

constexpr int64_t kLimit = int64_t{1} << 31, kThreads = 3;

// One index of the kernel: a thread, a parameter, a loop, or an op of two earlier ones.
struct Line {
  enum class Kind : uint8_t { kThread, kParameter, kLoop, kOp } kind = Kind::kOp;
  std::string name, op;
  size_t a = 0, b = 0;                    // of an op
  int64_t start = 0, stop = 0, step = 1;  // of a loop
};

// A number near a limit of 32 bits, or a small one.
int64_t near_limit(RandomSource& random) {
  switch (random.below(4)) {
    case 0:
      return kLimit - random.between(0, 9);
    case 1:
      return kLimit / 2 + random.between(-2, 2);
    case 2:
      return kLimit / random.between(2, 9) + random.between(-2, 2);
    default:
      return random.between(1, 9);
  }
}

class RangeLaw {
 public:
  explicit RangeLaw(RandomSource& random) : random_(random) {
    parameter_ = near_limit(random_);
    lines_.push_back({.kind = Line::Kind::kThread, .name = "%t", .op = {}});
    lines_.push_back({.kind = Line::Kind::kParameter, .name = "%n", .op = {}});
    draw_ops(random_.below(3));
    draw_loop();
    draw_ops(random_.below(3));
  }

  std::string text() const {
    std::string result = "kernel @k index 32 {\n  %x = input i64[?] global\n  %n = input index\n";
    result += "  %t = thread_index on block.x\n";
    for (const Line& l : lines_) {
      if (l.kind == Line::Kind::kLoop)
        result += fmt::format("  for {}, {}, {} {{ index {}\n", l.start, l.stop, l.step, l.name);
      if (l.kind == Line::Kind::kOp)
        result += fmt::format("  {} = {} {}, {} : index\n", l.name, l.op, lines_[l.a].name, lines_[l.b].name);
    }
    return result + "  }\n}\nhost @h {\n  %a, %n = size\n  %x = input i64[%a] contiguity [false]\n" +
           fmt::format("  launch 1, 1, 1, {}, 1, 1, 0 with [%x, %n] name \"k\"\n}}\n", kThreads);
  }

  bool is_told_to_fit() const {
    const Module m = parse_module(text());
    const Graph& launch = m.graphs.at(1);
    Bindings known(launch.values.size());
    known[find_value(launch, "n")->index] = ConstantBits{static_cast<uint64_t>(parameter_), 0};
    return fits_in_32_bits(m.graphs[0], launch, known, {});
  }

  // The first index that a thread computes outside of 32 bits.
  std::string beyond() const {
    for (int64_t t = 0; t < kThreads; ++t) {
      std::vector<Wide> values(lines_.size());
      if (const std::string what = beyond(0, t, values); !what.empty()) return what;
    }
    return {};
  }
  int64_t parameter() const { return parameter_; }

 private:
  void draw_ops(size_t count) {
    constexpr std::string_view kOps[] = {"add", "sub", "mul", "minimum", "maximum", "add", "floor_div", "floor_mod"};
    for (; count > 0; --count) {
      Line l{.name = fmt::format("%v{}", lines_.size()), .op = std::string(random_.pick(kOps))};
      l.a = random_.below(lines_.size());
      // A divisor is the parameter, which is not 0.
      l.b = l.op.starts_with("floor") ? 1 : random_.below(lines_.size());
      lines_.push_back(l);
    }
  }

  // At most five iterations, the last of which often ends just below the limit.
  void draw_loop() {
    Line l{.kind = Line::Kind::kLoop, .name = "%f", .op = {}};
    l.stop = std::min(near_limit(random_), kLimit - 1);
    l.start = random_.one_in(3) ? l.stop - random_.between(-1, 9) : random_.between(0, 3);
    const int64_t length = std::max<int64_t>(l.stop - l.start, 1);
    l.step = std::min((length + 4) / 5 + (random_.one_in(2) ? random_.between(0, 3) : near_limit(random_)), kLimit - 1);
    lines_.push_back(l);
  }

  static Wide floor_div(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }

  static Wide value(const std::string& op, Wide a, Wide b) {
    if (op == "add") return a + b;
    if (op == "sub") return a - b;
    if (op == "mul") return a * b;
    if (op == "minimum") return std::min(a, b);
    if (op == "maximum") return std::max(a, b);
    return op == "floor_div" ? floor_div(a, b) : a - floor_div(a, b) * b;
  }

  static bool fits(Wide x) { return x >= -kLimit && x < kLimit; }

  std::string beyond(size_t at, int64_t thread, std::vector<Wide>& values) const {
    for (; at < lines_.size(); ++at) {
      const Line& l = lines_[at];
      if (l.kind == Line::Kind::kLoop) {
        Wide i = l.start;
        for (; i < l.stop; i += l.step) {
          values[at] = i;
          if (std::string what = beyond(at + 1, thread, values); !what.empty()) return what;
        }
        return fits(i) ? std::string() : l.name + " behind the last iteration";
      }
      values[at] = l.kind == Line::Kind::kThread      ? Wide{thread}
                   : l.kind == Line::Kind::kParameter ? Wide{parameter_}
                                                      : value(l.op, values[l.a], values[l.b]);
      if (!fits(values[at])) return l.name;
    }
    return {};
  }

  RandomSource& random_;
  std::vector<Line> lines_;
  int64_t parameter_ = 0;
};

}  // namespace

void check_index_ranges(OracleRun& run, RandomSource& random) {
  for (int i = 0; i < 4; ++i) {
    const RangeLaw law(random);
    const std::string beyond = law.beyond();
    if (beyond.empty() || !law.is_told_to_fit()) continue;
    run.report("algebra", "32 bits", "",
               fmt::format("{} leaves 32 bits with n = {}, and the host is told that all indices fit:\n{}", beyond,
                           law.parameter(), law.text()));
  }
}

}  // namespace fusebox::fuzz
