// Reads steps, segmentations, input specs and modules.
#include <algorithm>

#include "ir/text/graph_parser.h"
#include "ir/text/parse.h"

namespace fusebox {
namespace {

Step step(Parser& p) {
  const Token& t = p.peek();
  const auto kind = t.kind == TokenKind::kWord ? parse_step_kind(t.text) : std::nullopt;
  if (!kind) {
    if (t.kind != TokenKind::kWord) p.fail_expected("a step");
    Parser::fail(ErrorCode::kUnknownName, t,
                 "no step is named `" + std::string(t.text.substr(0, 60)) + "`; see the list of steps");
  }
  p.take();
  const StepRow& row = row_of(*kind);
  Step result;
  result.kind = *kind;
  p.operands(
      *row.format, row.text,
      [&](const Slot&) {
        const Token& o = p.peek();
        if (o.kind == TokenKind::kNumber) {
          result.operands.push_back(StepOperand::number(p.integer("an integer")));
        } else if (o.kind == TokenKind::kValue && !o.text.empty()) {
          result.operands.push_back(StepOperand::domain_of(o.text, o.domain));
          p.take();
        } else {
          p.fail_expected("a tensor %y, a domain %y.i0 or an integer");
        }
      },
      [&] { result.operands.push_back({}); });
  result.attrs = p.attrs(row.attrs, row.text, true);
  if (p.peek().kind != TokenKind::kArrow) return result;
  p.take();
  do result.results.push_back(p.word("a name for a result"));
  while (p.accept(','));
  return result;
}

std::vector<Step> steps_in_braces(Parser& p) {
  std::vector<Step> result;
  p.block("steps", [&] { result.push_back(step(p)); });
  return result;
}

std::string optional_word(Parser& p) { return p.peek().is('{') ? std::string() : p.word("a name or `{`"); }

StepList step_list(Parser& p) {
  StepList result;
  p.take();
  result.graph = p.graph_name();
  result.name = optional_word(p);
  result.steps = steps_in_braces(p);
  return result;
}

Crossing crossing(Parser& p) {
  Crossing result;
  result.value = p.value_name("a value");
  while (p.peek().kind == TokenKind::kWord) {
    if (p.accept_word("order"))
      result.allocation_order = p.integers("an axis");
    else if (p.accept_word("contiguity"))
      result.contiguity = p.enumerators<Contiguity>("true, false or none");
    else if (p.accept_word("alias"))
      result.alias = p.value_name("a value");
    else
      p.fail_expected("order, contiguity or alias");
  }
  return result;
}

Segment segment(Parser& p) {
  Segment result;
  if (!p.accept_word("segment")) p.fail_expected("segment");
  result.name = p.graph_name();
  result.executor = p.enumerator<SegmentExecutor>("kernel, aten, communicate or view");
  p.block("a segment", [&] {
    if (p.accept_word("ops"))
      p.list("ops", [&] { result.ops.push_back(p.value_name("a value")); });
    else if (p.accept_word("input"))
      result.inputs.push_back(crossing(p));
    else if (p.accept_word("output"))
      result.outputs.push_back(crossing(p));
    else if (p.accept_word("steps"))
      result.steps = steps_in_braces(p);
    else
      p.fail_expected("ops, input, output or steps");
  });
  return result;
}

Segmentation segmentation(Parser& p) {
  Segmentation result;
  p.take();
  result.graph = p.graph_name();
  p.block("segments", [&] { result.segments.push_back(segment(p)); });
  return result;
}

bool starts_real(const Token& t) { return t.kind == TokenKind::kNumber || t.is_word("nan") || t.is_word("inf"); }

// Reads the text after `%x =`.
InputSpec input_spec(Parser& p, std::string name) {
  InputSpec result;
  result.name = std::move(name);
  if (p.peek().kind == TokenKind::kWord && p.peek(1).is('[')) {
    result.dtype = p.dtype("a dtype");
    result.shape = p.integers("an extent");
  } else {
    const auto literal = p.literal();
    if (!literal) p.fail_expected("a type such as f32[5, 7], or a scalar's value");
    result.is_scalar = true;
    result.dtype = literal->dtype;
    result.value = literal->bits;
  }
  while (p.peek().kind == TokenKind::kWord || p.peek().kind == TokenKind::kNumber) {
    const Token& t = p.peek();
    if (starts_real(t)) {
      result.low = p.real("a number");
      result.high = p.real("a second number");
    } else if (p.accept_word("shape")) {
      result.shape = p.integers("an extent");
    } else if (p.accept_word("strides")) {
      result.strides = p.integers("a stride");
    } else if (p.accept_word("offset")) {
      result.offset = p.integer("a number of elements");
    } else if (p.accept_word("seed")) {
      result.seed = p.unsigned_integer("a seed");
    } else if (p.accept_word("value")) {
      const auto literal = p.literal();
      if (!literal || literal->dtype != result.dtype)
        Parser::fail(ErrorCode::kBadLiteral, t, "the value is not of the tensor's dtype; give it that suffix");
      result.value = literal->bits;
    } else {
      result.generator =
          p.enumerator<InputGenerator>("strides, offset, seed, or normal, uniform, integers, boundary, constant");
    }
  }
  return result;
}

InputSpecs input_specs(Parser& p) {
  InputSpecs result;
  p.take();
  result.graph = p.graph_name();
  result.where = optional_word(p);
  p.block("inputs", [&] {
    std::string name = p.value_name("the name of an input");
    p.expect('=', "an input");
    result.specs.push_back(input_spec(p, std::move(name)));
  });
  return result;
}

void expect_end(Parser& p) {
  p.skip_newlines();
  if (!p.at_end()) p.fail_expected("the end of the text");
}

void expect_word(const Parser& p, std::string_view word) {
  if (!p.peek().is_word(word)) p.fail_expected("`" + std::string(word) + "`");
}

}  // namespace

Module parse_module(std::string_view text) {
  Parser p(text);
  Module m;
  for (p.skip_newlines(); !p.at_end(); p.skip_newlines()) {
    const Token& t = p.peek();
    if (level_of_word(t))
      m.graphs.push_back(GraphParser(p).run());
    else if (t.is_word("steps"))
      m.step_lists.push_back(step_list(p));
    else if (t.is_word("segments"))
      m.segmentations.push_back(segmentation(p));
    else if (t.is_word("inputs"))
      m.input_specs.push_back(input_specs(p));
    else
      p.fail_expected("fusion, scheduled, kernel, host, steps, segments or inputs");
    if (p.peek().kind != TokenKind::kNewline && !p.at_end()) p.fail_expected("the end of the line");
  }
  return m;
}

Step parse_step(std::string_view text) {
  Parser p(text);
  p.skip_newlines();
  Step result = step(p);
  expect_end(p);
  return result;
}

std::vector<Step> parse_steps(std::string_view text) {
  Parser p(text);
  p.skip_newlines();
  std::vector<Step> result;
  if (p.peek().is_word("steps")) {
    result = step_list(p).steps;
  } else {
    while (!p.at_end()) {
      result.push_back(step(p));
      p.end_statement();
    }
  }
  expect_end(p);
  return result;
}

namespace {

// A text that holds one item, which begins with this word.
template <class T>
T only_item(std::string_view text, std::string_view word, T (*read)(Parser&)) {
  Parser p(text);
  p.skip_newlines();
  expect_word(p, word);
  T result = read(p);
  expect_end(p);
  return result;
}

}  // namespace

Segmentation parse_segmentation(std::string_view text) { return only_item(text, "segments", segmentation); }

InputSpecs parse_input_specs(std::string_view text) { return only_item(text, "inputs", input_specs); }

InputSpec parse_input_spec(std::string_view name, std::string_view text) {
  Parser p(text);
  p.skip_newlines();
  InputSpec result = input_spec(p, std::string(name));
  expect_end(p);
  return result;
}

}  // namespace fusebox
