// Law: a step that `inapplicable` accepts applies, leaves a graph that verifies and round-trips as text, and makes the
// names it lists. A step that it refuses has a code 3xx; `apply` refuses it with the same code and place and changes
// nothing. After deleting one step from a list, each other step still applies or is refused in this way.
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "ir/domain/domain.h"
#include "ir/module/step.h"
#include "ir/step/apply.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"

namespace fusebox {
namespace {

// Families of programs: symbolic sizes, and axes of the boundary extents 1 and a prime.
constexpr std::string_view kPrograms[] = {
    R"(fusion @chain {
  %m, %n = size
  %a = input f32[%m, %n] contiguous
  %b = input bf16[%m, %n] contiguous
  %t = mul %a, %b
  %u = exp %t
  %v = add %u, %a
  %w = neg %t
  %y = sub %v, %w
  output %y
  output %u
})",
    R"(fusion @normalize {
  %m, %n = size
  %x = input bf16[%m, %n] contiguous
  %w = input f32[%n] contiguous
  %f = cast %x as f32
  %s = sum %f over [1]
  %b = broadcast %s mask [0, 1]
  %d = sub %f, %b
  %q = mul %d, %d
  %r = max %q over [1]
  %rb = broadcast %r mask [0, 1]
  %e = truediv %d, %rb
  %wb = broadcast %w mask [1, 0]
  %y = mul %e, %wb
  output %y
})",
    R"(fusion @moments {
  %m, %n = size
  %x = input f32[%m, 7, %n] contiguous
  %avg, %var, %count = welford %x over [0, 2]
  %ab = broadcast %avg mask [1, 0, 1]
  %c = sub %x, %ab
  %v = add %var, 1.0
  %vb = broadcast %v mask [1, 0, 1]
  %y = truediv %c, %vb
  output %y
  output %count
})",
    R"(fusion @columns {
  %m, %n = size
  %x = input i32[%m, %n] contiguous
  %p = prod %x over [0]
  %s = sum %x over [0, 1]
  %k = sum %x over [0]
  %y = add %k, %p
  output %y
  output %s
})",
    R"(fusion @reshaped {
  %m = size
  %x = input f32[%m, 6] contiguous
  %c = exp %x
  %r = reshape %c to [%m, 2, 3]
  %p = permute %r dims [1, 0, 2]
  %q = neg %p
  %s = sum %q over [0]
  %y = add %s, %s
  output %y
})",
    R"(fusion @padded {
  %n = size
  %x = input f32[%n, 13] contiguous
  %a = relu %x
  %b = slice %a from [0, 2] to [%n, 9] by [1, 1]
  %c = pad %b by [2, 4]
  %d = cat [%c, %x] axis 0
  %y = neg %d
  output %y
  output %a
})",
    R"(fusion @indexed {
  %m, %n, %k = size
  %x = input f32[%m, %n] contiguous
  %i = input i64[%k] contiguous
  %j = input index
  %e = exp %x
  %g = index_select %e, %i axis 0
  %s = select %e, %j axis 0
  %sb = broadcast_in_dim %s to [%k, %n] dims [1]
  %y = add %g, %sb
  output %y
})",
    R"(fusion @expanded {
  %m, %n = size
  %x = input f32[%n] contiguous
  %a = exp %x
  %e = expand %a to [%m]
  %f = broadcast_in_dim %x to [3, %m] dims [1]
  %y = neg %e
  %z = neg %f
  output %y
  output %z
})",
    R"(fusion @regrouped {
  %m, %n, %k, %l = size
  %x = input f32[%m, %n] contiguous
  %a = exp %x
  %r = reshape %a to [%k, %l]
  %y = neg %r
  output %y
})",
    R"(fusion @unit {
  %x = input f32[1, 5] contiguous
  %q = squeeze %x over [0]
  %a = exp %q
  %b = broadcast %a mask [0, 1]
  %y = add %b, %b
  output %y
})",
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(random_() % n); }
  bool chance(size_t in) { return below(in) == 0; }

  Step step(const Graph& g) {
    Step s;
    s.kind = static_cast<StepKind>(below(step_rows().size()));
    const StepRow& row = row_of(s.kind);
    subject_ = tensor(g);
    for (const Slot& slot : row.format->all()) {
      const size_t count = slot.list ? below(4) : 1;
      for (size_t i = 0; i < count; ++i) s.operands.push_back(operand(g, slot, s.operands.empty()));
    }
    const bool tensors = row.results.starts_with('t');
    const OpId def = find_value(g, subject_) ? g[*find_value(g, subject_)].def : OpId();
    size_t results =
        row.results.empty() ? 0 : static_cast<size_t>(std::count(row.results.begin(), row.results.end(), ',')) + 1;
    if (row.results.find('*') != std::string_view::npos) results = def ? g[def].results.size() : 1;
    for (size_t i = 0; i < results; ++i) s.results.push_back(name(tensors ? "n" : "d"));
    // The name of a segment says nothing to one graph.
    for (AttrKey key : row.attrs)
      if (key != AttrKey::kSegment && !chance(4)) set_attr(g, s, key);
    if (chance(12)) spoil(s);
    return s;
  }

 private:
  std::string name(std::string_view letter) {
    return chance(20) ? "i0" : std::string(letter) + std::to_string(chance(10) ? below(3) : next_name_++);
  }

  std::string tensor(const Graph& g) {
    std::vector<std::string> names;
    for (OpId op : ops_in_order(g))
      for (ValueId v : g[op].results)
        if (g.is_tensor(v)) names.push_back(g[v].name);
    return chance(25) || names.empty() ? std::string("nowhere") : names[below(names.size())];
  }

  std::string domain(const Graph& g, const std::string& of) {
    const auto v = find_value(g, of);
    if (!v || !g.is_tensor(*v) || chance(25)) return "i" + std::to_string(below(3));
    const Tensor& t = g.tensor_of(*v);
    const auto& list = chance(8) ? root_of(t) : chance(8) ? t.logical : loop_of(t);
    return list.empty() ? "i0" : g[list[below(list.size())]].name;
  }

  StepOperand operand(const Graph& g, const Slot& slot, bool first) {
    const bool other = !first && slot.kind == 't';
    const std::string of = other || chance(15) ? tensor(g) : subject_;
    if (slot.kind == 'd') return slot.keyword == "like" ? like(g) : StepOperand::domain_of(of, domain(g, of));
    if (slot.kind != 'x') return StepOperand::of(of);
    if (chance(5)) return StepOperand::of(chance(2) ? "n" : "m");
    static constexpr int64_t kNumbers[] = {1, 2, 3, 4, 5, 7, 8, 32, 128, 0, -1, -2};
    return StepOperand::number(kNumbers[below(std::size(kNumbers))]);
  }

  StepOperand like(const Graph& g) {
    const std::string of = tensor(g);
    return StepOperand::domain_of(of, domain(g, of));
  }

  void set_attr(const Graph& g, Step& s, AttrKey key) {
    const auto texts = enum_texts_of(row_of(key).kind);
    if (!texts.empty()) return s.attrs.set(key, static_cast<int64_t>(below(texts.size())));
    switch (row_of(key).kind) {
      case AttrKind::kBool:
        if (chance(2)) s.attrs.set_flag(key);
        return;
      case AttrKind::kInt:
        return s.attrs.set(key, static_cast<int64_t>(below(5)));
      case AttrKind::kString:
        return s.attrs.set(key, std::string("anything"));
      case AttrKind::kInts: {
        std::vector<int64_t> list;
        const auto v = find_value(g, subject_);
        // Usually as many as there are domains.
        const size_t count = key == AttrKey::kContiguity   ? s.operands.size() - 1
                             : key == AttrKey::kOrder && v ? 2
                                                           : below(3);
        for (size_t i = 0; i < count; ++i) list.push_back(key == AttrKey::kOrder ? 2 : static_cast<int64_t>(below(4)));
        return s.attrs.set(key, std::move(list));
      }
      default:  // any other: enumerators are set above, and a dtype is an attribute of no step
        return;
    }
  }

  // Nonsense that no text can express.
  void spoil(Step& s) {
    switch (below(5)) {
      case 0:
        s.operands.push_back(StepOperand::number(3));
        break;
      case 1:
        s.operands.clear();
        break;
      case 2:
        s.results.push_back("extra");
        break;
      case 3:
        s.attrs.set(AttrKey::kParallel, int64_t{200});
        break;
      default:
        if (!s.operands.empty()) s.operands[below(s.operands.size())] = StepOperand::domain_of("y", "i1");
    }
  }

  std::mt19937_64 random_;
  std::string subject_;
  size_t next_name_ = 0;
};

struct Outcome {
  std::vector<size_t> accepted = std::vector<size_t>(step_rows().size());
  std::vector<size_t> refused = std::vector<size_t>(step_rows().size());
};

bool makes_its_results(const Graph& g, const Step& s) {
  const bool tensors = row_of(s.kind).results.starts_with('t');
  for (const std::string& name : s.results) {
    const auto v = find_value(g, tensors ? name : s.operands[0].value);
    if (!v) return false;
    if (!tensors && !find_domain(g, g[*v].tensor, name)) return false;
  }
  return true;
}

// Applies a step and checks the law. Returns whether it was accepted.
bool check_step(Graph& g, const Step& s, Outcome* outcome) {
  const Graph before = g;
  const auto refusal = inapplicable(g, s);
  const size_t kind = static_cast<size_t>(s.kind);
  if (refusal) {
    if (outcome) ++outcome->refused[kind];
    EXPECT_EQ(static_cast<int>(refusal->code) / 100, 3) << print(s) << ": " << refusal->message;
    EXPECT_FALSE(refusal->message.empty());
    try {
      apply(g, s);
      ADD_FAILURE() << "refused, but applied: " << print(s);
    } catch (const Error& e) {
      EXPECT_EQ(e.code, refusal->code) << print(s);
      EXPECT_EQ(e.place, refusal->place) << print(s);
    }
    EXPECT_TRUE(g == before) << print(s);
    return false;
  }
  if (outcome) ++outcome->accepted[kind];
  try {
    apply(g, s);
  } catch (const std::exception& e) {
    ADD_FAILURE() << "accepted, but threw: " << print(s) << ": " << e.what() << "\n" << print(before);
    g = before;
    return false;
  }
  if (const auto error = find_error(g)) {
    ADD_FAILURE() << print(s) << " leaves a graph that does not verify: " << error->what() << " at " << error->place
                  << "\nbefore " << print(before) << "\nafter " << print(g);
    g = before;
    return false;
  }
  EXPECT_TRUE(makes_its_results(g, s)) << print(s);
  const std::string text = print(g);
  try {
    EXPECT_TRUE(parse_graph(text) == g) << print(s) << "\n" << text;
  } catch (const Error& e) {
    ADD_FAILURE() << print(s) << " leaves what does not parse: " << e.what() << " at " << e.place << "\n" << text;
  }
  Graph again = before;
  apply(again, s);
  EXPECT_TRUE(again == g) << print(s);
  return true;
}

TEST(StepsApply, AcceptedOnesApplyAndRefusedOnesChangeNothing) {
  Outcome outcome;
  size_t programs = 0, accepted = 0;
  for (uint64_t seed = 0; seed < 600 && !HasFailure(); ++seed, ++programs) {
    Generator random(seed);
    Graph g = parse_graph(kPrograms[seed % std::size(kPrograms)]);
    ASSERT_FALSE(find_error(g)) << find_error(g)->what();
    const Graph start = g;
    std::vector<Step> list;
    for (int i = 0; i < 60 && list.size() < 25; ++i) {
      const Step s = random.step(g);
      if (check_step(g, s, &outcome)) list.push_back(s);
      if (HasFailure()) return;
    }
    accepted += list.size();
    // The same list gives the same program; without one of its steps, the others apply or give a reason.
    Graph again = start;
    apply(again, list);
    EXPECT_TRUE(again == g);
    if (list.empty() || seed % 4 != 0) continue;
    const size_t left_out = random.below(list.size());
    Graph without = start;
    for (size_t i = 0; i < list.size(); ++i)
      if (i != left_out) check_step(without, list[i], nullptr);
  }
  for (const StepRow& row : step_rows()) {
    const size_t kind = static_cast<size_t>(row.kind);
    const bool elsewhere = row.kind == StepKind::kRewrite || row.kind == StepKind::kAssign;
    EXPECT_EQ(outcome.accepted[kind] == 0, elsewhere)
        << row.text << " was accepted " << outcome.accepted[kind] << " times";
    EXPECT_GT(outcome.refused[kind], 0u) << row.text << " was never refused";
    RecordProperty(std::string(row.text), std::to_string(outcome.accepted[kind]) + " of " +
                                              std::to_string(outcome.accepted[kind] + outcome.refused[kind]));
  }
  RecordProperty("accepted_steps_in_a_program", std::to_string(accepted / std::max<size_t>(programs, 1)));
}

}  // namespace
}  // namespace fusebox
