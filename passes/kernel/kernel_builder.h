// Builds a kernel graph region by region. Pure scalar ops are value-numbered: the same op on the same operands, where
// an earlier result is visible, gives that result. Folds constants and the neutral elements of index arithmetic.
//
//   KernelBuilder b("k", 64);
//   ValueId i = b.begin_for(b.index(0), n, b.index(1), false);
//   b.index_op(OpKind::kAdd, i, b.index(0)) == i
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

  // An op with effects, or whose result must not be shared (a load); results as given.
  std::vector<ValueId> effect(OpKind kind, std::vector<ValueId> operands, std::vector<Dtype> results, Attrs attrs = {});
  ValueId load(ValueId buffer, ValueId at, ValueId predicate = {}, ValueId otherwise = {});
  void store(ValueId buffer, ValueId at, ValueId value, ValueId predicate = {});

  // Regions. A loop of one iteration is still a loop here: the caller leaves it out.
  ValueId begin_for(ValueId start, ValueId stop, ValueId step, bool unroll);
  void begin_if(ValueId predicate);
  void begin_else();  // right after `end` of the if
  void end();
  RegionId region() const { return scopes_.back().region; }
  // The last op of the current region, or none.
  OpId last() const;
  // Continues the region of the last op, which must be an `if` that was just ended, with what is known in it.
  void reopen_if();

  // A buffer: local (size constant) or shared (at a byte offset). Placed at the current position.
  ValueId allocate(Dtype dtype, MemoryType memory, ValueId size, ValueId offset, int64_t align, std::string_view name);
  // Parameters, put before the body in the order of the calls by `finish`.
  ValueId tensor_parameter(Dtype dtype, std::string_view name);
  ValueId scalar_parameter(Dtype dtype, std::string_view name);

  // Keeps a name for what is put into the graph later, so that no value that is made here takes it.
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

  // With this name, numbered if taken.
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
  size_t named_ = 0;  // values whose names are in it
  uint32_t next_name_ = 0;
};

}  // namespace fusebox
