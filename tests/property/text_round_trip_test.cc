// Law: parse returns what print was given, for every level, op, attribute, dtype and step, and its result prints the
// same text. Any damaged text gives a value or a coded error.
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>

#include "ir/canonical/canonical.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "tests/support/random_module.h"
#include "tests/support/real_programs.h"
#include "tests/support/seen_rows.h"

namespace fusebox {
namespace {

using testing::Random;

constexpr uint64_t kSeeds = 6000;

testing::RandomModuleOptions options() {
  testing::RandomModuleOptions o;
  o.any_attrs = false;  // the text form has no word for an attribute outside the row
  return o;
}

// The table rows that occurred in texts, by the name of the table.
class Coverage : public testing::SeenRows {
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
    for (size_t i = 0; i < std::size(rows); ++i)
      EXPECT_TRUE(has(table, i)) << "no round trip of " << table << " row " << i;
  }

 private:
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
    see_structure(g);
    for (const Op& op : g.ops) {
      see("op", op.kind);
      add(op.attrs);
    }
    for (const Value& v : g.values) see(v.constant ? "constant" : "dtype", v.dtype);
  }
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

int answered = 0, refused = 0;

// Expects a value that round-trips, or a coded error that is not internal and has a place. All code accepts a value
// that verifies.
void expect_answer(const std::string& text) {
  Module m;
  try {
    m = parse_module(text);
  } catch (const Error& e) {
    ASSERT_NE(row_of(e.code).outcome, Outcome::kInternal) << e.what() << "\n" << text;
    ASSERT_NE(e.place.find(':'), std::string::npos) << e.what() << "\n" << text;
    ++refused;
    return;
  }
  try {
    verify(m);
    ++answered;
    for (const Graph& g : m.graphs) ASSERT_EQ(digest(g), digest(canonicalize(g))) << text;
  } catch (const Error& e) {
    ASSERT_NE(row_of(e.code).outcome, Outcome::kInternal) << e.what() << "\n" << text;
    ++refused;
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
      "fusion ", "kernel ", "steps ", "segments ", "inputs ", "@f ",   "{\n",   "}\n", "%x",     "%y",   " = ",
      "input ",  "f32",     "[",      "]",         "i0 ",     "iter ", "%n",    ", ",  "size\n", "exp ", "sum ",
      "over ",   "for ",    "if ",    "\n",        "split ",  "by ",   "128",   "-> ", "\"",     "\\",   "1.5_f32",
      "nan",     "c64(",    ")",      " : ",       "root ",   "loop ", "like ", "*",   "?",      "\xff", "add "};
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    const bool words = random.one_in(2);
    for (size_t n = random.below(60); n > 0; --n)
      words ? text += kWords[random.below(std::size(kWords))] : text += static_cast<char>(random.next());
    ASSERT_NO_FATAL_FAILURE(expect_answer(text)) << "case " << i;
  }
}

// The ops determine this program's types, so inference meets the damage too.
constexpr std::string_view kProgram = R"(fusion @all {
  %m, %n = size
  %x = input bf16[%m, %n] contiguity [true, false]
  %i = input i64[%m, %n]
  %k = input i64
  %p = input bool[1*%m, %n]
  %f = cast %x as f32
  %y = sum %f over [1] as f64
  %q = prod %f over [0]
  %z = broadcast %y mask [0, 1]
  %w = add %f, %z
  %s = slice %w from [0, 1] to [%m, %n] by [1, 1]
  %e = exp %s
  %r = reshape %w to [%n, %m]
  %c6 = reshape %w to [-1]
  %a, %b, %c = welford %w over [0, 1]
  %t = permute %w dims [1, 0]
  %u = where %p, %w, 0.5
  %d = pad %w value 0.0 by [1, 2]
  %g = gather %w, %i axis 1
  %list = input i64[2]
  %h = index_select %w, %list axis 0
  %j = cat [%w, %f] axis 1
  %l = expand %z to [%m, %n]
  %o = full 1.0 of [%m, 5] as f32
  %v = iota %n from 0 by 1 as i32
  %bd = broadcast_in_dim %v to [%m, %n] dims [1]
  %sc = scatter %w, %i, %w axis 1
  %ta = take_along_axis %w, %i axis 0
  %se = select %w, %k axis 1
  %tr = triu %w, 1
  %sq = squeeze %z over [1]
  %so = stride_order %w order [1, 0]
  %cl = clamp %w, -1.0, 1.0_f32
  %cx = complex %w, %w
  %ad = addcmul %w, %w, %w, 2.0
  %kk = add %k, 3_i64
  %st = set %e cache streaming
  output %u
  output %cx
  output %st
  output %f alias %x
}
)";

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// FUSEBOX_DAMAGED_CASES sets how many, FUSEBOX_FIRST_CASE where they begin.
TEST(TextRoundTrip, DamagedTextGetsAnAnswer) {
  const uint64_t first = setting("FUSEBOX_FIRST_CASE", 0), count = setting("FUSEBOX_DAMAGED_CASES", 30'000);
  std::vector<std::string> files = {print(parse_module(kProgram))};
  for (const testing::RealProgram& program : testing::real_programs()) files.push_back(print(program.module));
  for (uint64_t seed = 0; seed < 500; ++seed) files.push_back(print(testing::random_module(seed, options())));
  answered = refused = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Random random(seed);
    const auto base = [&] { return random.one_in(4) ? std::string(kProgram) : random.pick(files); };
    std::string text = base();
    const std::string other = random.one_in(8) ? base() : text;
    for (size_t n = 1 + random.below(3); n > 0 && !text.empty(); --n) {
      const size_t at = random.below(text.size());
      const size_t line = text.find('\n', at), word = text.find(' ', at);
      switch (random.below(7)) {
        case 0:
          text[at] = static_cast<char>(random.one_in(2) ? random.next() : ' ' + random.below(95));
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
        case 4:
          text = text.substr(0, at) + other.substr(std::min(other.size(), random.below(other.size() + 1)));
          break;
        case 5:  // a line less
          if (line != std::string::npos) text.erase(line, text.find('\n', line + 1) - line);
          break;
        default:  // one word for another
          if (const size_t from = other.find(' ', random.below(other.size() + 1));
              word != std::string::npos && from != std::string::npos)
            text.replace(word, text.find_first_of(" \n,", word + 1) - word,
                         other.substr(from, other.find_first_of(" \n,", from + 1) - from));
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_answer(text)) << "case " << seed;
  }
  std::printf("  damaged texts: %d are programs, %d refused\n", answered, refused);
  EXPECT_GT(answered, 0);
  EXPECT_GT(refused, answered);
}

}  // namespace
}  // namespace fusebox
