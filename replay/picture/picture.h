// Pictures of a scheduled program: the iteration domains of each tensor, from root to loop, with the transforms between
// them, the groups that an id graph puts them in, and what lowering computes of each: its index over the loop variables
// of its nest, whether it may leave its extent, and the check that it needs.
//
// `describe` finds out, `render.h` draws: as text, dot, SVG or an HTML page. Functions from values to strings: no file
// is read or written. Index and check are those that lowering reads off the same algebra; nothing is inferred from a
// group. A schedule that cannot be lowered is drawn all the same, with `note` saying why and without what is unknown.
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

// What one op that reads the tensor gives a domain of it.
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
  std::string made_by;    // outer of split 4 of i0; empty: by no transform
  IterType iter_type = IterType::kIteration;
  ParallelType parallel = ParallelType::kSerial;  // of a loop, or of the loop that it shares
  std::optional<size_t> allocation;               // its place in an allocation domain that is not the logical one
  bool is_inline_at = false;                      // the innermost loop shared with every consumer
  std::array<uint32_t, kGraphKinds> group = {};   // by IdGraphKind: the number of its group, from 1; 0: alone
  std::string index;                              // over the loops of the nest; empty: it has none
  bool may_leave = false;    // holes: at some loop point the index is not shown to be in the extent
  std::string check;         // `4*o + t < n`; empty: none of its own
  std::string rule, reason;  // why it is checked or why not: `merge`, and what that says
  std::vector<Read> reads;
};

struct TransformPicture {
  std::string text;                     // split by 4
  std::vector<size_t> inputs, outputs;  // of Picture::domains
};

// Lists of domains are positions in Picture::domains. One that equals another is left empty, as in ir/graph/graph.h.
struct TensorPicture {
  std::string name;  // %y
  std::string type;  // f32[%n] shared
  std::string op;    // %y = exp %x
  std::vector<size_t> root, logical, allocation, loop, loop_broadcasts;
  std::vector<size_t> domains;  // all, in the order of the lists, then of the transforms
  std::vector<TransformPicture> transforms;
  bool has_nest = false;                // its op has loops: it is no input, and the schedule has nests
  std::vector<std::string> conditions;  // what must hold for the op to store: of threads, and the checks of its domains
};

// Why two exact groups became one in the almost-exact graph.
struct Join {
  size_t a = 0, b = 0;  // of Picture::domains
  std::string reason;
};

// Two domains or more, positions in Picture::domains, in their order.
using Group = std::vector<size_t>;

struct Picture {
  std::string name;                    // of the graph
  std::vector<TensorPicture> tensors;  // in the order of the ops that make them
  std::vector<DomainPicture> domains;
  std::array<std::vector<Group>, kGraphKinds> groups;  // by IdGraphKind; number n at n - 1, by first member
  std::vector<Join> joins;         // of the almost-exact graph, in the order in which they were made
  std::vector<std::string> steps;  // that made the schedule, as text; the caller's
  std::string note;                // why the schedule has no nests or cannot be lowered; or empty

  const DomainPicture* domain(std::string_view full_name) const;
};

// The graph must verify; throws nothing for a schedule that is not legal. Seeded defects break what is drawn as they
// break what is lowered.
Picture describe(const Graph& scheduled, const Defects& defects = {});

}  // namespace fusebox::picture
