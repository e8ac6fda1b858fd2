#include "passes/plan/form_parser.h"

namespace fusebox {
namespace {

// The functions of two forms.
struct Function {
  std::string_view opening;
  Form (*make)(IndexAlgebra&, Form, Form);
};
constexpr Function kFunctions[] = {
    {"div(", [](IndexAlgebra& a, Form x, Form y) { return a.floor_div(x, y); }},
    {"quotient(", [](IndexAlgebra& a, Form x, Form y) { return a.floor_div(x, y); }},
    {"remainder(", [](IndexAlgebra& a, Form x, Form y) { return a.mod(x, y); }},
    {"min(", [](IndexAlgebra& a, Form x, Form y) { return a.min(x, y); }},
    {"max(", [](IndexAlgebra& a, Form x, Form y) { return a.max(x, y); }},
    {"sum(", [](IndexAlgebra& a, Form x, Form y) { return a.add(x, y); }},
    {"product(", [](IndexAlgebra& a, Form x, Form y) { return a.mul(x, y); }},
};

// A loop is written NAME#NUMBER; only the number counts.
Form loop_variable(PlanLine& line, const IndexAlgebra& a) {
  if (!line.accept_close('#')) {
    line.name();
    line.accept_close('#');
  }
  const uint32_t n = line.number();
  if (!a.has_loop(static_cast<int>(n))) line.fail("a loop of the statement, before this,");
  return a.loop(static_cast<int>(n));
}

}  // namespace

ValueId PlanNames::value(PlanLine& line) {
  line.expect("%");
  const std::string name = line.name();
  if (values_.empty())
    for (uint32_t i = 0; i < g_.values.size(); ++i)
      if (!g_.is_constant(ValueId(i))) values_.emplace(g_.values[i].name, ValueId(i));
  const auto it = values_.find(name);
  if (it == values_.end()) line.fail("a value of the graph, not %" + name + ",");
  return it->second;
}

ValueId PlanNames::whole_value(PlanLine& line) {
  const ValueId v = value(line);
  line.skip();
  return v;
}

ValueId PlanNames::tensor(PlanLine& line) {
  const ValueId v = value(line);
  if (!g_.is_tensor(v)) line.fail("a tensor, not %" + g_[v].name + ",");
  return v;
}

ValueId PlanNames::whole_tensor(PlanLine& line) {
  const ValueId v = tensor(line);
  line.skip();
  return v;
}

DomainId PlanNames::domain(PlanLine& line) {
  const ValueId v = tensor(line);
  if (!line.accept_close('.')) line.fail("`.` and a domain");
  const std::string name = line.name();
  line.skip();
  for (uint32_t d = 0; d < g_.domains.size(); ++d)
    if (g_.domains[d].tensor == g_[v].tensor && g_.domains[d].name == name) return DomainId(d);
  line.fail("a domain of %" + g_[v].name + ", not " + name + ",");
}

Form FormParser::sum(PlanLine& line, StatementView& view) {
  if (++depth_ > 200) line.fail("a form of fewer than 200 levels");
  Form total = term(line, view, line.accept("-") ? -1 : 1);
  while (true) {
    if (line.accept("+"))
      total = view.algebra.add(total, term(line, view, 1));
    else if (line.accept("-"))
      total = view.algebra.add(total, term(line, view, -1));
    else
      break;
  }
  --depth_;
  return total;
}

Form FormParser::term(PlanLine& line, StatementView& view, int64_t sign) {
  Form product = view.algebra.constant(sign);
  do {
    if (line.starts_integer()) {
      // The least integer has no positive counterpart.
      const Form number = line.accept("9223372036854775808") ? view.algebra.neg(view.algebra.constant(INT64_MIN))
                                                             : view.algebra.constant(line.integer());
      product = view.algebra.mul(product, number);
    } else {
      product = view.algebra.mul(product, factor(line, view));
    }
  } while (line.accept("*"));
  return product;
}

std::vector<Form> FormParser::arguments(PlanLine& line, StatementView& view, size_t least, size_t most) {
  std::vector<Form> args = {sum(line, view)};
  while (line.accept(",")) args.push_back(sum(line, view));
  line.expect(")");
  if (args.size() < least || args.size() > most) line.fail("as many arguments as the function takes, before this,");
  return args;
}

Form FormParser::factor(PlanLine& line, StatementView& view) {
  IndexAlgebra& algebra = view.algebra;
  if (line.starts_loop()) return loop_variable(line, algebra);
  if (line.accept("(")) return algebra.symbol_of(arguments(line, view, 1, 1)[0]);
  if (line.accept("stride(")) {
    const DomainId d = names_.domain(line);
    line.expect(")");
    const int id = kStrideSymbols + static_cast<int>(d.index);
    return algebra.has_symbol(id) ? algebra.symbol(id) : algebra.declare_symbol(id, "stride");
  }
  if (line.accept("loaded")) return view.loaded();
  for (const Function& f : kFunctions) {
    if (!line.accept(f.opening)) continue;
    const auto x = arguments(line, view, 2, 2);
    return f.make(algebra, x[0], x[1]);
  }
  if (line.accept("digit(")) {
    const auto x = arguments(line, view, 3, 3);
    return algebra.mod(algebra.floor_div(x[0], x[1]), x[2]);
  }
  if (line.accept("xor(")) {
    const auto x = arguments(line, view, 2, 64);
    Form result = x[0];
    for (size_t i = 1; i < x.size(); ++i) result = algebra.bit_xor(result, x[i]);
    return result;
  }
  if (line.starts_value()) {
    const ValueId v = names_.whole_value(line);
    return algebra.has_symbol(static_cast<int>(v.index)) ? algebra.symbol(static_cast<int>(v.index))
                                                         : view.symbols.of(v);
  }
  line.fail("a term of a form");
}

}  // namespace fusebox
