#include "tests/support/epilogue_cases.h"

#include "ir/canonical/canonical.h"
#include "ir/text/parse.h"

namespace fusebox::test {
namespace {

class Maker {
 public:
  Maker(uint64_t seed, bool by_boundaries) : state_(seed * 2654435761u + 12345), by_boundaries_(by_boundaries) {}

  OpCase make(int number) {
    static constexpr Dtype kDtypes[] = {Dtype::kBfloat16, Dtype::kFloat, Dtype::kHalf};
    const Dtype dtype = kDtypes[number % 3];
    const std::string type(text(dtype)), compute = dtype == Dtype::kFloat || number / 3 % 4 == 3 ? type : "f32";
    const bool is_linear = below(2) == 0, has_batch = below(4) == 0;
    const int64_t m = extent(), n = extent(), k = below(8) == 0 ? 0 : 1 + below(70);
    case_ = {
        .name = {}, .kind = is_linear ? OpKind::kLinear : OpKind::kMatmul, .dtype = dtype, .fusion = {}, .inputs = {}};
    head_ = "fusion @f {\n  %m, %n, %k = size\n";
    body_.clear();
    const std::string extents = has_batch ? "2, %m, %k" : "%m, %k", rows = std::to_string(m) + ", " + std::to_string(k);
    input("x", type, extents, has_batch ? "2, " + rows : rows);
    const std::string last = std::to_string(n);
    if (is_linear)
      input("w", type, "%n, %k", last + ", " + std::to_string(k));
    else
      input("w", type, "%k, %n", std::to_string(k) + ", " + last);
    const bool has_own_bias = is_linear && below(2) == 0;
    if (has_own_bias) input("b", type, "%n", last);
    line("y", is_linear ? "linear %x, %w" + std::string(has_own_bias ? " bias %b" : "") : "matmul %x, %w");
    const bool is_wide = compute != type;
    // A value of 16 bits between two other parts is rounded, so only one of them stands before the activation.
    const bool rounds = compute != "f32";
    if (is_wide) line("f", "cast %y as f32");
    bool has_part = false;
    if (!has_own_bias && below(2) == 0) {
      static constexpr const char* kScales[] = {"0.5", "-1.5", "0.3", "3.0"};
      if (below(4) == 0) {
        head_ += "  %s = input " + compute + "\n";
        case_.inputs.push_back(parse_input_spec("s", (below(4) == 0 ? "0.0_" : "0.75_") + compute));
        line("p", "mul " + at_ + ", %s");
      } else {
        line("p", "mul " + at_ + ", " + kScales[below(4)] + "_" + compute);
      }
      has_part = true;
    }
    if (!has_own_bias && !(rounds && has_part) && below(3) != 0) bias(type, compute, has_batch, last);
    activation(number / 12, compute);
    // A cast up and down again is no epilogue.
    if (at_ == "%y" || (at_ == "%f" && !has_own_bias)) line("r", "relu " + at_);
    if (is_wide) line("z", "cast " + at_ + " as " + type);
    case_.name = "case " + std::to_string(number);
    case_.fusion = canonical_order(main_graph(parse_module(head_ + body_ + "  output " + at_ + "\n}")));
    return case_;
  }

 private:
  int64_t below(int64_t n) {
    state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
    return static_cast<int64_t>(state_ >> 11) % n;
  }
  int64_t extent() {
    constexpr int64_t kExtents[] = {1, 2, 3, 8, 16, 17, 31, 64, 0};
    return kExtents[below(below(4) == 0 ? 9 : 8)];
  }

  void input(const std::string& name, const std::string& type, const std::string& axes, const std::string& shape) {
    // They may lie in memory in any way.
    std::string contiguity = "false";
    for (char c : axes)
      if (c == ',') contiguity += ", false";
    head_ += "  %" + name + " = input " + type + "[" + axes + "] contiguity [" + contiguity + "]\n";
    const std::string values = by_boundaries_ && below(2) == 0 ? "boundary" : "normal";
    case_.inputs.push_back(
        parse_input_spec(name, type + "[" + shape + "] " + values + " seed " + std::to_string(1 + below(1000))));
  }
  void line(const std::string& name, const std::string& op) {
    body_ += "  %" + name + " = " + op + "\n";
    at_ = "%" + name;
  }

  void bias(const std::string& type, const std::string& compute, bool has_batch, const std::string& last) {
    const std::string before = at_;
    input("b", type, "%n", last);
    at_ = "%b";
    if (below(2) == 0) {
      if (compute != type) line("bf", "cast " + at_ + " as f32");
      line("bb", "broadcast " + at_ + (has_batch ? " mask [1, 1, 0]" : " mask [1, 0]"));
    } else {
      line("bb", "broadcast " + at_ + (has_batch ? " mask [1, 1, 0]" : " mask [1, 0]"));
      if (compute != type) line("bf", "cast " + at_ + " as f32");
    }
    line("a", below(2) == 0 ? "add " + at_ + ", " + before : "add " + before + ", " + at_);
  }

  void activation(int which, const std::string& compute) {
    if (which % 3 == 0) return line("r", "relu " + at_);
    if (which % 3 == 1 || compute != "f32") return;
    const std::string x = at_;
    line("x2", "mul " + x + ", " + x);
    line("x3", "mul %x2, " + x);
    line("c", "mul %x3, 0.044715_f32");
    line("in", "add " + x + ", %c");
    line("arg", "mul %in, 0.7978846_f32");
    line("t", "tanh %arg fast");
    line("t1", "add %t, 1.0_f32");
    line("h", "mul " + x + ", 0.5_f32");
    line("g", "mul %h, %t1");
  }

  uint64_t state_;
  const bool by_boundaries_;
  OpCase case_;
  std::string head_, body_, at_;
};

}  // namespace

std::vector<OpCase> epilogue_cases(int count, uint64_t seed, bool by_boundaries) {
  Maker maker(seed, by_boundaries);
  std::vector<OpCase> cases;
  for (int i = 0; i < count; ++i) cases.push_back(maker.make(i));
  return cases;
}

}  // namespace fusebox::test
