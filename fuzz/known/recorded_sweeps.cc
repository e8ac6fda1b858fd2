// Ops and steps with drawn operands.
#include <fmt/format.h>
#include <map>

#include "fuzz/base/random_source.h"
#include "fuzz/known/outcome_list.h"
#include "fuzz/known/recorded.h"
#include "ir/infer/infer.h"
#include "ir/step/apply.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "ir/token/literal.h"
#include "ir/verify/verify.h"

namespace fusebox::fuzz {
namespace {

constexpr int kOfFewOperands = 32, kOfMany = 64, kOfSteps = 72;

// A row's numbers come from its name, so that a new row does not change those of others.
uint64_t seed_of(std::string_view text) {
  uint64_t seed = 1;
  for (const char c : text) seed = seed * 131 + static_cast<uint8_t>(c);
  return seed;
}

AttrValue drawn_value(RandomSource& random, AttrKey key) {
  constexpr int64_t kNumbers[] = {0, 1, -1, 2, 3, 4, 7, -3, 32};
  const AttrKind kind = row_of(key).kind;
  switch (kind) {
    case AttrKind::kInt:
      return random.pick(kNumbers);
    case AttrKind::kBool:
      return int64_t{random.one_in(4) ? 0 : 1};
    case AttrKind::kDtype:
      return static_cast<Dtype>(random.below(dtype_rows().size()));
    case AttrKind::kString:
      return std::string(random.one_in(2) ? "a" : "");
    case AttrKind::kInts: {
      std::vector<int64_t> list(random.below(4));
      const bool is_mask = key == AttrKey::kMask, names_rows = key == AttrKey::kThreads || key == AttrKey::kContiguity;
      for (size_t i = 0; i < list.size(); ++i)
        list[i] = is_mask ? random.between(0, 1)
                          : (names_rows ? random.between(0, 2)
                                        : (random.one_in(2) ? static_cast<int64_t>(i) : random.between(-3, 3)));
      if (random.one_in(2) && !is_mask) random.shuffle(list);
      return list;
    }
    default:  // any other: an enumerator
      return static_cast<int64_t>(random.below(enum_texts_of(kind).size()));
  }
}

template <class Row>
Attrs drawn_attrs(RandomSource& random, const Row& row) {
  Attrs attrs;
  for (const AttrKey key : row.attrs)
    if (!random.one_in(key == AttrKey::kWidth ? 2 : 4)) attrs.set(key, drawn_value(random, key));
  if (random.one_in(32)) {
    const AttrKey key = attr_rows()[random.below(attr_rows().size())].key;
    attrs.set(key, drawn_value(random, key));
  }
  return attrs;
}

std::string text_of(const Attrs& attrs) {
  std::string out;
  for (const Attr& a : attrs.list()) out += fmt::format(" {}", row_of(a.key).text);
  return out;
}

class OpMaker {
 public:
  OpMaker(const Graph& g, uint64_t seed) : g_(g), random_(seed) {
    for (size_t i = 0; i < g.values.size(); ++i)
      (g.is_tensor(ValueId(i))                  ? tensors_
       : g.values[i].kind == ValueKind::kScalar ? scalars_
                                                : handles_)
          .emplace_back(i);
  }

  std::vector<ValueId> operands(const FormatRow& format) {
    std::vector<ValueId> all;
    const size_t of_list = random_.below(4);
    for (const Slot& slot : format.all()) {
      const size_t count = !slot.list ? 1 : (random_.one_in(16) ? random_.below(4) : of_list);
      for (size_t i = 0; i < count; ++i) all.push_back(operand(slot));
    }
    if (random_.one_in(32) && !all.empty()) all.pop_back();
    return all;
  }
  RandomSource& random() { return random_; }

 private:
  ValueId operand(const Slot& slot) {
    if (random_.one_in(slot.optional ? 2 : 48)) return {};
    if (last_ && random_.one_in(4) && fits(slot, last_)) return last_;
    const bool is_tensor = slot.kind == 't' || (slot.kind != 's' && !random_.one_in(4));
    const auto& usual = random_.one_in(24) ? handles_ : (is_tensor != random_.one_in(24) ? tensors_ : scalars_);
    if (usual.empty()) return ValueId(random_.below(g_.values.size()));
    return last_ = random_.pick(usual);
  }
  bool fits(const Slot& slot, ValueId v) const {
    return slot.kind == 't' ? g_.is_tensor(v) : slot.kind != 's' || !g_.is_tensor(v);
  }

  const Graph& g_;
  RandomSource random_;
  ValueId last_;
  std::vector<ValueId> tensors_, scalars_, handles_;
};

std::string call_text(const Graph& g, const OpRow& row, const std::vector<ValueId>& operands, const Attrs& attrs) {
  std::string what(row.text);
  for (const ValueId v : operands) what += " " + (v ? print_value(g, v) : "_");
  return what + text_of(attrs);
}

class StepMaker {
 public:
  StepMaker(RandomSource& random) : random_(random) {}

  Step step(const Graph& g, const StepRow& row) {
    g_ = &g;
    Step step{.kind = row.kind, .operands = {}, .results = {}, .attrs = drawn_attrs(random_, row)};
    step.attrs.erase(AttrKey::kSegment);
    if (row.kind == StepKind::kConcretize && random_.one_in(2))
      step.attrs.set_enum(AttrKey::kIterType, random_.one_in(2) ? IterType::kIteration : IterType::kBroadcast);
    if (!stays_ || random_.one_in(4)) named_.clear();
    stays_ = false;
    const size_t of_list = random_.below(3);
    for (const Slot& slot : row.format->all()) {
      const size_t count = !slot.list ? 1 : (random_.one_in(8) ? random_.below(4) : of_list);
      for (size_t i = 0; i < count; ++i) step.operands.push_back(operand(slot));
    }
    size_t results = 0;
    for (const char c : row.results) results += c == 'd' || c == 't' ? 1 : 0;
    if (row.results.find('*') != std::string_view::npos) results = 1 + random_.below(2);
    if (random_.one_in(24)) results = random_.below(4);
    for (size_t i = 0; i < results; ++i)
      step.results.push_back(random_.one_in(24) ? (random_.one_in(2) ? "" : "y") : fmt::format("n{}", ++names_));
    return step;
  }

  // The next step is likely about the tensor of the last one.
  void stay() { stays_ = true; }

 private:
  std::string tensor() {
    std::vector<std::string> names;
    for (const Tensor& t : g_->tensors) names.push_back((*g_)[t.value].name);
    if (!named_.empty() && random_.one_in(3)) return named_;
    return random_.one_in(24) ? "none" : named_ = random_.pick(names);
  }
  StepOperand domain() {
    const bool again = !named_.empty() && !random_.one_in(4);
    const std::string name = again ? named_ : tensor();
    const std::optional<ValueId> v = find_value(*g_, name);
    if (!v || !g_->is_tensor(*v)) return StepOperand::domain_of(name, "i0");
    const Tensor& t = g_->tensor_of(*v);
    std::vector<DomainId> domains = random_.one_in(6) ? t.logical : loop_of(t);
    if (domains.empty() || random_.one_in(24)) return StepOperand::domain_of(name, random_.one_in(2) ? "i9" : "");
    return StepOperand::domain_of(name, (*g_)[random_.pick(domains)].name);
  }
  StepOperand operand(const Slot& slot) {
    constexpr int64_t kNumbers[] = {1, 2, 3, 4, 32, 0, -1, 128, 5};
    if (slot.optional && random_.one_in(2)) return StepOperand::number(0);
    if (random_.one_in(40)) return StepOperand::number(random_.pick(kNumbers));
    if (slot.kind == 'd') return domain();
    if (slot.kind == 't' || slot.kind == 'v') return StepOperand::of(tensor());
    std::vector<std::string> scalars;
    for (const Value& v : g_->values)
      if (v.kind == ValueKind::kScalar && !v.name.empty()) scalars.push_back(v.name);
    if (random_.one_in(3) && !scalars.empty()) return StepOperand::of(random_.pick(scalars));
    return random_.one_in(24) ? StepOperand::of(tensor()) : StepOperand::number(random_.pick(kNumbers));
  }

  RandomSource& random_;
  const Graph* g_ = nullptr;
  std::string named_;
  bool stays_ = false;
  int names_ = 0;
};

// The graph with some of its loops split, merged, put in another order or made parallel.
Graph transformed(const Graph& g, StepMaker& maker, RandomSource& random) {
  constexpr StepKind kKinds[] = {StepKind::kSplit,   StepKind::kSplit,   StepKind::kMerge,      StepKind::kReorder,
                                 StepKind::kSwizzle, StepKind::kSplit,   StepKind::kResize,     StepKind::kMerge,
                                 StepKind::kSplit,   StepKind::kReorder, StepKind::kParallelize};
  Graph result = g;
  for (size_t left = random.below(6); left > 0; --left)
    if (const Step step = maker.step(result, row_of(random.pick(kKinds))); is_applicable(result, step)) {
      maker.stay();
      apply(result, step);
    }
  return result;
}

}  // namespace

std::string recorded_ops(const Graph& g) {
  OutcomeList all;
  std::string rows;
  for (const OpRow& row : op_rows()) {
    if (!row.at(g.level) || row.kind == OpKind::kInput) continue;
    OpMaker maker(g, seed_of(row.text));
    RandomSource& random = maker.random();
    Checksum checksum;
    const int count = row.format->slot_count < 2 ? kOfFewOperands : kOfMany;
    int accepted = 0;
    for (int i = 0; i < count; ++i) {
      const std::vector<ValueId> operands = maker.operands(*row.format);
      const Attrs attrs = drawn_attrs(random, row);
      std::optional<Dtype> declared;
      if (random.one_in(6) || row.kind == OpKind::kAllocate || row.kind == OpKind::kAllocateTensor)
        declared = static_cast<Dtype>(random.below(dtype_rows().size()));
      accepted += all.add(
          call_text(g, row, operands, attrs),
          [&] {
            Graph copy = g;
            const OpId op = add_op(copy, Graph::body(), row.kind, operands, attrs, {}, declared);
            std::string result = print_op(copy, op);
            for (const ValueId v : copy[op].results)
              if (copy.is_tensor(v))
                for (const DomainId d : copy.tensor_of(v).logical)
                  result += fmt::format(" {}", text(copy[d].iter_type));
            checksum.add(result);
            if (const std::optional<Error> e = find_error(copy))
              result += fmt::format(" but {} {}", e->place, e->what());
            return result;
          },
          row.text);
    }
    rows += fmt::format("{}: {} of {}, checksum {}\n", row.text, accepted, count, checksum.text());
  }
  return rows + "\n" + all.text();
}

std::string recorded_steps(const Graph& g) {
  OutcomeList all;
  std::string rows;
  for (const StepRow& row : step_rows()) {
    RandomSource random(seed_of(row.text));
    StepMaker maker(random);
    Checksum checksum;
    int accepted = 0;
    Graph before = g;
    for (int i = 0; i < kOfSteps; ++i) {
      if (i % 6 == 0) before = transformed(g, maker, random);
      const Step step = maker.step(before, row);
      Graph after = before;
      const bool is_applied = all.add(print(step), [&] {
        apply(after, step);
        std::string result = print(after);
        checksum.add(result);
        if (const std::optional<Error> e = find_error(after)) result += fmt::format(" but {} {}", e->place, e->what());
        return result;
      });
      accepted += is_applied;
      if (is_applied) before = std::move(after);
    }
    rows += fmt::format("{}: {} of {}, checksum {}\n", row.text, accepted, kOfSteps, checksum.text());
  }
  return rows + "\n" + all.text();
}

}  // namespace fusebox::fuzz
