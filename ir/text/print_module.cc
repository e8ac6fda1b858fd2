// Prints steps, segmentations, input specs and modules.
#include "ir/scalar/numeric.h"
#include "ir/text/print.h"
#include "ir/token/lex.h"
#include "ir/token/printer.h"

namespace fusebox {
namespace {

void add_step(Printer& p, const Step& step) {
  const StepRow& row = row_of(step.kind);
  p.add(row.text);
  const auto ranges = slot_ranges(*row.format, step.operands.size());
  // An operand that an optional slot lacks. The number 0 elsewhere looks the same.
  const auto is_absent = [&](size_t i) {
    for (int s = 0; ranges && s < row.format->slot_count; ++s)
      if (const auto slot = static_cast<size_t>(s); row.format->slots[s].optional && (*ranges)[slot].begin == i)
        return step.operands[i] == StepOperand{};
    return false;
  };
  p.add_operands(*row.format, step.operands.size(), is_absent, [&](size_t i) {
    const StepOperand& operand = step.operands[i];
    if (operand.is_integer()) return p.add_integer(operand.integer);
    p.add_name('%', operand.value);
    if (operand.domain.empty()) return;
    p.add('.');
    is_plain_name(operand.domain) ? p.add(operand.domain) : p.add(quoted(operand.domain));
  });
  p.add_attrs(step.attrs);
  if (step.results.empty()) return;
  p.add(" -> ");
  p.add_list(step.results, [&](const std::string& name) { p.add_word(name); });
}

void add_steps(Printer& p, std::span<const Step> steps, int depth) {
  p.add('{');
  for (const Step& step : steps) {
    p.add_line(depth + 1);
    add_step(p, step);
  }
  p.add_line(depth);
  p.add('}');
}

void add_graph_name(Printer& p, std::string_view name) {
  if (name.empty()) return;
  p.add(' ');
  p.add_name('@', name);
}

void add_crossing(Printer& p, std::string_view word, const Crossing& crossing) {
  p.add_line(2);
  p.add(word);
  p.add(' ');
  p.add_name('%', crossing.value);
  if (!crossing.allocation_order.empty()) {
    p.add(" order ");
    p.add_integers(crossing.allocation_order);
  }
  if (!crossing.contiguity.empty()) {
    p.add(" contiguity [");
    p.add_list(crossing.contiguity, [&](Contiguity c) { p.add(text(c)); });
    p.add(']');
  }
  if (crossing.alias.empty() || p.defects.has(Defect::kTextCrossingAlias)) return;
  p.add(" alias ");
  p.add_name('%', crossing.alias);
}

void add_segmentation(Printer& p, const Segmentation& segmentation) {
  p.add("segments");
  add_graph_name(p, segmentation.graph);
  p.add(" {");
  for (const Segment& segment : segmentation.segments) {
    p.add_line(1);
    p.add("segment");
    add_graph_name(p, segment.name);
    p.add(' ');
    p.add(text(segment.executor));
    p.add(" {");
    if (!segment.ops.empty()) {
      p.add_line(2);
      p.add("ops [");
      p.add_list(segment.ops, [&](const std::string& name) { p.add_name('%', name); });
      p.add(']');
    }
    for (const Crossing& c : segment.inputs) add_crossing(p, "input", c);
    for (const Crossing& c : segment.outputs) add_crossing(p, "output", c);
    if (!segment.steps.empty()) {
      p.add_line(2);
      p.add("steps ");
      add_steps(p, segment.steps, 2);
    }
    p.add_line(1);
    p.add('}');
  }
  p.add("\n}\n");
}

void add_input_spec(Printer& p, const InputSpec& spec) {
  const InputSpec none;
  p.add_name('%', spec.name);
  p.add(" = ");
  if (spec.is_scalar) {
    p.add_literal(spec.dtype, spec.value);
    if (!spec.shape.empty()) {
      p.add(" shape ");
      p.add_integers(spec.shape);
    }
  } else {
    p.add(text(spec.dtype));
    p.add_integers(spec.shape);
  }
  if (!spec.strides.empty()) {
    p.add(" strides ");
    p.add_integers(spec.strides);
  }
  if (spec.offset != 0 && !p.defects.has(Defect::kTextInputOffset)) {
    p.add(" offset ");
    p.add_integer(spec.offset);
  }
  if (!spec.is_scalar || spec.generator != none.generator) {
    p.add(' ');
    p.add(text(spec.generator));
  }
  if (spec.low != none.low || spec.high != none.high || std::signbit(spec.low)) {
    p.add(' ');
    p.add_double(spec.low);
    p.add(' ');
    p.add_double(spec.high);
  }
  if (spec.seed != 0) {
    p.add(" seed ");
    p.add_integer(spec.seed);
  }
  if (!spec.is_scalar && spec.value != none.value) {
    p.add(" value ");
    p.add_literal(spec.dtype, spec.value);
  }
}

// `inputs @f host `
void add_head(Printer& p, std::string_view word, std::string_view graph, std::string_view name) {
  p.add(word);
  add_graph_name(p, graph);
  if (!name.empty()) {
    p.add(' ');
    p.add_word(name);
  }
  p.add(' ');
}

}  // namespace

std::string print(const Step& step) {
  Printer p;
  add_step(p, step);
  return std::move(p.out);
}

std::string print_steps(std::span<const Step> steps) {
  Printer p;
  for (const Step& step : steps) {
    add_step(p, step);
    p.add('\n');
  }
  return std::move(p.out);
}

std::string print(const StepList& list, const Defects& defects) {
  Printer p;
  p.defects = defects;
  add_head(p, "steps", list.graph, list.name);
  add_steps(p, list.steps, 0);
  p.add('\n');
  return std::move(p.out);
}

std::string print(const Segmentation& segmentation, const Defects& defects) {
  Printer p;
  p.defects = defects;
  add_segmentation(p, segmentation);
  return std::move(p.out);
}

std::string print(const InputSpec& spec) {
  Printer p;
  add_input_spec(p, spec);
  return std::move(p.out);
}

std::string print(const InputSpecs& specs, const Defects& defects) {
  Printer p;
  p.defects = defects;
  add_head(p, "inputs", specs.graph, specs.where);
  p.add('{');
  for (const InputSpec& spec : specs.specs) {
    p.add_line(1);
    add_input_spec(p, spec);
  }
  p.add("\n}\n");
  return std::move(p.out);
}

std::string print(const Module& m, const Defects& defects) {
  std::string out;
  const auto add = [&](const auto& list) {
    for (const auto& item : list) {
      if (!out.empty()) out += '\n';
      out += print(item, defects);
    }
  };
  add(m.graphs);
  add(m.step_lists);
  add(m.segmentations);
  add(m.input_specs);
  return out;
}

}  // namespace fusebox
