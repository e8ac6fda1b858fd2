// The members of every struct that the state of a program is made of: one row for each. The row says whether digests,
// the text form and the encoding keep the member. These are written by hand, and fuzz/field_laws checks them against
// the rows: each of them must notice a change of a member that it keeps.
//
// Invariants: the rows of a struct name all its members, in order. A member without a row does not compile. A class
// with private members (Attrs) has no rows.
//
//   visit_fields(tensor, [](const auto& field, const auto& member) { … });   // field.name == "logical", …
//   Fields<Transform>::kName == "Transform"; kFieldCount<Transform> == 7
#pragma once

#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "ir/module/module.h"

namespace fusebox {

// The places where a member counts. Equality counts every member.
struct FieldUse {
  bool digested = true;  // if the struct has a digest
  bool printed = true;
  bool encoded = true;
  bool derived = false;  // repeats what other members say, so it cannot change alone
};

template <class T, class Member>
struct Field {
  std::string_view name;
  Member T::* member;
  FieldUse use;
};
template <class T, class Member>
constexpr Field<T, Member> field(std::string_view name, Member T::* member, FieldUse use = {}) {
  return {name, member, use};
}

inline constexpr FieldUse kNotDigested = {.digested = false};
inline constexpr FieldUse kDerived = {.derived = true};

template <class T>
struct Fields;

template <class T>
concept HasFields = requires { Fields<std::remove_const_t<T>>::kList; };
template <HasFields T>
inline constexpr size_t kFieldCount = std::tuple_size_v<std::remove_const_t<decltype(Fields<T>::kList)>>;

// Calls `visit(field, member)` for each member, in order.
template <HasFields T, class Visit>
constexpr void visit_fields(T& self, Visit&& visit) {
  std::apply([&](const auto&... fields) { (visit(fields, self.*fields.member), ...); },
             Fields<std::remove_const_t<T>>::kList);
}
// Calls `visit(field, member of a, member of b)` for each member, in order.
template <HasFields T, class Visit>
constexpr void visit_fields(const T& a, const T& b, Visit&& visit) {
  std::apply([&](const auto&... fields) { (visit(fields, a.*fields.member, b.*fields.member), ...); },
             Fields<T>::kList);
}

// -- the rows

template <>
struct Fields<ConstantBits> {
  static constexpr std::string_view kName = "ConstantBits";
  static constexpr auto kList = std::tuple(field("low", &ConstantBits::low), field("high", &ConstantBits::high));
};

template <>
struct Fields<Value> {
  static constexpr std::string_view kName = "Value";
  static constexpr auto kList =
      std::tuple(field("kind", &Value::kind), field("dtype", &Value::dtype), field("name", &Value::name, kNotDigested),
                 field("def", &Value::def, kDerived), field("constant", &Value::constant),
                 field("index_of", &Value::index_of, kDerived), field("tensor", &Value::tensor, kDerived));
};

template <>
struct Fields<Tensor> {
  static constexpr std::string_view kName = "Tensor";
  static constexpr auto kList = std::tuple(
      field("value", &Tensor::value, kDerived), field("root", &Tensor::root), field("logical", &Tensor::logical),
      field("allocation", &Tensor::allocation), field("loop", &Tensor::loop), field("contiguity", &Tensor::contiguity),
      field("loop_broadcasts", &Tensor::loop_broadcasts), field("transforms", &Tensor::transforms),
      field("memory", &Tensor::memory), field("devices", &Tensor::devices), field("inline_at", &Tensor::inline_at),
      field("circular_depth", &Tensor::circular_depth));
};

template <>
struct Fields<IterDomain> {
  static constexpr std::string_view kName = "IterDomain";
  static constexpr auto kList =
      std::tuple(field("name", &IterDomain::name, kNotDigested), field("tensor", &IterDomain::tensor, kDerived),
                 field("iter_type", &IterDomain::iter_type), field("parallel", &IterDomain::parallel),
                 field("extent", &IterDomain::extent), field("expanded", &IterDomain::expanded),
                 field("def", &IterDomain::def, kDerived), field("stands_for", &IterDomain::stands_for));
};

template <>
struct Fields<Transform> {
  static constexpr std::string_view kName = "Transform";
  static constexpr auto kList = std::tuple(
      field("kind", &Transform::kind, kDerived), field("inputs", &Transform::inputs),
      field("outputs", &Transform::outputs), field("factor", &Transform::factor), field("right", &Transform::right),
      field("inner_split", &Transform::inner_split), field("swizzle", &Transform::swizzle));
};

template <>
struct Fields<Attr> {
  static constexpr std::string_view kName = "Attr";
  static constexpr auto kList = std::tuple(field("key", &Attr::key), field("value", &Attr::value));
};

template <>
struct Fields<Op> {
  static constexpr std::string_view kName = "Op";
  static constexpr auto kList =
      std::tuple(field("kind", &Op::kind), field("operands", &Op::operands), field("results", &Op::results),
                 field("attrs", &Op::attrs), field("regions", &Op::regions));
};

template <>
struct Fields<Region> {
  static constexpr std::string_view kName = "Region";
  static constexpr auto kList = std::tuple(field("index", &Region::index), field("ops", &Region::ops));
};

template <>
struct Fields<Graph> {
  static constexpr std::string_view kName = "Graph";
  static constexpr auto kList = std::tuple(
      field("name", &Graph::name, kNotDigested), field("level", &Graph::level), field("index_bits", &Graph::index_bits),
      field("values", &Graph::values), field("tensors", &Graph::tensors), field("domains", &Graph::domains),
      field("transforms", &Graph::transforms), field("ops", &Graph::ops), field("regions", &Graph::regions));
};

template <>
struct Fields<StepOperand> {
  static constexpr std::string_view kName = "StepOperand";
  static constexpr auto kList = std::tuple(field("value", &StepOperand::value), field("domain", &StepOperand::domain),
                                           field("integer", &StepOperand::integer));
};

template <>
struct Fields<Step> {
  static constexpr std::string_view kName = "Step";
  static constexpr auto kList = std::tuple(field("kind", &Step::kind), field("operands", &Step::operands),
                                           field("results", &Step::results), field("attrs", &Step::attrs));
};

template <>
struct Fields<StepList> {
  static constexpr std::string_view kName = "StepList";
  static constexpr auto kList =
      std::tuple(field("name", &StepList::name, kNotDigested), field("graph", &StepList::graph, kNotDigested),
                 field("steps", &StepList::steps));
};

template <>
struct Fields<Crossing> {
  static constexpr std::string_view kName = "Crossing";
  static constexpr auto kList =
      std::tuple(field("value", &Crossing::value), field("allocation_order", &Crossing::allocation_order),
                 field("contiguity", &Crossing::contiguity), field("alias", &Crossing::alias));
};

template <>
struct Fields<Segment> {
  static constexpr std::string_view kName = "Segment";
  static constexpr auto kList = std::tuple(
      field("name", &Segment::name, kNotDigested), field("executor", &Segment::executor), field("ops", &Segment::ops),
      field("inputs", &Segment::inputs), field("outputs", &Segment::outputs), field("steps", &Segment::steps));
};

template <>
struct Fields<Segmentation> {
  static constexpr std::string_view kName = "Segmentation";
  static constexpr auto kList =
      std::tuple(field("graph", &Segmentation::graph, kNotDigested), field("segments", &Segmentation::segments));
};

// Input specs have no digest.
template <>
struct Fields<InputSpec> {
  static constexpr std::string_view kName = "InputSpec";
  static constexpr auto kList = std::tuple(
      field("name", &InputSpec::name, kNotDigested), field("dtype", &InputSpec::dtype, kNotDigested),
      field("is_scalar", &InputSpec::is_scalar, kNotDigested), field("shape", &InputSpec::shape, kNotDigested),
      field("strides", &InputSpec::strides, kNotDigested), field("offset", &InputSpec::offset, kNotDigested),
      field("generator", &InputSpec::generator, kNotDigested), field("seed", &InputSpec::seed, kNotDigested),
      field("low", &InputSpec::low, kNotDigested), field("high", &InputSpec::high, kNotDigested),
      field("value", &InputSpec::value, kNotDigested));
};

template <>
struct Fields<InputSpecs> {
  static constexpr std::string_view kName = "InputSpecs";
  static constexpr auto kList =
      std::tuple(field("graph", &InputSpecs::graph, kNotDigested), field("where", &InputSpecs::where, kNotDigested),
                 field("specs", &InputSpecs::specs, kNotDigested));
};

template <>
struct Fields<Module> {
  static constexpr std::string_view kName = "Module";
  static constexpr auto kList =
      std::tuple(field("graphs", &Module::graphs), field("step_lists", &Module::step_lists),
                 field("segmentations", &Module::segmentations), field("input_specs", &Module::input_specs));
};

// -- the check that no row is missing

// The members of a struct with `count` members, in order. A wrong count does not compile.
template <size_t count, class T>
constexpr auto tie_members(T& t) {
  static_assert(count >= 1 && count <= 14, "add the next number of names below");
  if constexpr (count == 1) {
    auto& [a] = t;
    return std::tie(a);
  } else if constexpr (count == 2) {
    auto& [a, b] = t;
    return std::tie(a, b);
  } else if constexpr (count == 3) {
    auto& [a, b, c] = t;
    return std::tie(a, b, c);
  } else if constexpr (count == 4) {
    auto& [a, b, c, d] = t;
    return std::tie(a, b, c, d);
  } else if constexpr (count == 5) {
    auto& [a, b, c, d, e] = t;
    return std::tie(a, b, c, d, e);
  } else if constexpr (count == 6) {
    auto& [a, b, c, d, e, f] = t;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (count == 7) {
    auto& [a, b, c, d, e, f, g] = t;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (count == 8) {
    auto& [a, b, c, d, e, f, g, h] = t;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (count == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = t;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (count == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (count == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (count == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (count == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = t;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n);
  }
}

// Whether the members have the types of the rows, in order, and no row stands twice.
template <HasFields T>
constexpr bool names_all_members() {
  return std::apply(
      [](const auto&... fields) {
        using Members = decltype(tie_members<kFieldCount<T>>(std::declval<T&>()));
        using Rows = std::tuple<std::remove_reference_t<decltype(std::declval<T&>().*fields.member)>&...>;
        const auto is = [](const auto& a, const auto& b) {
          if constexpr (std::is_same_v<decltype(a.member), decltype(b.member)>)
            return a.member == b.member;
          else
            return false;
        };
        const auto count = [&](const auto& one) { return (size_t{is(one, fields)} + ...); };
        return std::is_same_v<Members, Rows> && ((count(fields) == 1) && ...);
      },
      Fields<T>::kList);
}

static_assert(names_all_members<ConstantBits>() && names_all_members<Value>() && names_all_members<Tensor>() &&
              names_all_members<IterDomain>() && names_all_members<Transform>() && names_all_members<Attr>() &&
              names_all_members<Op>() && names_all_members<Region>() && names_all_members<Graph>());
static_assert(names_all_members<StepOperand>() && names_all_members<Step>() && names_all_members<StepList>() &&
              names_all_members<Crossing>() && names_all_members<Segment>() && names_all_members<Segmentation>() &&
              names_all_members<InputSpec>() && names_all_members<InputSpecs>() && names_all_members<Module>());

}  // namespace fusebox
