// Canonical bytes: every field of a value, in the order of its struct. Structured bindings name all members, so a new
// member does not compile until it is written here.
#include <algorithm>
#include <map>
#include <tuple>

#include "ir/canonical/canonical.h"

namespace fusebox {
namespace {

// Must change when the meaning of a byte changes.
constexpr std::string_view kFormat = "fusebox canonical 1";

Attrs without_fast(Attrs attrs) {
  attrs.erase(AttrKey::kFast);
  return attrs;
}

class ByteWriter {
 public:
  explicit ByteWriter(char what, const Defects& defects = {}) : defects_(defects) {
    bytes_ = kFormat;
    bytes_ += what;
  }
  std::string take() { return std::move(bytes_); }

  // Writes seven bits a byte. Every byte but the last has its top bit set.
  void number(uint64_t n) {
    for (; n >= 0x80; n >>= 7) bytes_ += static_cast<char>(n | 0x80);
    bytes_ += static_cast<char>(n);
  }
  void integer(int64_t n) { number(static_cast<uint64_t>(n) << 1 ^ static_cast<uint64_t>(n >> 63)); }
  void string(std::string_view s) {
    number(s.size());
    bytes_ += s;
  }
  template <class E>
    requires std::is_enum_v<E>
  void put(E e) {
    number(static_cast<uint64_t>(e));
  }
  template <class Tag>
  void put(Id<Tag> id) {
    number((uint64_t{id.index} + 1) & 0xffffffffu);  // none is 0
  }
  void put(bool b) { number(b ? 1 : 0); }
  void put(int64_t n) { integer(n); }
  void put(const std::string& s) { string(s); }
  void put(const ConstantBits& bits) {
    const auto& [low, high] = bits;
    number(low);
    number(defects_.has(Defect::kDigestImaginary) ? 0 : high);
  }
  template <class T>
  void put(const std::optional<T>& v) {
    put(v.has_value());
    if (v) put(*v);
  }
  template <class T>
  void put(const std::vector<T>& list) {
    number(list.size());
    for (const T& item : list) put(item);
  }
  void put(const Attrs& attrs) {
    number(attrs.list().size());
    for (const Attr& attr : attrs.list()) {
      const auto& [key, value] = attr;
      put(key);
      number(value.index());
      std::visit([&](const auto& v) { put(v); }, value);
    }
  }
  void put(const Value& v) {
    const auto& [kind, dtype, name, def, constant, index_of, tensor] = v;
    (void)name;
    put(kind), put(defects_.has(Defect::kDigestDtype) ? Dtype{} : dtype), put(def), put(constant), put(index_of),
        put(tensor);
  }
  void put(const Tensor& t) {
    const auto& [value, root, logical, allocation, loop, contiguity, loop_broadcasts, transforms, memory, devices,
                 inline_at, circular_depth] = t;
    // Recorded digests depend on this order of the fields.
    const bool has_layout = !defects_.has(Defect::kDigestLayout);
    put(value), put(root), put(logical);
    if (has_layout) put(allocation);
    put(loop);
    if (has_layout) put(contiguity);
    put(loop_broadcasts), put(transforms);
    put(defects_.has(Defect::kDigestMemory) ? MemoryType{} : memory), put(devices), put(inline_at), put(circular_depth);
  }
  void put(const IterDomain& d) {
    const auto& [name, tensor, iter_type, parallel, extent, expanded, def, stands_for] = d;
    (void)name;
    put(tensor), put(iter_type), put(defects_.has(Defect::kDigestParallel) ? ParallelType{} : parallel), put(extent),
        put(defects_.has(Defect::kDigestExpanded) ? ValueId() : expanded), put(def), put(stands_for);
  }
  void put(const Transform& t) {
    const auto& [kind, inputs, outputs, factor, right, inner_split, swizzle] = t;
    put(kind), put(inputs), put(outputs), put(factor), put(right),
        put(inner_split || defects_.has(Defect::kDigestSplitSide)), put(swizzle);
  }
  void put(const Op& op) {
    const auto& [kind, operands, results, attrs, regions] = op;
    put(kind), put(operands), put(results);
    if (!defects_.has(Defect::kDigestAttribute))
      put(defects_.has(Defect::kPrecisionNotDigested) ? without_fast(attrs) : attrs);
    put(regions);
  }
  void put(const Region& r) {
    const auto& [index, ops] = r;
    put(index), put(ops);
  }
  void put_graph(const Graph& g) {
    const auto& [name, level, index_bits, values, tensors, domains, transforms, ops, regions] = g;
    (void)name;
    put(level), put(int64_t{index_bits}), put(values), put(tensors), put(domains), put(transforms), put(ops),
        put(regions);
  }
  void put(const StepOperand& o) {
    const auto& [value, domain, integer] = o;
    put(value), put(domain), put(defects_.has(Defect::kDigestStepNumber) ? int64_t{0} : integer);
  }
  void put(const Step& s) {
    const auto& [kind, operands, results, attrs] = s;
    put(kind), put(operands), put(results), put(attrs);
  }
  void put(const Crossing& c) {
    const auto& [value, allocation_order, contiguity, alias] = c;
    put(value);
    if (!defects_.has(Defect::kDigestCrossing)) put(allocation_order), put(contiguity);
    put(alias);
  }

 private:
  const Defects defects_;
  std::string bytes_;
};

// Maps the names of a graph's values and domains to those of its canonical form.
class NameMap {
 public:
  explicit NameMap(const Graph& g) : g_(g), names_(canonical_names(g)) {
    for (size_t i = 0; i < g.values.size(); ++i)
      if (!g.values[i].name.empty() && !names_[i].empty()) by_name_[g.values[i].name] = ValueId(i);
  }

  // The value of this name. Nothing if the value is dead or a step makes it.
  std::optional<ValueId> find(const std::string& name) const {
    const auto it = by_name_.find(name);
    return it == by_name_.end() ? std::nullopt : std::optional(it->second);
  }
  // The canonical name. A name that steps made stays, and gets a mark if it looks like a canonical name.
  std::string value(const std::string& name) const {
    if (const auto v = find(name)) return names_[v->index];
    const bool reads_canonical = name.size() > 1 && name[0] == 'v' &&
                                 std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
    return reads_canonical ? "\x01" + name : name;
  }
  // The position of a value in the canonical order.
  size_t position(const std::string& name) const {
    const auto v = find(name);
    return v ? static_cast<size_t>(std::stoull(names_[v->index].substr(1))) : static_cast<size_t>(-1);
  }
  // A root domain, logical domain or loop broadcast becomes its position in these lists. Other domains keep their
  // names.
  std::string domain(const std::string& value_name, const std::string& domain_name) const {
    const auto v = find(value_name);
    if (!v || !g_.is_tensor(*v)) return domain_name;
    const Tensor& t = g_.tensor_of(*v);
    size_t next = 0;
    for (const auto* list : {&t.root, &t.logical, &t.loop_broadcasts})
      for (DomainId d : *list) {
        if (g_[d].name == domain_name) return "\x01" + std::to_string(next);
        ++next;
      }
    return domain_name;
  }
  Step step(Step s) const {
    for (StepOperand& o : s.operands) {
      if (!o.domain.empty()) o.domain = domain(o.value, o.domain);
      if (!o.value.empty()) o.value = value(o.value);
    }
    return s;
  }

 private:
  const Graph& g_;
  std::vector<std::string> names_;
  std::map<std::string, ValueId, std::less<>> by_name_;
};

// The segment with canonical names and with its lists in canonical order.
Segment canonical_segment(const NameMap& names, const Segment& from) {
  Segment to = from;
  to.name.clear();
  std::erase_if(to.ops, [&](const std::string& op) { return !names.find(op); });
  std::sort(to.ops.begin(), to.ops.end(),
            [&](const auto& a, const auto& b) { return names.position(a) < names.position(b); });
  for (std::string& op : to.ops) op = names.value(op);
  for (auto* list : {&to.inputs, &to.outputs}) {
    std::stable_sort(list->begin(), list->end(), [&](const Crossing& a, const Crossing& b) {
      return names.position(a.value) < names.position(b.value);
    });
    for (Crossing& c : *list) {
      c.value = names.value(c.value);
      if (!c.alias.empty()) c.alias = names.value(c.alias);
    }
  }
  for (Step& s : to.steps) s = names.step(std::move(s));
  return to;
}

}  // namespace

std::string canonical_bytes(const Graph& g, const Defects& defects) {
  ByteWriter w('g', defects);
  w.put_graph(canonicalize(g, defects));
  return w.take();
}

std::string canonical_bytes(std::span<const Step> steps, const Defects& defects) {
  ByteWriter w('s', defects);
  w.number(steps.size());
  for (const Step& s : steps) w.put(s);
  return w.take();
}

std::string canonical_bytes(const Graph& g, std::span<const Step> steps, const Defects& defects) {
  const NameMap names(g);
  std::vector<Step> renamed;
  for (const Step& s : steps) renamed.push_back(names.step(s));
  return canonical_bytes(std::span<const Step>(renamed), defects);
}

std::string canonical_bytes(const Graph& g, const Segmentation& s, const Defects& defects) {
  const NameMap names(g);
  std::vector<std::pair<std::vector<size_t>, Segment>> segments;
  for (const Segment& from : s.segments) {
    std::vector<size_t> positions;
    for (const std::string& op : from.ops)
      if (names.find(op)) positions.push_back(names.position(op));
    std::sort(positions.begin(), positions.end());
    if (!positions.empty() || from.ops.empty())
      segments.emplace_back(std::move(positions), canonical_segment(names, from));
  }
  std::stable_sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  ByteWriter w('p', defects);
  w.number(segments.size());
  for (const auto& [positions, segment] : segments) {
    (void)positions;
    const auto& [name, executor, ops, inputs, outputs, steps] = segment;
    w.put(name), w.put(executor), w.put(ops), w.put(inputs), w.put(outputs), w.put(steps);
  }
  return w.take();
}

}  // namespace fusebox
