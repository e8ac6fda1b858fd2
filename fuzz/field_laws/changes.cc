#include "fuzz/field_laws/changes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "ir/table/error.h"

namespace fusebox::fuzz {
namespace {

// The rows of graph tables. Others refer to them by their place in the table.
template <class T>
inline constexpr bool kIsNode =
    std::is_same_v<T, Value> || std::is_same_v<T, Tensor> || std::is_same_v<T, IterDomain> ||
    std::is_same_v<T, Transform> || std::is_same_v<T, Op> || std::is_same_v<T, Region> || std::is_same_v<T, Graph>;
template <class T>
inline constexpr bool kIsTable = HasFields<T>;
template <class T>
inline constexpr bool kIsTable<std::vector<T>> = kIsNode<T>;
template <>
inline constexpr bool kIsTable<std::optional<ConstantBits>> = true;

template <class... T>
struct Structs {
  static constexpr size_t kCount = (kFieldCount<T> + ...);

  // The index of a struct's first member among all members.
  template <class Wanted>
  static constexpr size_t first() {
    size_t result = 0;
    bool found = false;
    ((found = found || std::is_same_v<T, Wanted>, result += found ? 0 : kFieldCount<T>), ...);
    return result;
  }

  static std::vector<FieldKind> kinds() {
    std::vector<FieldKind> result;
    const auto add = [&]<class S>(std::type_identity<S>) {
      std::apply(
          [&](const auto&... fields) {
            (result.push_back({Fields<S>::kName, fields.name, fields.use,
                               kIsTable<std::remove_cvref_t<decltype(std::declval<S&>().*fields.member)>>}),
             ...);
          },
          Fields<S>::kList);
    };
    (add(std::type_identity<T>()), ...);
    return result;
  }
};

using AllStructs = Structs<ConstantBits, Value, Tensor, IterDomain, Transform, Attr, Op, Region, Graph, StepOperand,
                           Step, StepList, Crossing, Segment, Segmentation, InputSpec, InputSpecs, Module, Digest,
                           StageRecord, StageDigest, KeyValue, InputRecord, OutputRecord, Failure, CrossingLayout, Rank,
                           Artifact, KernelImage, LaunchInput, LaunchSlot, LaunchError, LaunchRecord, SignatureAxis,
                           SignatureInput, SignatureFact, InputSignature, CompiledFusion, KeyPart, CacheRecord, Bundle>;

template <class T, class Member>
constexpr size_t kind_of(Member T::* wanted) {
  size_t result = AllStructs::first<T>(), at = 0;
  std::apply(
      [&](const auto&... fields) {
        const auto look = [&](const auto& field) {
          if constexpr (std::is_same_v<decltype(field.member), Member T::*>)
            if (field.member == wanted) result += at;
          ++at;
        };
        (look(fields), ...);
      },
      Fields<T>::kList);
  return result;
}

template <class E>
E beside(E value, size_t rows, bool up) {
  return static_cast<E>((static_cast<size_t>(value) + (up ? 1 : rows - 1)) % rows);
}
// The next kinds in the table, those of the same format first.
template <class E, class Rows>
E of_same_format(E kind, const Rows& rows, size_t which) {
  const size_t own = static_cast<size_t>(kind);
  for (size_t i = 1; i < rows.size(); ++i) {
    const auto& row = rows[(own + i) % rows.size()];
    if (row.format == rows[own].format && which-- == 0) return row.kind;
  }
  return beside(kind, rows.size(), true);
}

// Walks through a value. It counts the changes by kind, or makes one of them.
class Walk {
 public:
  Walk(const ChangeNames& names, ChangeCounts& counts) : names_(names), counts_(&counts) {}
  Walk(const ChangeNames& names, size_t kind, size_t index) : names_(names), wanted_(kind), left_(index) {}

  // Not inlined, like every function with many callers. Otherwise the whole walk would become one function.
  template <HasFields T>
  [[gnu::noinline]] void visit(T& self) {
    const size_t outer = kind_;
    const FieldUse outer_use = use_;
    const Graph* const outer_graph = graph_;
    if constexpr (std::is_same_v<std::remove_const_t<T>, Graph>) graph_ = &self;
    if constexpr (std::is_same_v<T, Graph>) changed_graph_ = &self;
    size_t at = AllStructs::first<std::remove_const_t<T>>();
    visit_fields(self, [&](const auto& field, auto& member) {
      kind_ = at++;
      use_ = {outer_use.digested && field.use.digested, outer_use.printed && field.use.printed,
              outer_use.encoded && field.use.encoded, field.use.derived};
      const Part step(*this, field.name);
      visit(member);
    });
    kind_ = outer;
    use_ = outer_use;
    if constexpr (std::is_same_v<std::remove_const_t<T>, Tensor>) written_out(self);
    if constexpr (std::is_same_v<std::remove_const_t<T>, Region>) without_index(self);
    if constexpr (std::is_same_v<std::remove_const_t<T>, Op>) new_attrs(self.attrs, row_or_null(op_rows(), self.kind));
    if constexpr (std::is_same_v<std::remove_const_t<T>, Step>)
      new_attrs(self.attrs, row_or_null(step_rows(), self.kind));
    graph_ = outer_graph;
  }

  const std::optional<FieldChange>& made() const { return made_; }

 private:
  // Adds a part to the place while that part is visited.
  class Part {
   public:
    Part(Walk& walk, std::string_view name, size_t index = 0) : walk_(walk) {
      if (!walk.counts_) walk.place_.push_back({name, index});
    }
    ~Part() {
      if (!walk_.counts_) walk_.place_.pop_back();
    }
    Part(const Part&) = delete;

   private:
    Walk& walk_;
  };

  // Offers `count` changes of the visited member; `change(i)` makes the i-th.
  template <class Change>
  [[gnu::noinline]] void offer(std::string_view what, size_t count, Change change) {
    if (counts_) {
      (*counts_)[kind_] += count;
    } else if (kind_ == wanted_ && !made_) {
      if (left_ >= count) {
        left_ -= count;
        return;
      }
      change(left_);
      std::string place;
      for (const auto& [name, index] : place_)
        place += name.empty() ? "[" + std::to_string(index) + "]" : (place.empty() ? "" : ".") + std::string(name);
      made_ = FieldChange{kind_, std::move(place), what, use_};
    }
  }
  template <class T, class Value>
  static void set(T& to, Value value) {
    if constexpr (!std::is_const_v<T>) to = std::move(value);
  }

  void visit(auto& number)
    requires std::is_arithmetic_v<std::remove_cvref_t<decltype(number)>>
  {
    using T = std::remove_cvref_t<decltype(number)>;
    if constexpr (std::is_same_v<T, bool>) {
      offer("other", 1, [&](size_t) { set(number, !number); });
    } else if constexpr (std::is_same_v<T, int>) {  // the index width
      offer("other width", 1, [&](size_t) { set(number, 96 - number); });
    } else if constexpr (std::is_floating_point_v<T>) {
      offer("neighbour", 2, [&](size_t i) {
        set(number, i == 0 && std::isfinite(number) ? std::nextafter(number, std::numeric_limits<T>::infinity())
                                                    : (std::isfinite(number) ? -number : T(1)));
      });
    } else {
      using U = std::make_unsigned_t<T>;
      offer("neighbour", 2,
            [&](size_t i) { set(number, static_cast<T>(static_cast<U>(number) + static_cast<U>(i == 0 ? 1 : -1))); });
    }
  }

  void visit(auto& e)
    requires std::is_enum_v<std::remove_cvref_t<decltype(e)>>
  {
    using E = std::remove_cvref_t<decltype(e)>;
    if constexpr (std::is_same_v<E, OpKind>) {
      offer("other of its format", 3, [&](size_t i) { set(e, of_same_format(e, op_rows(), i)); });
    } else if constexpr (std::is_same_v<E, StepKind>) {
      offer("other of its format", 3, [&](size_t i) { set(e, of_same_format(e, step_rows(), i)); });
    } else if constexpr (std::is_same_v<E, ErrorCode>) {
      offer("next", 1, [&](size_t) {
        const auto rows = error_rows();
        const auto it = std::find_if(rows.begin(), rows.end(), [&](const ErrorRow& r) { return r.code == e; });
        set(e, it == rows.end() || it + 1 == rows.end() ? rows.front().code : (it + 1)->code);
      });
    } else {
      size_t rows = 0;
      if constexpr (std::is_same_v<E, Dtype>)
        rows = dtype_rows().size();
      else if constexpr (std::is_same_v<E, AttrKey>)
        rows = attr_rows().size();
      else if constexpr (std::is_same_v<E, Stage>)
        rows = stage_texts().size();
      else
        rows = enum_texts<E>().size();
      offer("beside", rows > 2 ? 2 : 1, [&](size_t i) { set(e, beside(e, rows, i == 0)); });
    }
  }

  size_t rows_of(ValueId) const { return graph_->values.size(); }
  size_t rows_of(OpId) const { return graph_->ops.size(); }
  size_t rows_of(RegionId) const { return graph_->regions.size(); }
  size_t rows_of(TensorId) const { return graph_->tensors.size(); }
  size_t rows_of(DomainId) const { return graph_->domains.size(); }
  size_t rows_of(TransformId) const { return graph_->transforms.size(); }

  template <class Tag>
  void visit_id(auto& id) {
    const size_t rows = rows_of(id);
    if (rows == 0) return;
    if (!id) return offer("set", 2, [&](size_t i) { set(id, Id<Tag>(i == 0 ? 0 : rows - 1)); });
    offer("none", 1, [&](size_t) { set(id, Id<Tag>()); });
    if (rows > 1) offer("beside", 2, [&](size_t i) { set(id, Id<Tag>((id.index + (i == 0 ? 1 : rows - 1)) % rows)); });
  }
  template <class Tag>
  void visit(Id<Tag>& id) {
    visit_id<Tag>(id);
  }
  template <class Tag>
  void visit(const Id<Tag>& id) {
    visit_id<Tag>(id);
  }

  void visit(auto& text)
    requires std::is_same_v<std::remove_cvref_t<decltype(text)>, std::string>
  {
    offer("longer", 1, [&](size_t) { set(text, text + "_"); });
    if (!text.empty()) offer("emptied", 1, [&](size_t) { set(text, std::string()); });
    if (names_.size() < 2) return;
    offer("another name", 1, [&](size_t) {
      const auto it = std::find(names_.begin(), names_.end(), text);
      set(text, it == names_.end() || it + 1 == names_.end() ? names_.front() : *(it + 1));
    });
  }

  template <class T>
  void visit_optional(T& value) {
    using Element = typename T::value_type;
    if (value) {
      visit(*value);
      offer("dropped", 1, [&](size_t) { set(value, std::nullopt); });
    } else {
      offer("set", 1, [&](size_t) { set(value, Element{}); });
    }
  }
  template <class T>
  void visit(std::optional<T>& value) {
    visit_optional(value);
  }
  template <class T>
  void visit(const std::optional<T>& value) {
    visit_optional(value);
  }

  template <class List>
  [[gnu::noinline]] void visit_list(List& list) {
    using T = typename List::value_type;
    if constexpr (std::is_same_v<T, uint8_t>) {
      // All bytes are alike, so the first and the last one suffice.
      if (!list.empty()) visit(list.front()), visit(list.back());
    } else {
      for (size_t i = 0; i < list.size(); ++i) {
        const Part step(*this, {}, i);
        visit(list[i]);
      }
    }
    if constexpr (!kIsNode<T>) {
      const size_t count = std::is_same_v<T, uint8_t> ? std::min<size_t>(list.size(), 1) : list.size();
      if (list.empty()) {
        offer("begun", 1, [&](size_t) {
          if constexpr (!std::is_const_v<List>) list.emplace_back();
        });
        return;
      }
      const auto at = [](size_t i) { return static_cast<std::ptrdiff_t>(i); };
      offer("dropped", count, [&](size_t i) {
        if constexpr (!std::is_const_v<List>) list.erase(list.begin() + at(i));
      });
      offer("repeated", count, [&](size_t i) {
        if constexpr (!std::is_const_v<List>) list.insert(list.begin() + at(i), T(list[i]));
      });
      if (count > 1)
        offer("exchanged", count - 1, [&](size_t i) {
          if constexpr (!std::is_const_v<List>) std::swap(list[i], list[i + 1]);
        });
    }
  }
  template <class T>
  void visit(std::vector<T>& list) {
    visit_list(list);
  }
  template <class T>
  void visit(const std::vector<T>& list) {
    visit_list(list);
  }

  // -- attributes

  // Another value of an attribute; its key tells the kind of value.
  static AttrValue other_value(const Attr& a, size_t which) {
    const AttrKind kind = row_of(a.key).kind;
    if (const auto* number = std::get_if<int64_t>(&a.value)) {
      if (kind == AttrKind::kBool) return int64_t{*number == 0};
      if (const size_t rows = enum_texts_of(kind).size(); rows > 0)
        return static_cast<int64_t>(beside(static_cast<size_t>(*number), rows, which == 0));
      return static_cast<int64_t>(static_cast<uint64_t>(*number) + static_cast<uint64_t>(which == 0 ? 1 : -1));
    }
    if (const auto* dtype = std::get_if<Dtype>(&a.value)) return beside(*dtype, dtype_rows().size(), which == 0);
    if (const auto* text = std::get_if<std::string>(&a.value)) return *text + (which == 0 ? "_" : "\"");
    std::vector<int64_t> list = std::get<std::vector<int64_t>>(a.value);
    switch (which) {
      case 0:
        list.push_back(list.empty() ? 0 : list.back());
        return list;
      case 1:
        list.empty() ? list.push_back(1) : list.pop_back();
        return list;
      case 2:
        std::rotate(list.begin(), list.begin() + (list.empty() ? 0 : 1), list.end());
        return list;
      default:
        if (!list.empty()) list[(which - 3) / 2] += which % 2 == 1 ? 1 : -1;
        return list;
    }
  }
  static size_t count_of_values(const Attr& a) {
    if (const auto* list = std::get_if<std::vector<int64_t>>(&a.value)) return 3 + 2 * list->size();
    return row_of(a.key).kind == AttrKind::kBool ? 1 : 2;
  }
  static AttrValue first_value(AttrKey key) {
    switch (row_of(key).kind) {
      case AttrKind::kInts:
        return std::vector<int64_t>{0};
      case AttrKind::kDtype:
        return Dtype::kFloat;
      case AttrKind::kString:
        return std::string("a");
      case AttrKind::kInt:
      case AttrKind::kBool:
#define FUSEBOX_TYPE(type) case AttrKind::k##type:
        FUSEBOX_ENUM_TYPES(FUSEBOX_TYPE)
#undef FUSEBOX_TYPE
        return int64_t{1};
    }
    return int64_t{1};
  }

  template <class A>
  [[gnu::noinline]] void visit_attrs(A& attrs) {
    for (size_t i = 0; i < attrs.list().size(); ++i) {
      const Part step(*this, {}, i);
      const AttrKey key = attrs.list()[i].key;
      const size_t outer = std::exchange(kind_, kind_of(&Attr::value));
      offer("other value", count_of_values(attrs.list()[i]), [&](size_t which) {
        const AttrValue value = other_value(attrs.list()[i], which);
        if constexpr (!std::is_const_v<A>) attrs.set(key, value);
      });
      // Another key that takes the same kind of value.
      kind_ = kind_of(&Attr::key);
      offer("other key", 1, [&](size_t) {
        if constexpr (!std::is_const_v<A>) {
          const AttrValue value = *attrs.find(key);
          attrs.erase(key);
          for (const AttrRow& row : attr_rows())
            if (row.key != key && row.kind == row_of(key).kind && !attrs.has(row.key)) return attrs.set(row.key, value);
        }
      });
      kind_ = outer;
      offer("dropped", 1, [&](size_t) {
        if constexpr (!std::is_const_v<A>) attrs.erase(key);
      });
    }
  }
  void visit(Attrs& attrs) { visit_attrs(attrs); }
  void visit(const Attrs& attrs) { visit_attrs(attrs); }

  template <class Rows, class Kind>
  static auto row_or_null(const Rows& rows, Kind kind) {
    return static_cast<size_t>(kind) < rows.size() ? &rows[static_cast<size_t>(kind)] : nullptr;
  }
  // Attributes that the row accepts and the node lacks.
  template <class A, class Row>
  void new_attrs(A& attrs, const Row* row) {
    if (!row) return;
    const size_t outer = std::exchange(kind_, kind_of(&Attr::value));
    for (AttrKey key : row->attrs) {
      if (attrs.has(key)) continue;
      const Part step(*this, row_of(key).text);
      offer("set", 1, [&](size_t) {
        if constexpr (!std::is_const_v<A>) attrs.set(key, first_value(key));
      });
    }
    kind_ = outer;
  }

  // Removes a region's index, together with that value's `index_of`.
  template <class T>
  void without_index(T& region) {
    if (!region.index || region.index.index >= graph_->values.size()) return;
    const size_t outer = std::exchange(kind_, kind_of(&Region::index));
    offer("dropped", 1, [&](size_t) {
      if (changed_graph_) (*changed_graph_)[region.index].index_of = RegionId();
      set(region.index, ValueId());
    });
    kind_ = outer;
  }

  // -- empty lists of a tensor, which stand for their default

  template <class T>
  [[gnu::noinline]] void written_out(T& t) {
    const size_t outer = kind_;
    const auto in_range = [&](const std::vector<DomainId>& list) {
      return std::all_of(list.begin(), list.end(), [&](DomainId d) { return d.index < graph_->domains.size(); });
    };
    if (!in_range(t.logical) || !in_range(t.allocation)) return;
    if (t.root.empty()) {
      kind_ = kind_of(&Tensor::root);
      offer("written out", 1, [&](size_t) { set(t.root, t.logical); });
    }
    if (t.loop.empty()) {
      kind_ = kind_of(&Tensor::loop);
      offer("written out", 1, [&](size_t) { set(t.loop, t.logical); });
    }
    if (t.allocation.empty()) {
      kind_ = kind_of(&Tensor::allocation);
      offer("written out", 2, [&](size_t i) {
        std::vector<DomainId> list = allocation_of(*graph_, t);
        if (i == 1) std::reverse(list.begin(), list.end());
        set(t.allocation, std::move(list));
      });
    }
    if (t.contiguity.empty()) {
      kind_ = kind_of(&Tensor::contiguity);
      const std::vector<Contiguity> plain = contiguity_of(*graph_, t);
      offer("written out", 1 + plain.size(), [&](size_t i) {
        std::vector<Contiguity> list = plain;
        if (i > 0 && list[i - 1] == Contiguity::kTrue) list[i - 1] = Contiguity::kFalse;
        set(t.contiguity, std::move(list));
      });
    }
    kind_ = outer;
  }

  const ChangeNames& names_;
  ChangeCounts* counts_ = nullptr;
  size_t wanted_ = 0, left_ = 0;
  size_t kind_ = 0;
  FieldUse use_;
  const Graph* graph_ = nullptr;
  Graph* changed_graph_ = nullptr;
  std::vector<std::pair<std::string_view, size_t>> place_;
  std::optional<FieldChange> made_;
};

}  // namespace

std::span<const FieldKind> field_kinds() {
  static const std::vector<FieldKind> kKinds = AllStructs::kinds();
  return kKinds;
}

std::string text(const FieldKind& kind) { return std::string(kind.owner) + "." + std::string(kind.member); }

std::string text(const FieldChange& change) {
  return text(field_kinds()[change.kind]) + " at " + change.place + ": " + std::string(change.what);
}

ChangeNames names_of(const Graph& g) {
  ChangeNames names;
  for (const Value& v : g.values)
    if (!v.name.empty()) names.push_back(v.name);
  return names;
}

template <class T>
ChangeCounts count_changes(const T& value, const ChangeNames& names) {
  ChangeCounts counts(AllStructs::kCount);
  Walk(names, counts).visit(value);
  return counts;
}

template <class T>
FieldChange make_change(T& value, size_t kind, size_t index, const ChangeNames& names) {
  Walk walk(names, kind, index);
  walk.visit(value);
  check_internal(walk.made().has_value(), "a value has fewer changes than were counted");
  return *walk.made();
}

#define FUSEBOX_CHANGES(T)                                           \
  template ChangeCounts count_changes(const T&, const ChangeNames&); \
  template FieldChange make_change(T&, size_t, size_t, const ChangeNames&);
FUSEBOX_CHANGES(Graph)
FUSEBOX_CHANGES(StepList)
FUSEBOX_CHANGES(Segmentation)
FUSEBOX_CHANGES(InputSpecs)
FUSEBOX_CHANGES(Bundle)
#undef FUSEBOX_CHANGES

}  // namespace fusebox::fuzz
