// Reads names and forms in the text of a kernel plan (print_plan.h describes both).
//
//   PlanNames names(g);
//   FormParser(names).sum(line, view);   // of `128*o#0 + t#1 < %n`, reads `128*o#0 + t#1`
#pragma once

#include <map>
#include <string>
#include <vector>

#include "passes/plan/plan_line.h"
#include "passes/plan/statement_view.h"

namespace fusebox {

// Values and domains by name. Throws kSyntax for a name that the graph has not.
class PlanNames {
 public:
  explicit PlanNames(const Graph& g) : g_(g) {}

  ValueId value(PlanLine& line);  // keeps the blanks behind it
  ValueId whole_value(PlanLine& line);
  ValueId tensor(PlanLine& line);  // keeps the blanks behind it
  ValueId whole_tensor(PlanLine& line);
  DomainId domain(PlanLine& line);

 private:
  const Graph& g_;
  std::map<std::string, ValueId> values_;
};

class FormParser {
 public:
  explicit FormParser(PlanNames& names) : names_(names) {}

  // Reads a sum of terms and makes it in the view's algebra.
  Form sum(PlanLine& line, StatementView& view);

 private:
  Form term(PlanLine& line, StatementView& view, int64_t sign);
  Form factor(PlanLine& line, StatementView& view);
  std::vector<Form> arguments(PlanLine& line, StatementView& view, size_t least, size_t most);

  PlanNames& names_;
  int depth_ = 0;
};

}  // namespace fusebox
