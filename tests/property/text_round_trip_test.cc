// Law: parse gives back what print was given, for every level, op, attribute, dtype and step; what it gives prints the same
// text; and any damaged text gives a value or a coded error.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "ir/error.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "tests/support/random_module.h"

namespace fusebox {
namespace {

using testing::Random;

constexpr uint64_t kSeeds = 3000;

testing::RandomModuleOptions options() {
  testing::RandomModuleOptions o;
  o.any_attrs = false;  // the text form has no word for an attribute that the row does not take
  return o;
}

// Which rows of the tables the texts held, by the name of the table.
class Coverage {
 public:
  void add(const Module& m) {
    for (const Graph& g : m.graphs) add(g);
    for (const StepList& list : m.step_lists)
      for (const Step& step : list.steps) add(step);
    for (const Segmentation& segmentation : m.segmentations)
      for (const Segment& s : segmentation.segments) {
        see("SegmentExecutor", s.executor);
        for (const Step& step : s.steps) add(step);
      }
    for (const InputSpecs& specs : m.input_specs)
      for (const InputSpec& spec : specs.specs) see("InputGenerator", spec.generator);
  }

  template <class E>
  void expect_all(const std::string& table, const E& rows) const {
    const auto it = seen_.find(table);
    for (size_t i = 0; i < std::size(rows); ++i)
      EXPECT_TRUE(it != seen_.end() && it->second.contains(i)) << "no round trip of " << table << " row " << i;
  }

 private:
  template <class E>
  void see(const std::string& table, E row) {
    seen_[table].insert(static_cast<size_t>(row));
  }
  void add(const Step& step) {
    see("step", step.kind);
    add(step.attrs);
  }
  void add(const Attrs& attrs) {
    for (const Attr& a : attrs.list()) {
      see("attr", a.key);
      if (const AttrKind kind = row_of(a.key).kind; !enum_texts_of(kind).empty())
        see("attr " + std::string(row_of(a.key).text), std::get<int64_t>(a.value));
    }
  }
  void add(const Graph& g) {
    see("Level", g.level);
    for (const Op& op : g.ops) {
      see("op", op.kind);
      add(op.attrs);
    }
    for (const Value& v : g.values) {
      see("ValueKind", v.kind);
      see(v.constant ? "constant" : "dtype", v.dtype);
    }
    for (const IterDomain& d : g.domains) {
      see("IterType", d.iter_type);
      see("ParallelType", d.parallel);
    }
    for (const Tensor& t : g.tensors) {
      see("MemoryType", t.memory);
      for (Contiguity c : t.contiguity) see("Contiguity", c);
    }
    for (const Transform& t : g.transforms) {
      see("TransformKind", t.kind);
      see("SwizzleType", t.swizzle);
    }
  }

  std::map<std::string, std::set<size_t>> seen_;
};

TEST(TextRoundTrip, EveryRowComesBack) {
  Coverage covered;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Module m = testing::random_module(seed, options());
    const std::string text = print(m);
    Module back;
    try {
      back = parse_module(text);
    } catch (const Error& e) {
      FAIL() << "seed " << seed << ": " << code_text(e.code) << " " << e.place << " " << e.what() << "\n" << text;
    }
    ASSERT_TRUE(m == back) << "seed " << seed << "\n" << text << "\n----\n" << print(back);
    ASSERT_EQ(print(back), text) << "seed " << seed;
    covered.add(back);
  }
  covered.expect_all("op", op_rows());
  covered.expect_all("step", step_rows());
  covered.expect_all("dtype", dtype_rows());
  covered.expect_all("constant", dtype_rows());
  std::set<AttrKey> taken;
  for (const OpRow& row : op_rows()) taken.insert(row.attrs.begin(), row.attrs.end());
  for (const StepRow& row : step_rows()) taken.insert(row.attrs.begin(), row.attrs.end());
  for (const AttrRow& row : attr_rows())
    if (taken.contains(row.key)) covered.expect_all("attr " + std::string(row.text), enum_texts_of(row.kind));
  covered.expect_all("Level", enum_texts<Level>());
  covered.expect_all("ValueKind", enum_texts<ValueKind>());
  covered.expect_all("IterType", enum_texts<IterType>());
  covered.expect_all("ParallelType", enum_texts<ParallelType>());
  covered.expect_all("MemoryType", enum_texts<MemoryType>());
  covered.expect_all("Contiguity", enum_texts<Contiguity>());
  covered.expect_all("TransformKind", enum_texts<TransformKind>());
  covered.expect_all("SwizzleType", enum_texts<SwizzleType>());
  covered.expect_all("SegmentExecutor", enum_texts<SegmentExecutor>());
  covered.expect_all("InputGenerator", enum_texts<InputGenerator>());
}

TEST(TextRoundTrip, PartsComeBack) {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const Step step = testing::random_step(random, options());
    ASSERT_EQ(parse_step(print(step)), step) << print(step);
    const StepList list = testing::random_step_list(random, options());
    ASSERT_EQ(parse_steps(print_steps(list.steps)), list.steps);
    ASSERT_EQ(parse_steps(print(list)), list.steps);
    const InputSpec spec = testing::random_input_spec(random);
    const std::string text = print(spec);
    ASSERT_EQ(parse_input_spec(spec.name, text.substr(text.find(" = ") + 3)), spec) << text;
  }
}

// A value, which then round-trips, or a coded error that is no bug of ours, with a place.
void expect_answer(const std::string& text) {
  Module m;
  try {
    m = parse_module(text);
  } catch (const Error& e) {
    ASSERT_NE(row_of(e.code).outcome, Outcome::kInternal) << e.what() << "\n" << text;
    ASSERT_NE(e.place.find(':'), std::string::npos) << e.what() << "\n" << text;
    return;
  }
  const std::string printed = print(m);
  try {
    ASSERT_TRUE(parse_module(printed) == m) << text << "\n----\n" << printed;
  } catch (const Error& e) {
    FAIL() << code_text(e.code) << " " << e.place << " " << e.what() << "\n" << text << "\n----\n" << printed;
  }
}

TEST(TextRoundTrip, AnyBytesGetAnAnswer) {
  Random random(1);
  static constexpr std::string_view kWords[] = {
      "fusion ", "kernel ", "steps ", "segments ", "inputs ", "@f ", "{\n", "}\n", "%x", "%y", " = ", "input ", "f32", "[", "]", "i0 ",
      "iter ", "%n", ", ", "size\n", "exp ", "sum ", "over ", "for ", "if ", "\n", "split ", "by ", "128", "-> ", "\"", "\\", "1.5_f32",
      "nan", "c64(", ")", " : ", "root ", "loop ", "like ", "*", "?", "\xff", "add "};
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    const bool words = random.one_in(2);
    for (size_t n = random.below(60); n > 0; --n)
      words ? text += kWords[random.below(std::size(kWords))] : text += static_cast<char>(random.next());
    ASSERT_NO_FATAL_FAILURE(expect_answer(text)) << "case " << i;
  }
}

TEST(TextRoundTrip, DamagedTextGetsAnAnswer) {
  Random random(2);
  for (int i = 0; i < 20000; ++i) {
    std::string text = print(testing::random_module(random.below(500), options()));
    const std::string other = random.one_in(8) ? print(testing::random_module(random.below(500), options())) : text;
    for (size_t n = 1 + random.below(3); n > 0 && !text.empty(); --n) {
      const size_t at = random.below(text.size());
      switch (random.below(5)) {
        case 0:
          text[at] = static_cast<char>(random.next());
          break;
        case 1:
          text.resize(at);
          break;
        case 2:
          text.erase(at, random.below(20));
          break;
        case 3:
          text.insert(at, text.substr(random.below(text.size()), random.below(40)));
          break;
        default:
          text = text.substr(0, at) + other.substr(std::min(other.size(), random.below(other.size() + 1)));
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_answer(text)) << "case " << i;
  }
}

}  // namespace
}  // namespace fusebox
