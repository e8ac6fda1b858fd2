// Builds a kernel graph region by region. Pure scalar ops are value-numbered: the same op on the same operands gives
// the earlier result, if that is visible. Constants and the neutral elements of index arithmetic are folded.
//
// Invariants: an op is appended to the current region. A result is visible in its region and in the regions inside it.
// No two values have one name.
//
//   KernelBuilder b("k", 64);
//   ValueId i = b.begin_for(b.index(0), n, b.index(1), false);
//   b.add(i, b.index(0)) == i
//   b.end();
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "ir/graph/graph.h"

namespace fusebox {

class KernelBuilder {
 public:
  KernelBuilder(std::string name, int index_bits);

  ValueId constant(Dtype dtype, ConstantBits bits);
  ValueId index(int64_t value) { return constant(Dtype::kIndex, {static_cast<uint64_t>(value), 0}); }
  ValueId bit(bool value) { return constant(Dtype::kBool, {value ? 1u : 0u, 0}); }
  std::optional<int64_t> constant_of(ValueId v) const { return constant_integer(graph_, v); }

  // A pure scalar op.
  ValueId op(OpKind kind, std::vector<ValueId> operands, Dtype result, Attrs attrs = {});
  // Index arithmetic with folding. `nonnegative`: the dividend is >= 0 and the divisor > 0.
  ValueId add(ValueId a, ValueId b);
  ValueId sub(ValueId a, ValueId b);
  ValueId mul(ValueId a, ValueId b);
  ValueId floor_div(ValueId a, ValueId b, bool nonnegative);
  ValueId floor_mod(ValueId a, ValueId b, bool nonnegative);
  ValueId ceil_div(ValueId a, ValueId b);
  ValueId minimum(ValueId a, ValueId b);
  ValueId maximum(ValueId a, ValueId b);
  ValueId compare(OpKind kind, ValueId a, ValueId b);
  ValueId logical_and(ValueId a, ValueId b);
  ValueId where(ValueId condition, ValueId a, ValueId b);

  // An op that has effects, or whose result must not be shared (a load). `results` are the dtypes of its results.
  std::vector<ValueId> effect(OpKind kind, std::vector<ValueId> operands, std::vector<Dtype> results, Attrs attrs = {});
  ValueId load(ValueId buffer, ValueId at, ValueId predicate = {}, ValueId otherwise = {}, Attrs attrs = {});
  void store(ValueId buffer, ValueId at, ValueId value, ValueId predicate = {}, Attrs attrs = {});

  // Regions. A loop of one iteration is a loop here; the caller may leave it out.
  ValueId begin_for(ValueId start, ValueId stop, ValueId step, bool unroll);
  void begin_if(ValueId predicate);
  void begin_else();  // call it right after `end` of the if
  void end();
  RegionId region() const { return scopes_.back().region; }
  // The last op of the current region, or none.
  OpId last() const;
  // Continues the region of the last op, which must be an `if` that has just ended. Its value numbers are kept.
  void reopen_if();

  // A buffer at the current position: local (its size is constant) or shared (at a byte offset).
  ValueId allocate(Dtype dtype, MemoryType memory, ValueId size, ValueId offset, int64_t align, std::string_view name);
  // Parameters. `finish` puts them before the body, in the order of the calls.
  ValueId tensor_parameter(Dtype dtype, std::string_view name);
  ValueId scalar_parameter(Dtype dtype, std::string_view name);

  // Keeps a name for a value that is put into the graph later, so that no value made here takes it.
  void reserve(std::string_view name) { names_.insert(std::string(name)); }

  const std::vector<OpId>& parameters() const { return parameters_; }
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  Graph finish();

 private:
  struct Key {
    OpKind kind;
    Dtype dtype;
    std::vector<ValueId> operands;
    std::vector<int64_t> attrs;
    auto operator<=>(const Key&) const = default;
  };
  struct Scope {
    RegionId region;
    std::map<Key, ValueId> numbered;
  };

  // A value with this name, or with a number behind it if the name is taken.
  ValueId new_value(Dtype dtype, std::string_view name);
  ValueId new_scalar(Dtype dtype, char prefix);
  ValueId new_buffer(Dtype dtype, MemoryType memory, std::string_view name, ValueId extent);
  std::optional<ValueId> find(const Key& key) const;

  Graph graph_;
  std::vector<Scope> scopes_;
  Scope ended_;  // the scope that ended last
  std::map<std::tuple<Dtype, uint64_t, uint64_t>, ValueId> constants_;
  std::vector<OpId> parameters_;
  std::unordered_set<std::string> names_;
  size_t named_ = 0;  // values whose names are in names_
  uint32_t next_name_ = 0;
};

}  // namespace fusebox
