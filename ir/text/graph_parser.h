// `GraphParser` reads one graph: names, ops with their regions (parse.cc), types (parse_type.cc).
//
// Invariants: a name gets the id of its value at its first mention, defined or not. If the value is still undefined at
// the end, the error is kUnknownName at this mention.
//
//   Parser p("fusion @f {\n  %x = input f32[4] contiguous\n  output %x\n}");
//   Graph g = GraphParser(p).run();
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/text/parser.h"

namespace fusebox {

// The level of a graph that starts with this word: `fusion`, `scheduled`, `kernel`, `host`. Nothing for another word.
std::optional<Level> level_of_word(const Token& t);

class GraphParser {
 public:
  explicit GraphParser(Parser& parser) : parser_(parser) {}

  Graph run();

 private:
  // A dimension or declaration as written.
  struct Dimension {
    const Token* name = nullptr;        // none: unnamed
    const Token* stands_for = nullptr;  // behind the word `like`
    bool declares = true;               // false: only a name
    IterDomain domain;
  };
  // A type as written. It is either taken as it stands or compared with the inferred type.
  struct Type {
    const Token* start = nullptr;
    ValueKind kind = ValueKind::kScalar;
    Dtype dtype = Dtype::kIndex;
    bool named = false;
    std::vector<Dimension> dimensions;
    std::optional<MemoryType> memory;
    std::vector<Contiguity> contiguity;
  };

  // -- values (parse.cc)
  ValueId mention(const Token& name);
  ValueId define(const Token& name);
  ValueId operand();
  ValueId scalar_operand();  // an extent or factor
  ValueId constant_of(const Literal& literal);
  void finish();
  void check_scalars() const;

  // -- ops (parse.cc)
  void region(RegionId id, int depth);
  void statement(RegionId region, int depth);
  void make_room();
  void limit_rank(OpId id, const Token& start) const;
  OpKind op_kind();
  std::vector<Type> types(const std::vector<ValueId>& results);
  void infer_results(OpId id, const Token& start, const std::vector<Type>& types);
  bool gives_tensors(OpId id) const;
  void make_tensor(ValueId value);
  void adopt_results(OpId id, const std::vector<ValueId>& named, const Token& start);
  void check_annotation(ValueId value, const Type& type);

  // -- types (parse_type.cc)
  Type type();
  void dimension(Type& type);
  Dimension declaration();
  void extent(IterDomain& d);
  // Gives a value the type as written, and reads its details in braces.
  void take_type(ValueId value, const Type& type);
  // The next members serve while the domains of one tensor are read.
  DomainId refer(const Token& name);
  DomainId take(const Dimension& d);
  DomainId refer_here();
  std::vector<DomainId> references(std::string_view where);
  std::vector<DomainId> declarations(std::string_view where);
  void details(TensorId tensor);
  void transform(TensorId tensor);
  bool at_transform() const;
  void check_order(TensorId tensor, const Token& at) const;

  // A domain that stands for another one, which the text may declare later.
  struct StandIn {
    DomainId domain;
    const Token* stands_for;
  };
  void resolve_stand_ins();

  Parser& parser_;
  Graph g_;
  std::unordered_map<std::string_view, ValueId> names_;
  std::vector<const Token*> first_mention_;  // for each value: its first mention in the text, or null
  std::vector<bool> is_defined_;             // for each value
  std::map<std::tuple<Dtype, uint64_t, uint64_t>, ValueId> constants_;
  std::vector<ValueId> inferred_values_;  // made by inference; they are renamed if the text uses their names
  std::vector<StandIn> stand_ins_;
  TensorId tensor_;  // the tensor whose domains are being read
  std::unordered_map<std::string_view, DomainId> domain_names_;
  std::vector<std::pair<const Token*, DomainId>> undeclared_;
  std::vector<bool> is_declared_;  // for each domain
};

}  // namespace fusebox
