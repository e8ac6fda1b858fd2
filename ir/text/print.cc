// Prints graphs: ops with their operands, attributes, types and regions.
#include "ir/text/print.h"

#include "ir/infer/inferred.h"
#include "ir/token/printer.h"

namespace fusebox {
namespace {

class GraphPrinter {
 public:
  GraphPrinter(const Graph& g, Printer& printer) : g_(g), printer_(printer), inferred_(g) {}

  void graph(int depth) {
    // The text calls a math graph a fusion.
    printer_.add(g_.level == Level::kMath ? "fusion" : text(g_.level));
    if (!g_.name.empty()) {
      printer_.add(' ');
      printer_.add_name('@', g_.name);
    }
    if (g_.level == Level::kKernel || g_.index_bits != 64) {
      printer_.add(" index ");
      printer_.add_integer(g_.index_bits);
    }
    printer_.add(' ');
    region(Graph::body(), depth);
    printer_.add('\n');
  }

  // With `exactly`, the op parses to itself. Otherwise it has the types that a user sees, and no regions.
  void op(OpId id, int depth, bool exactly) {
    const Op& op = g_[id];
    const OpRow& row = row_of(op.kind);
    if (!op.results.empty()) {
      printer_.add_list(op.results, [&](ValueId v) { printer_.add_name('%', g_[v].name); });
      printer_.add(" = ");
    }
    printer_.add(row.text);
    printer_.add_operands(
        *row.format, op.operands.size(), [&](size_t i) { return !op.operands[i]; },
        [&](size_t i) { printer_.add_value(g_, op.operands[i]); });
    printer_.add_attrs(op.attrs);
    if (!op.results.empty() && !types_are_understood(op, row)) {
      // An input is written as its type. Any other op has a colon before its types.
      printer_.add(op.kind == OpKind::kInput ? " " : " : ");
      const TypeForm form = exactly ? type_form(id) : TypeForm::kUser;
      printer_.add_list(op.results, [&](ValueId v) { printer_.add_type(g_, v, form, depth); });
    }
    if (!exactly) return;
    for (size_t i = 0; i < op.regions.size(); ++i) {
      printer_.add(i == 0 ? " " : " else ");
      region(op.regions[i], depth);
    }
  }

 private:
  // Whether the line needs no types. `size`, `thread_index` and similar ops take no operands and give scalars of dtype
  // index.
  bool types_are_understood(const Op& op, const OpRow& row) const {
    if (row.format->slot_count != 0 || row.format->results != -1) return false;
    for (ValueId v : op.results)
      if (g_[v].kind != ValueKind::kScalar || g_[v].dtype != Dtype::kIndex) return false;
    return true;
  }

  TypeForm type_form(OpId id) {
    if (g_.level == Level::kScheduled) return TypeForm::kNamed;
    if (g_.level == Level::kMath && g_[id].kind != OpKind::kInput)
      return inferred_.is_inferred(id) ? TypeForm::kUser : TypeForm::kNamed;
    return TypeForm::kExact;
  }

  void region(RegionId id, int depth) {
    printer_.add('{');
    if (const ValueId index = g_[id].index) {
      printer_.add(" index ");
      printer_.add_name('%', g_[index].name);
      if (g_[index].kind != ValueKind::kScalar || g_[index].dtype != Dtype::kIndex) {
        printer_.add(" : ");
        printer_.add_type(g_, index, TypeForm::kExact, depth);
      }
    }
    for (OpId op_id : g_[id].ops) {
      printer_.add_line(depth + 1);
      op(op_id, depth + 1, true);
    }
    printer_.add_line(depth);
    printer_.add('}');
  }

  const Graph& g_;
  Printer& printer_;
  InferredTypes inferred_;
};

}  // namespace

std::string print(const Graph& g, const Defects& defects) {
  Printer p;
  p.defects = defects;
  GraphPrinter(g, p).graph(0);
  return std::move(p.out);
}

std::string print_op(const Graph& g, OpId op) {
  Printer p;
  GraphPrinter(g, p).op(op, 0, false);
  return std::move(p.out);
}

}  // namespace fusebox
