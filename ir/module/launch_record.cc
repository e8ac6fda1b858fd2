#include "ir/module/launch_record.h"

#include <algorithm>

#include "ir/table/op.h"

namespace fusebox {
namespace {

constexpr LaunchOpRow kRows[] = {
#define FUSEBOX_LAUNCH_OP(name, text, a, b, c, summary) \
  {LaunchOp::name, text, LaunchPart::a, LaunchPart::b, LaunchPart::c, summary},
#include "ir/module/launch_op_table.inc"
#undef FUSEBOX_LAUNCH_OP
};

constexpr size_t kDimensions = 7;    // grid, block, shared bytes
constexpr size_t kMostOperands = 3;  // of a scalar
constexpr uint32_t kMostRegisters = uint32_t{1} << 16;

std::string number(uint64_t n) { return std::to_string(n); }

// Checks one record. The first fault ends it.
class Checker {
 public:
  explicit Checker(const LaunchRecord& record) : r_(record) {
    for (const LaunchInput& in : r_.inputs)
      if (!in.is_scalar) ranks_.push_back(in.rank);
    for (const LaunchSlot& s : r_.allocated) ranks_.push_back(s.rank);
  }

  std::optional<std::string> run() {
    if (r_.registers > kMostRegisters) return "more registers than an instruction can name";
    for (size_t at = 0; at < r_.code.size();) {
      starts_.push_back(at);
      check_word(at);
      if (fault_) return fault_;
      at += 1 + words_behind(r_.code, at);
    }
    starts_.push_back(r_.code.size());
    for (const uint32_t target : targets_)
      require(std::ranges::binary_search(starts_, size_t{target}), r_.code.size(), "a jump leads to no instruction");
    return fault_;
  }

 private:
  void require(bool holds, size_t at, const std::string& what) {
    if (!holds && !fault_) fault_ = "word " + number(at) + ": " + what;
  }
  void check_register(size_t at, uint64_t r, Dtype dtype = Dtype::kIndex) {
    require(r + (is_complex(dtype) ? 1 : 0) < r_.registers, at, "there is no register " + number(r));
  }
  void check_slot(size_t at, uint64_t s) { require(s < ranks_.size(), at, "there is no tensor " + number(s)); }
  bool is_scalar(uint64_t i) const { return i < r_.inputs.size() && r_.inputs[i].is_scalar; }

  void check_part(size_t at, LaunchPart part, uint16_t n) {
    switch (part) {
      case LaunchPart::kNone:
        return require(n == 0, at, "an unused number is not 0");
      case LaunchPart::kSet:
      case LaunchPart::kRead:
        return check_register(at, n);
      case LaunchPart::kSlot:
        return check_slot(at, n);
      case LaunchPart::kKernel:
        return require(n < r_.kernels, at, "there is no kernel " + number(n));
      case LaunchPart::kScalar:
        return require(is_scalar(n), at, "argument " + number(n) + " is no scalar");
      case LaunchPart::kError:
        return require(n < r_.errors.size(), at, "there is no error " + number(n));
      case LaunchPart::kName:
        return require(n < r_.names.size(), at, "there is no name " + number(n));
      case LaunchPart::kNumber:
      case LaunchPart::kTarget:
        return;
    }
  }

  void check_operand(size_t at, bool may_be_tensor) {
    const uint64_t word = r_.code[at];
    const LaunchOperand o = unpack_operand(word);
    require((word & 0xff) < 3 && (word >> 8 & 0xff) < dtype_rows().size(), at, "this is no operand");
    if (fault_) return;
    switch (o.kind) {
      case LaunchOperand::Kind::kRegister:
        return check_register(at, o.at, o.dtype);
      case LaunchOperand::Kind::kTensor:
        require(may_be_tensor, at, "a number is wanted, not a tensor");
        return check_slot(at, o.at);
      case LaunchOperand::Kind::kOpen:
        return require(is_scalar(o.at), at, "argument " + number(o.at) + " is no scalar");
    }
  }
  void check_operands(size_t first, size_t count, bool may_be_tensors) {
    for (size_t i = first; i < first + count && !fault_; ++i) check_operand(i, may_be_tensors);
  }
  void check_registers(size_t first, size_t count) {
    for (size_t i = 0; i < count; ++i) check_register(first + i / 4, register_in(&r_.code[first], i));
  }

  void check_word(size_t at) {
    const LaunchWord w = unpack_word(r_.code[at]);
    require((r_.code[at] & 0xff) < std::size(kRows), at, "there is no such instruction");
    if (fault_) return;
    require(words_behind(r_.code, at) < r_.code.size() - at, at, "the code ends within an instruction");
    if (fault_) return;
    const LaunchOpRow& row = row_of(w.op);
    check_part(at, row.a, w.a);
    check_part(at, row.b, w.b);
    check_part(at, row.c, w.c);
    if (row.b == LaunchPart::kTarget) targets_.push_back(w.target());
    if (!fault_) check_more(at, w);
  }

  // The rules of single instructions, and the words behind them.
  void check_more(size_t at, const LaunchWord& w) {
    switch (w.op) {
      case LaunchOp::kScalarInput:
        return require(w.c < 2, at, "a number has two halves");
      case LaunchOp::kExtent:
      case LaunchOp::kStride:
        return require(w.c < ranks_[w.b], at, "the tensor has no axis " + number(w.c));
      case LaunchOp::kCompute:
        require(w.small < dtype_rows().size() && w.b < op_rows().size(), at, "there is no such dtype or op");
        if (!fault_) check_register(at, w.a, static_cast<Dtype>(w.small));
        require(words_behind(r_.code, at) <= 1 + kMostOperands, at, "a scalar has at most three operands");
        return check_operands(at + 2, words_behind(r_.code, at) - 1, false);
      case LaunchOp::kRequireLayout:
        for (size_t i = 1; i <= w.b && !fault_; ++i) {
          const uint64_t word = r_.code[at + i];
          const LaunchAxis axis = unpack_axis(word);
          require((word & 0xff) < 4 && axis.axis < ranks_[w.a] && axis.error < r_.errors.size(), at + i,
                  "this is no axis");
        }
        return;
      case LaunchOp::kAllocate:
        require(w.b == ranks_[w.a] && w.a >= ranks_.size() - r_.allocated.size() && w.small < 2, at,
                "only a tensor of the program's own is allocated, with its rank");
        return check_registers(at + 1, size_t{2} * w.b);
      case LaunchOp::kView:
        require(w.b == ranks_[w.a] && w.a >= ranks_.size() - r_.allocated.size() && w.a != w.c, at,
                "only a tensor of the program's own is a view of another one, with its rank");
        return check_registers(at + 1, size_t{2} * w.b + 1);
      case LaunchOp::kLaunch:
        check_registers(at + 1, kDimensions);
        return check_operands(at + 1 + words_of_registers(kDimensions), w.b, true);
      case LaunchOp::kCallAten:
        require(w.c <= w.b, at, "more arguments are filled than there are");
        return check_operands(at + 1, w.b, true);
      case LaunchOp::kOutput:
        return require(w.small < 2, at, "an output is stored over an input or not");
      case LaunchOp::kOutputScalar:
        require(w.small < dtype_rows().size(), at, "there is no such dtype");
        if (!fault_) check_register(at, w.a, static_cast<Dtype>(w.small));
        return;
      case LaunchOp::kConstant:
      case FUSEBOX_PLAIN_LAUNCH_OPS:
        return;
    }
  }

  const LaunchRecord& r_;
  std::vector<uint32_t> ranks_;  // by tensor
  std::vector<size_t> starts_;
  std::vector<uint32_t> targets_;
  std::optional<std::string> fault_;
};

std::string part_text(const LaunchRecord& r, LaunchPart part, uint16_t n) {
  switch (part) {
    case LaunchPart::kNone:
    case LaunchPart::kTarget:
      return {};
    case LaunchPart::kSet:
    case LaunchPart::kRead:
      return " r" + number(n);
    case LaunchPart::kSlot:
      return " t" + number(n);
    case LaunchPart::kKernel:
      return " k" + number(n);
    case LaunchPart::kScalar:
      return " argument " + number(n);
    case LaunchPart::kError:
      return " or " + (n < r.errors.size() ? code_text(r.errors[n].code) + " " + r.errors[n].place : "?");
    case LaunchPart::kName:
      return " " + (n < r.names.size() ? r.names[n] : "?");
    case LaunchPart::kNumber:
      return " " + number(n);
  }
  return {};
}

}  // namespace

std::span<const LaunchOpRow> launch_op_rows() { return kRows; }

size_t words_behind(std::span<const uint64_t> code, size_t at) {
  const LaunchWord w = unpack_word(code[at]);
  switch (w.op) {
    case LaunchOp::kConstant:
      return 1;
    case LaunchOp::kCompute:
      return 1 + (at + 1 < code.size() ? static_cast<size_t>(code[at + 1] & 0xff) : 0);
    case LaunchOp::kRequireLayout:
    case LaunchOp::kCallAten:
      return w.b;
    case LaunchOp::kAllocate:
      return words_of_registers(size_t{2} * w.b);
    case LaunchOp::kView:
      return words_of_registers(size_t{2} * w.b + 1);
    case LaunchOp::kLaunch:
      return words_of_registers(kDimensions) + w.b;
    case LaunchOp::kScalarInput:
    case LaunchOp::kExtent:
    case LaunchOp::kStride:
    case LaunchOp::kOutput:
    case LaunchOp::kOutputScalar:
    case FUSEBOX_PLAIN_LAUNCH_OPS:
      return 0;
  }
  return 0;
}

std::optional<std::string> objection(const LaunchRecord& record) { return Checker(record).run(); }

std::string text(const LaunchRecord& r) {
  std::string all;
  for (size_t at = 0; at < r.code.size();) {
    const LaunchWord w = unpack_word(r.code[at]);
    if (static_cast<size_t>(w.op) >= std::size(kRows)) return all + number(at) + " ?\n";
    const LaunchOpRow& row = row_of(w.op);
    all += number(at) + " " + std::string(row.text) + part_text(r, row.a, w.a) + part_text(r, row.b, w.b) +
           part_text(r, row.c, w.c);
    if (row.b == LaunchPart::kTarget) all += " " + number(w.target());
    const size_t more = std::min(words_behind(r.code, at), r.code.size() - at - 1);
    if (w.op == LaunchOp::kConstant && more == 1) all += " " + std::to_string(static_cast<int64_t>(r.code[at + 1]));
    if (w.op == LaunchOp::kAllocate || w.op == LaunchOp::kView || w.op == LaunchOp::kLaunch) {
      const size_t registers = w.op == LaunchOp::kLaunch ? kDimensions : size_t{2} * w.b + (w.op == LaunchOp::kView);
      for (size_t i = 0; i < registers && i / 4 < more; ++i) all += " r" + number(register_in(&r.code[at + 1], i));
    }
    if (w.op == LaunchOp::kLaunch || w.op == LaunchOp::kCompute || w.op == LaunchOp::kCallAten) {
      const size_t first = w.op == LaunchOp::kLaunch    ? words_of_registers(kDimensions)
                           : w.op == LaunchOp::kCompute ? 1
                                                        : 0;
      for (size_t i = first; i < more; ++i) {
        const LaunchOperand o = unpack_operand(r.code[at + 1 + i]);
        constexpr std::string_view kPrefix[] = {"r", "t", "argument "};
        all += i == first ? " (" : ", ";
        all += std::string(kPrefix[std::min<size_t>(static_cast<size_t>(o.kind), 2)]) + number(o.at);
      }
      all += more > first ? ")" : "";
    }
    all += "\n";
    at += 1 + more;
  }
  return all;
}

}  // namespace fusebox
