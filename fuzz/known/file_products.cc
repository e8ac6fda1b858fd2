// The file tests of products with what a library computes behind them (file_kinds.h).
#include <fmt/format.h>

#include "fuzz/known/file_kinds.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/product_call.h"
#include "ir/table/op.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"

namespace fusebox::fuzz {
namespace {

std::string products_of(const Graph& given) {
  const Graph g = canonical_order(given);
  std::string out = "@" + g.name + ": ";
  if (const auto call = product_call(g))
    out += fmt::format("one call of {} with `{}`, scale {}, bias {}, for {}\n",
                       print_value(g, g[call->product].results[0]), epilogue_text(g, *call),
                       call->scale ? print_value(g, call->scale) : "none",
                       call->bias ? print_value(g, call->bias) : "none", print_value(g, call->result));
  else
    out += "no single call\n";
  const auto readers = uses(g);
  for (const OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    if (!demands(op.kind, kLibrary)) continue;
    const std::string why = why_no_epilogue(g, id, readers);
    out += fmt::format("  {} {}", print_value(g, op.results[0]), may_stay_wide(g, id) ? "may stay wide" : "is rounded");
    for (const ValueId scale : scales_of(g, id)) out += ", scaled by " + print_value(g, scale);
    out += why.empty() ? "\n" : "; alone, for " + why + "\n";
  }
  return out;
}

}  // namespace

std::string products_text(const Module& m, const FileRequest&) {
  verify(m);
  std::string out;
  for (const Graph& g : m.graphs) out += products_of(g);
  return out;
}

}  // namespace fusebox::fuzz
