// Pictures of schedules: the facts they show, and that each format is well-formed.
#include "replay/picture/picture.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

#include "ir/text/parse.h"
#include "ir/verify/verify.h"
#include "passes/schedule/apply_steps.h"
#include "replay/picture/layout.h"
#include "replay/picture/render.h"
#include "tests/support/program_text.h"
#include "tests/support/schedule_cases.h"

namespace fusebox::picture {
namespace {

const std::string kCopy = testing::program_text("copy") + R"(steps @copy {
  split %y.i0 by 128 -> o, t
  transform_like %y to []
  parallelize %y.o on grid.x
  parallelize %y.t on block.x
  parallelize_like %y to []
  inline_most of []
}
)";

// The 1-D case of an unsound equivalence: f and b are both 0 at every element, but b reaches 7 in the holes.
constexpr std::string_view kHoles = R"(fusion @holes {
  %x = input f16[64] contiguous
  %y = set %x
  output %y
}
steps @holes {
  split %y.i0 by 64 -> b, c
  split %y.b by 8 -> f, g
}
)";

Graph scheduled(std::string_view text) {
  const Module m = parse_module(text);
  verify(m);
  Graph g = main_graph(m);
  if (const StepList* list = find_steps(m, g.name)) apply_steps(g, list->steps);
  verify(g);
  return g;
}

std::vector<std::string> members(const Picture& p, std::string_view of, IdGraphKind kind) {
  const auto k = static_cast<size_t>(kind);
  const uint32_t group = p.domain(of)->group[k];
  std::vector<std::string> out;
  if (group != 0)
    for (size_t d : p.groups[k][group - 1]) out.push_back(p.domains[d].full_name);
  return out;
}

size_t count(std::string_view text, std::string_view part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// Checks that tags balance, attributes are quoted, entities are known, and no other markup remains. Returns the fault,
// or nothing.
std::string xml_fault(std::string_view text) {
  std::vector<std::string> open;
  const auto fault = [&](const std::string& what, size_t at) {
    return what + " before: " + std::string(text.substr(at, 60));
  };
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '&') {
      const size_t end = text.find(';', i);
      const std::set<std::string_view> known = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;", "&#10;"};
      if (end == std::string_view::npos || !known.contains(text.substr(i, end - i + 1))) return fault("entity", i);
      i = end + 1;
    } else if (text[i] != '<') {
      if (text[i] == '>' && (open.empty() || open.back() != "style")) return fault("stray >", i);
      ++i;
    } else if (text.substr(i).starts_with("<?")) {
      i = text.find("?>", i) + 2;
    } else if (text.substr(i).starts_with("</")) {
      const size_t end = text.find('>', i);
      const std::string name(text.substr(i + 2, end - i - 2));
      if (open.empty() || open.back() != name) return fault("</" + name + ">", i);
      open.pop_back();
      i = end + 1;
    } else {
      size_t end = i + 1;
      for (bool in_quotes = false; end < text.size() && (in_quotes || text[end] != '>'); ++end) {
        if (text[end] == '"') in_quotes = !in_quotes;
        if (text[end] == '<') return fault("< in a tag", i);
      }
      const std::string_view tag = text.substr(i + 1, end - i - 1);
      if (!tag.ends_with('/')) open.emplace_back(tag.substr(0, tag.find(' ')));
      i = end + 1;
    }
  }
  return open.empty() ? "" : "unclosed " + open.back();
}

constexpr std::string_view kTails = R"(fusion @tails {
  %n, %m = size
  %x = input f32[%n, %m] contiguous
  %s = sum %x over [1]
  output %s
}
steps @tails {
  split %s.i0 by 3 -> a, b
  split %s.i1 by 4 -> c, d
}
)";

// A seeded defect breaks each rule that a picture shows, and the picture shows it broken.
TEST(Picture, DefectsBreakWhatIsDrawn) {
  if (!kDefectsCompiledIn) GTEST_SKIP() << "no seeded defects in this build";
  const Graph g = scheduled(kTails);
  const Picture sound = describe(g);
  const auto broken = [&](const char* name) { return describe(g, parse_defects(std::vector<std::string>{name})); };
  EXPECT_EQ(sound.domain("%s.i0")->check, "3*a + b < n");
  EXPECT_EQ(sound.domain("%s.i1")->check, "4*c + d < m");
  EXPECT_EQ(broken("predicate-off-by-one").domain("%s.i0")->check, "3*a + b < n + 1");
  EXPECT_EQ(broken("reduction-unchecked").domain("%s.i1")->check, "");
  EXPECT_EQ(broken("reduction-unchecked").domain("%s.i0")->check, "3*a + b < n");
  EXPECT_EQ(broken("split-taken-exact").domain("%s.i0")->check, "");
  for (const char* name : {"predicate-dropped", "predicate-off-by-one", "split-swapped", "split-taken-exact",
                           "split-checked-once", "reduction-unchecked", "extent-truncated"})
    EXPECT_NE(to_text(broken(name), IdGraphKind::kExact), to_text(sound, IdGraphKind::kExact)) << name;
}

TEST(Picture, SaysIndexHolesAndCheckOfADomain) {
  const Picture p = describe(scheduled(kCopy));
  EXPECT_EQ(p.note, "");
  const DomainPicture* i0 = p.domain("%y.i0");
  ASSERT_NE(i0, nullptr);
  EXPECT_EQ(i0->index, "128*o + t");
  EXPECT_TRUE(i0->may_leave);
  EXPECT_EQ(i0->check, "128*o + t < n");
  EXPECT_EQ(i0->extent, "n");
  const DomainPicture* o = p.domain("%y.o");
  EXPECT_EQ(o->index, "o");
  EXPECT_FALSE(o->may_leave);
  EXPECT_EQ(o->check, "");
  EXPECT_EQ(o->extent, "ceil(n / 128)");
  EXPECT_EQ(o->parallel, ParallelType::kGridX);
  EXPECT_EQ(o->made_by, "outer of split 128 of i0");
  EXPECT_TRUE(p.domain("%s.t")->is_inline_at);
  // An input has no loops; its reader's loops read it.
  EXPECT_EQ(p.domain("%x.i0")->index, "");
  EXPECT_EQ(p.domain("%x.i0")->reads, (std::vector<Read>{{"%s", "128*o + t"}}));
  EXPECT_EQ(p.domain("%nothing.i0"), nullptr);
}

TEST(Picture, GroupsAreThoseOfTheIdGraph) {
  const Picture p = describe(scheduled(kCopy));
  EXPECT_EQ(members(p, "%y.i0", IdGraphKind::kExact), (std::vector<std::string>{"%x.i0", "%s.i0", "%y.i0"}));
  EXPECT_EQ(members(p, "%y.t", IdGraphKind::kExact), (std::vector<std::string>{"%s.t", "%y.t"}));
  EXPECT_EQ(members(p, "%y.t", IdGraphKind::kLoop), (std::vector<std::string>{"%s.t", "%y.t"}));
  EXPECT_EQ(p.domain("%y.i0")->group[static_cast<size_t>(IdGraphKind::kLoop)], 0u);
}

TEST(Picture, ADomainThatIsZeroAtEveryElementIsNotTheOneThatLeavesItsExtent) {
  const Picture p = describe(scheduled(kHoles));
  EXPECT_EQ(p.domain("%y.b")->extent, "1");
  EXPECT_TRUE(p.domain("%y.b")->may_leave);
  EXPECT_EQ(p.domain("%y.b")->check, "g < 1");
  EXPECT_FALSE(p.domain("%y.f")->may_leave);
  const std::vector<std::string> with_b = members(p, "%y.b", IdGraphKind::kAlmostExact);
  EXPECT_EQ(with_b, (std::vector<std::string>{"%y.b", "%y.g"}));
  ASSERT_FALSE(p.joins.empty());
  EXPECT_EQ(p.domains[p.joins[0].a].full_name, "%y.b");
  EXPECT_NE(to_text(p, IdGraphKind::kAlmostExact).find("%y.b and %y.g are one: "), std::string::npos);
}

TEST(Picture, AMergeInputThatLeavesItsExtentIsMarkedWithoutACheckOfItsOwn) {
  const Picture p = describe(scheduled(R"(fusion @f {
  %m, %n = size
  %x = input f32[%m, %n] contiguous
  %y = exp %x
  output %y
}
steps @f {
  merge %y.i0 with %y.i1 -> all
  split %y.all by 128 -> o, t
}
)"));
  EXPECT_EQ(p.domain("%y.all")->check, "128*o + t < m*n");
  EXPECT_TRUE(p.domain("%y.i0")->may_leave);
  EXPECT_EQ(p.domain("%y.i0")->check, "");
  EXPECT_FALSE(p.domain("%y.i1")->may_leave);
  const std::string text = to_text(p, IdGraphKind::kExact);
  EXPECT_EQ(count(text, "holes, no check of its own: merge\n"), 1u) << text;
  EXPECT_EQ(p.domain("%y.i0")->reason, "outer in range equals output in range, and inner is a remainder");
}

TEST(Picture, AScheduleThatCannotBeLoweredIsDrawnWithTheReason) {
  const Graph g = scheduled(testing::program_text("illegal"));
  const Picture p = describe(g);
  EXPECT_NE(p.note.find("E0"), std::string::npos) << p.note;
  EXPECT_EQ(p.domain("%y.i0")->index, "i0");
  EXPECT_NE(to_svg({{p}}, IdGraphKind::kExact).find("class=\"note\""), std::string::npos);
}

// Checks that boxes lie inside the drawing and apart, and that loops are in order. Returns the number of boxes.
size_t expect_legible(const Picture& p, size_t t) {
  const TensorLayout layout = lay_out(p, t);
  std::vector<Box> boxes;
  for (const PlacedDomain& d : layout.domains) boxes.push_back(d.box);
  for (const PlacedTransform& d : layout.transforms) boxes.push_back(d.box);
  for (size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_GE(boxes[i].x, 0);
    EXPECT_LE(boxes[i].x + boxes[i].width, layout.width);
    EXPECT_LE(boxes[i].y + boxes[i].height, layout.height);
    for (size_t k = 0; k < i; ++k)
      EXPECT_TRUE(boxes[i].x >= boxes[k].x + boxes[k].width || boxes[k].x >= boxes[i].x + boxes[i].width ||
                  boxes[i].y >= boxes[k].y + boxes[k].height || boxes[k].y >= boxes[i].y + boxes[i].height)
          << p.tensors[t].name << " " << i << " " << k;
  }
  double x = -1;
  for (size_t d : p.tensors[t].loop)
    for (const PlacedDomain& placed : layout.domains)
      if (placed.domain == d && placed.row == Row::kLoop) {
        EXPECT_GT(placed.box.x, x);
        x = placed.box.x;
      }
  std::set<size_t> drawn;
  for (const PlacedDomain& placed : layout.domains) drawn.insert(placed.domain);
  EXPECT_EQ(drawn.size(), p.tensors[t].domains.size());
  EXPECT_EQ(layout.transforms.size(), p.tensors[t].transforms.size());
  return boxes.size();
}

TEST(Layout, BoxesOfATensorDoNotOverlapAndLoopsKeepTheirOrder) {
  for (std::string_view program : {std::string_view(kCopy), kHoles}) {
    const Picture p = describe(scheduled(program));
    for (size_t t = 0; t < p.tensors.size(); ++t) EXPECT_GT(expect_legible(p, t), 0u);
  }
}

// Draws random schedules, legal or not: each domain is in a group or alone in each graph, and each format is
// well-formed.
TEST(Picture, AnyScheduleCanBeDrawn) {
  size_t boxes = 0, notes = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const test::ScheduleCase c = test::make_schedule_case(seed);
    // All steps that apply, and the first half of them, which nobody meant as a schedule.
    for (size_t count : {c.steps.size(), c.steps.size() / 2}) {
      Graph g = main_graph(c.module);
      for (size_t i = 0; i < count; ++i)
        if (!step_refusal(g, c.steps[i])) apply_step(g, c.steps[i]);
      const Picture p = describe(g);
      notes += p.note.empty() ? 0 : 1;
      for (size_t t = 0; t < p.tensors.size(); ++t) boxes += expect_legible(p, t);
      for (size_t k = 0; k < kGraphKinds; ++k)
        for (size_t i = 0; i < p.domains.size(); ++i) {
          const uint32_t group = p.domains[i].group[k];
          ASSERT_LE(group, p.groups[k].size());
          if (group != 0) {
            const Group& all = p.groups[k][group - 1];
            EXPECT_TRUE(all.size() > 1 && std::find(all.begin(), all.end(), i) != all.end());
          }
        }
      EXPECT_EQ(xml_fault(to_svg({{p}}, IdGraphKind::kPermissive)), "");
    }
  }
  EXPECT_GT(boxes, 5000u);
  EXPECT_GT(notes, 0u);
}

TEST(Layout, ALongTextIsCutBetweenLetters) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdefg", 6), "abcde…");
  EXPECT_EQ(shortened("äöüßé", 3), "äö…");
  EXPECT_EQ(letters("äö…"), 3u);
}

// Names are user text.
Picture with_evil_names() {
  Picture p = describe(scheduled(kCopy));
  const std::string evil = "</script><!-- \"'&{{data}}\n\x01\xff]]>\\";
  p.name = evil;
  p.note = evil;
  p.steps = {evil};
  for (TensorPicture& t : p.tensors) t.name = t.type = t.op = evil;
  for (DomainPicture& d : p.domains) d.name = d.full_name = d.extent = d.index = d.check = evil;
  return p;
}

TEST(Svg, IsWellFormedWhateverTheNames) {
  for (const Picture& p : {describe(scheduled(kCopy)), describe(scheduled(kHoles)), with_evil_names()})
    for (size_t k = 0; k < kGraphKinds; ++k) {
      const std::string svg = to_svg({{p, p}}, static_cast<IdGraphKind>(k));
      EXPECT_EQ(xml_fault(svg), "");
      EXPECT_EQ(svg.find('\x01'), std::string::npos);
      EXPECT_EQ(svg.find('\xff'), std::string::npos);
    }
}

TEST(Svg, MarksHolesAndNumbersGroups) {
  const Picture p = describe(scheduled(kCopy));
  const std::string svg = to_svg({{p}}, IdGraphKind::kExact);
  EXPECT_EQ(count(svg, "class=\"domain c1 holes\""), 2u);  // %s.i0 and %y.i0
  EXPECT_EQ(count(svg, "class=\"domain c1\""), 1u);        // %x.i0
  EXPECT_EQ(count(svg, ">#1</text>"), 3u);
  EXPECT_EQ(count(svg, ">holes, check</text>"), 2u);
  EXPECT_EQ(count(svg, ">block.x</text>"), 2u);
  EXPECT_NE(svg.find("index: 128*o + t&#10;predicate: 128*o + t &lt; n&#10;why: nothing shows"), std::string::npos);
  EXPECT_NE(svg.find(".c1 .box{fill:" + colour_of(1)), std::string::npos);
}

TEST(Svg, EveryStyleOfAGroupIsItsOwn) {
  const std::string rules = drawing_style(), patterns = drawing_definitions();
  std::set<std::string> looks;
  for (uint32_t group = 1; group <= kStyles; ++group) {
    const std::string rule = ".c" + std::to_string(group) + " .box{fill:";
    const size_t at = rules.find(rule);
    ASSERT_NE(at, std::string::npos) << group;
    std::string look = rules.substr(at + rule.size(), rules.find('}', at) - at - rule.size());
    if (look.starts_with("url(#")) {
      const size_t pattern = patterns.find("id=\"" + look.substr(5, look.size() - 6) + "\"");
      ASSERT_NE(pattern, std::string::npos) << look;
      const size_t body = patterns.find("<rect", pattern);
      look = patterns.substr(body, patterns.find("</pattern>", body) - body);
    }
    EXPECT_TRUE(looks.insert(look).second) << group;
  }
  EXPECT_EQ(style_of(0), 0u);
  EXPECT_EQ(style_of(kStyles), kStyles);
  EXPECT_EQ(style_of(kStyles + 1), 1u);
}

TEST(Html, NoNameEndsAScriptOrFillsAPlaceOfThePage) {
  const std::string page = to_html({{with_evil_names()}}, IdGraphKind::kLoop);
  EXPECT_EQ(count(page, "</script>"), 2u);  // of the data and of the code
  EXPECT_EQ(count(page, "<script"), 2u);
  EXPECT_NE(page.find("data-kind=\"loop\""), std::string::npos);
  // Braces in a name stay as they are.
  EXPECT_GT(count(page, "{{data}}"), 0u);
  EXPECT_EQ(count(page, "id=\"data\">"), 1u);
  for (std::string_view place : {"{{title}}", "{{style}}", "{{definitions}}", "{{body}}", "{{kind}}"})
    EXPECT_EQ(page.find(place), std::string::npos) << place;
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("url(http"), std::string::npos);
  EXPECT_EQ(count(page, "://"), 0u);
}

// Braces balance outside of strings, and every node of an edge is declared.
void expect_dot_structure(const std::string& dot) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < dot.size(); ++i) {
    if (in_string && dot[i] == '\\') {
      ++i;
      continue;
    }
    if (dot[i] == '"') in_string = !in_string;
    if (in_string) continue;
    depth += dot[i] == '{' ? 1 : dot[i] == '}' ? -1 : 0;
    ASSERT_GE(depth, 0);
  }
  EXPECT_EQ(depth, 0);
  EXPECT_FALSE(in_string);
  for (size_t at = dot.find(" -> d"); at != std::string::npos; at = dot.find(" -> d", at + 1)) {
    const std::string node = dot.substr(at + 4, dot.find(';', at) - at - 4);
    EXPECT_EQ(count(dot, "\n    " + node + " ["), 1u) << node;
  }
}

TEST(Dot, HasACLusterForEachTensorAndANodeForEachDomain) {
  const Picture p = describe(scheduled(kCopy));
  const std::string dot = to_dot(p, IdGraphKind::kExact);
  expect_dot_structure(dot);
  EXPECT_EQ(count(dot, "subgraph cluster_"), 3u);
  EXPECT_EQ(count(dot, "tooltip="), p.domains.size());
  EXPECT_EQ(count(dot, "style=\"filled,dashed\""), 2u);
  EXPECT_EQ(count(dot, "fillcolor=\"" + colour_of(1) + "\""), 3u);
  expect_dot_structure(to_dot(with_evil_names(), IdGraphKind::kExact));
}

TEST(Dot, IsReadByDot) {
  if (std::system("dot -V >/dev/null 2>&1") != 0) GTEST_SKIP() << "no `dot` here: install graphviz";
  for (const Picture& p : {describe(scheduled(kCopy)), with_evil_names()}) {
    FILE* pipe = popen("dot -Tcanon >/dev/null 2>&1", "w");
    ASSERT_NE(pipe, nullptr);
    const std::string dot = to_dot(p, IdGraphKind::kPermissive);
    EXPECT_EQ(fwrite(dot.data(), 1, dot.size(), pipe), dot.size());
    EXPECT_EQ(pclose(pipe), 0) << dot;
  }
}

TEST(Text, ATextThatIsNoUtf8BecomesReplacements) {
  EXPECT_EQ(printable("a\xff\xc3(\xe2\x82\xac\x01\t"), "a\xef\xbf\xbd\xef\xbf\xbd(\xe2\x82\xac\xef\xbf\xbd\t");
  EXPECT_EQ(printable("\xed\xa0\x80\xc0\x80"), printable("\xff\xff\xff\xff\xff"));  // a surrogate, an overlong zero
  EXPECT_EQ(escaped("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
}

}  // namespace
}  // namespace fusebox::picture
