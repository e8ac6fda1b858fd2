// Pictures of a scheduled program: the iteration domains of each tensor, from root to loop, with the transforms between
// them and their groups in an id graph. Each domain has the results of lowering: its index over the loop variables of
// its nest, whether it may leave its extent, and the check that it needs.
//
// `describe` finds the facts, and `render.h` draws them as text, dot, SVG or an HTML page. Both are functions from
// values to values; no file is read or written. Index and check come from the algebra that lowering reads; nothing is
// inferred from a group. A schedule that cannot be lowered is drawn without the unknown facts, and `note` says why.
//
//   %y = exp %x;  split %y.i0 by 4 -> o, t
//   Picture p = describe(g);       // p.domain("%y.i0"): index "4*o + t", may_leave, check "4*o + t < n"
//   to_svg(p, IdGraphKind::kExact)
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/table/defect.h"
#include "passes/identity/id_graphs.h"

namespace fusebox::picture {

inline constexpr size_t kGraphKinds = 5;  // of IdGraphKind

// A domain of a tensor, as one op reads it.
struct Read {
  std::string by;  // the reader's first result, `%y`
  std::string index;
  bool operator==(const Read&) const = default;
};

struct DomainPicture {
  DomainId id;
  size_t tensor = 0;      // of Picture::tensors
  std::string name;       // in its tensor: i0
  std::string full_name;  // %y.i0
  std::string extent;     // in its nest: ceil(n / 4); `1 as n` of a broadcast that is promoted
  std::string made_by;    // outer of split 4 of i0; empty: no transform made it
  IterType iter_type = IterType::kIteration;
  ParallelType parallel = ParallelType::kSerial;  // its own as a loop, or that of the loop that it shares
  std::optional<size_t> allocation;               // its place in an allocation domain other than the logical one
  bool is_inline_at = false;                      // the innermost loop shared with every consumer
  std::array<uint32_t, kGraphKinds> group = {};   // by IdGraphKind: the number of its group, from 1; 0: alone
  std::string index;                              // over the loops of the nest; empty: it has none
  bool may_leave = false;    // holes: nothing shows that the index stays in the extent at every loop point
  std::string check;         // `4*o + t < n`; empty: none of its own
  std::string rule, reason;  // why it is checked or not: `merge`, and the rule's sentence
  std::vector<Read> reads;
};

struct TransformPicture {
  std::string text;                     // split by 4
  std::vector<size_t> inputs, outputs;  // of Picture::domains
};

// Lists of domains are positions in Picture::domains. A list that equals another is left empty, as in ir/graph/graph.h.
struct TensorPicture {
  std::string name;  // %y
  std::string type;  // f32[%n] shared
  std::string op;    // %y = exp %x
  std::vector<size_t> root, logical, allocation, loop, loop_broadcasts;
  std::vector<size_t> domains;  // all, in the order of the lists, then of the transforms
  std::vector<TransformPicture> transforms;
  bool has_nest = false;                // its op has loops: it is no input, and the schedule has nests
  std::vector<std::string> conditions;  // for the op to store: conditions on threads, and the checks of its domains
};

// Why two exact groups became one in the almost-exact graph.
struct Join {
  size_t a = 0, b = 0;  // of Picture::domains
  std::string reason;
};

// Two domains or more, as positions in Picture::domains, in their order.
using Group = std::vector<size_t>;

struct Picture {
  std::string name;                    // of the graph
  std::vector<TensorPicture> tensors;  // in the order of the ops that make them
  std::vector<DomainPicture> domains;
  std::array<std::vector<Group>, kGraphKinds> groups;  // by IdGraphKind; number n at n - 1, by first member
  std::vector<Join> joins;         // of the almost-exact graph, in the order in which they were made
  std::vector<std::string> steps;  // the steps that made the schedule, as text; the caller sets them
  std::string note;                // why the schedule has no nests or cannot be lowered; or empty

  const DomainPicture* domain(std::string_view full_name) const;
};

// The graph must verify. Throws nothing for an illegal schedule. Seeded defects break the drawing as they break
// lowering.
Picture describe(const Graph& scheduled, const Defects& defects = {});

}  // namespace fusebox::picture
