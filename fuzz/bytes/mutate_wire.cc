#include "fuzz/bytes/mutate_wire.h"

#include <algorithm>
#include <cstring>

#include "fuzz/base/boundary_number.h"
#include "ir/table/error.h"
#include "serde/decode.h"
#include "serde/encode.h"

namespace fusebox::fuzz {
namespace {

template <class T>
T load(std::span<const uint8_t> bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}
template <class T>
void store(Bytes& bytes, size_t at, T value) {
  if (at + sizeof(T) <= bytes.size()) std::memcpy(bytes.data() + at, &value, sizeof(T));
}

// Places whose number may be an offset to a later place in the file.
std::vector<size_t> offsets_in(std::span<const uint8_t> bytes) {
  std::vector<size_t> places;
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4)
    if (const uint32_t v = load<uint32_t>(bytes, at); v >= 4 && v < bytes.size() - at) places.push_back(at);
  return places;
}

// Returns the vtable of `table` if that looks like a table, otherwise 0.
size_t vtable_of(std::span<const uint8_t> bytes, size_t table) {
  if (table + 4 > bytes.size()) return 0;
  const int64_t at = static_cast<int64_t>(table) - load<int32_t>(bytes, table);
  if (at < 4 || at + 4 > static_cast<int64_t>(bytes.size())) return 0;
  const size_t length = load<uint16_t>(bytes, static_cast<size_t>(at));
  return length > 4 && length % 2 == 0 && static_cast<size_t>(at) + length <= bytes.size() ? static_cast<size_t>(at)
                                                                                           : 0;
}

void retarget(RandomSource& random, Bytes& bytes, const std::vector<size_t>& offsets) {
  const size_t place = random.pick(offsets), other = random.pick(offsets);
  const size_t target = other + load<uint32_t>(bytes, other);
  if (target > place) store(bytes, place, static_cast<uint32_t>(target - place));
}

void change_field(RandomSource& random, Bytes& bytes, const std::vector<size_t>& offsets) {
  for (int tries = 0; tries < 8; ++tries) {
    const size_t place = random.pick(offsets);
    const size_t vtable = vtable_of(bytes, place + load<uint32_t>(bytes, place));
    if (vtable == 0) continue;
    const size_t fields = load<uint16_t>(bytes, vtable) / 2 - 2u;
    const size_t entry = vtable + 4 + 2 * random.below(fields);
    const size_t from = vtable + 4 + 2 * random.below(fields);
    const uint16_t length = load<uint16_t>(bytes, vtable + 2);
    store(bytes, entry,
          random.one_in(2)   ? uint16_t{0}
          : random.one_in(2) ? load<uint16_t>(bytes, from)
                             : static_cast<uint16_t>(random.below(size_t{length} + 4)));
    return;
  }
}

void change_length(RandomSource& random, Bytes& bytes, const std::vector<size_t>& offsets) {
  const size_t place = random.pick(offsets);
  const size_t target = place + load<uint32_t>(bytes, place);
  if (target + 4 > bytes.size()) return;
  const uint32_t n = load<uint32_t>(bytes, target);
  const uint32_t lengths[] = {n + 1, n - 1, 0, 2 * n, 1, static_cast<uint32_t>(bytes.size() - target), 0x10000u, ~0u};
  store(bytes, target, random.pick(lengths));
}

void paste(RandomSource& random, Bytes& bytes, std::span<const uint8_t> from) {
  if (from.empty()) return;
  const size_t begin = random.below(from.size()) / 4 * 4;
  const size_t length = std::min(from.size() - begin, size_t{4} << random.below(8));
  const size_t at = random.below(bytes.size() + 1) / 4 * 4;
  const Bytes piece(from.begin() + static_cast<std::ptrdiff_t>(begin),
                    from.begin() + static_cast<std::ptrdiff_t>(begin + length));
  if (random.one_in(3)) {
    bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), piece.begin(), piece.end());
  } else {
    bytes.resize(std::max(bytes.size(), at + length));
    std::copy(piece.begin(), piece.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

// One of the bundle's modules; nullptr if it has none.
Module* a_module(RandomSource& random, Bundle& b) {
  return b.stages.empty() ? nullptr : &b.stages[random.below(b.stages.size())].module;
}

template <class Edit>
std::optional<std::string> edited(std::span<const uint8_t> bytes, Edit edit) {
  try {
    if (is_bundle(bytes)) {
      Bundle b = decode_bundle_structure(bytes);
      edit(b);
      return encode(b);
    }
    if (!is_module(bytes)) return std::nullopt;
    Bundle b;
    b.stages.push_back({Stage::kFusion, decode_module_structure(bytes)});
    edit(b);
    return b.stages.empty() ? encode(Module{}) : encode(b.stages[0].module);
  } catch (const Error& e) {
    if (row_of(e.code).outcome == Outcome::kInternal) throw;
    return std::nullopt;
  }
}

bool damage_meaning(RandomSource& random, Bytes& bytes) {
  const auto encoded = edited(bytes, [&](Bundle& b) {
    Module* m = a_module(random, b);
    if (!m || m->graphs.empty()) return;
    damage_graph(random, m->graphs[random.below(m->graphs.size())]);
  });
  if (encoded) bytes.assign(encoded->begin(), encoded->end());
  return encoded.has_value();
}

void mutate_once(RandomSource& random, Bytes& bytes, std::span<const uint8_t> other) {
  const auto offsets = offsets_in(bytes);
  const size_t kind = random.below(10);
  if (bytes.empty() || (offsets.empty() && kind >= 4)) {
    paste(random, bytes, other.empty() ? std::span<const uint8_t>(bytes) : other);
    return;
  }
  switch (kind) {
    case 0:
      for (size_t n = random.one_in(4) ? 1 + random.below(8) : 1; n > 0; --n)
        bytes[random.below(bytes.size())] ^= static_cast<uint8_t>(1 << random.below(8));
      return;
    case 1: {
      const size_t width = size_t{1} << random.below(4), at = random.below(bytes.size()) / width * width;
      const uint64_t number = boundary_number(random, bytes.size());
      if (at + width <= bytes.size()) std::memcpy(bytes.data() + at, &number, width);
      return;
    }
    case 2:
      bytes.resize(random.below(bytes.size()));
      return;
    case 3:
      return paste(random, bytes, other.empty() || random.one_in(2) ? std::span<const uint8_t>(bytes) : other);
    case 4:
    case 5:
      return retarget(random, bytes, offsets);
    case 6:
      return change_field(random, bytes, offsets);
    case 7:
      return change_length(random, bytes, offsets);
    default:
      if (!damage_meaning(random, bytes)) retarget(random, bytes, offsets);
  }
}

// Changes an id to none, to another in range, or to one just beyond the end.
template <class IdType>
void damage(RandomSource& random, IdType& id, size_t count) {
  switch (random.below(4)) {
    case 0:
      id = IdType();
      return;
    case 1:
      id = IdType(count + random.below(2));
      return;
    default:
      id = IdType(random.below(count));
  }
}
template <class IdType>
void damage(RandomSource& random, std::vector<IdType>& ids, size_t count) {
  switch (random.below(4)) {
    case 0:
      if (!ids.empty()) ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(random.below(ids.size())));
      return;
    case 1:
      ids.push_back(IdType(random.below(count)));
      return;
    case 2:
      if (ids.size() > 1) std::swap(ids[random.below(ids.size())], ids[random.below(ids.size())]);
      return;
    default:
      if (!ids.empty()) damage(random, ids[random.below(ids.size())], count);
  }
}

void damage_tensor(RandomSource& random, Graph& g, Tensor& t) {
  std::vector<DomainId>* lists[] = {&t.root, &t.logical, &t.allocation, &t.loop, &t.loop_broadcasts};
  switch (random.below(8)) {
    case 0:
      return damage(random, t.value, g.values.size());
    case 1:
      return damage(random, t.transforms, g.transforms.size());
    case 2:
      return damage(random, t.inline_at, g.domains.size());
    default:
      damage(random, *random.pick(lists), g.domains.size());
  }
}

void damage_domain(RandomSource& random, Graph& g, IterDomain& d) {
  switch (random.below(7)) {
    case 0:
      return damage(random, d.tensor, g.tensors.size());
    case 1:
      return damage(random, d.extent, g.values.size());
    case 2:
      return damage(random, d.expanded, g.values.size());
    case 3:
      return damage(random, d.def, g.transforms.size());
    case 4:
      return damage(random, d.stands_for, g.domains.size());
    case 5:
      d.iter_type = random.pick<IterType>();
      return;
    default:
      d.parallel = random.pick<ParallelType>();
  }
}

void damage_op(RandomSource& random, Graph& g, Op& op) {
  switch (random.below(6)) {
    case 0:
      return damage(random, op.results, g.values.size());
    case 1:
      return damage(random, op.regions, g.regions.size());
    case 2:
      op.kind = op_rows()[random.below(op_rows().size())].kind;
      return;
    case 3: {
      const AttrRow& row = attr_rows()[random.below(attr_rows().size())];
      if (row.kind == AttrKind::kInt)
        op.attrs.set(row.key, random.between(-9, 9));
      else
        op.attrs.set(row.key, std::vector<int64_t>(random.below(4), random.between(-2, 2)));
      return;
    }
    default:
      damage(random, op.operands, g.values.size());
  }
}

}  // namespace

void damage_graph(RandomSource& random, Graph& g) {
  const auto any = [&](auto& nodes) -> decltype(nodes.data()) {
    return nodes.empty() ? nullptr : &nodes[random.below(nodes.size())];
  };
  switch (random.below(7)) {
    case 0:
      if (Value* v = any(g.values)) {
        if (random.one_in(3))
          v->dtype = static_cast<Dtype>(random.below(dtype_rows().size()));
        else if (random.one_in(2))
          damage(random, v->def, g.ops.size());
        else
          damage(random, v->tensor, g.tensors.size());
      }
      return;
    case 1:
      if (Tensor* t = any(g.tensors)) damage_tensor(random, g, *t);
      return;
    case 2:
      if (IterDomain* d = any(g.domains)) damage_domain(random, g, *d);
      return;
    case 3:
      if (Transform* t = any(g.transforms)) {
        if (random.one_in(4))
          t->kind = random.pick<TransformKind>();
        else if (random.one_in(3))
          damage(random, t->factor, g.values.size());
        else
          damage(random, random.one_in(2) ? t->inputs : t->outputs, g.domains.size());
      }
      return;
    case 4:
      if (Region* r = any(g.regions)) damage(random, r->ops, g.ops.size());
      return;
    case 5:
      g.level = random.pick<Level>();
      return;
    default:
      if (Op* op = any(g.ops)) damage_op(random, g, *op);
  }
}

Bytes mutate_wire(RandomSource& random, std::span<const uint8_t> bytes, std::span<const uint8_t> other) {
  Bytes result(bytes.begin(), bytes.end());
  for (size_t n = random.one_in(3) ? 3 : 1; n > 0; --n) mutate_once(random, result, other);
  return result;
}

Bytes cross_wire(RandomSource& random, std::span<const uint8_t> a, std::span<const uint8_t> b) {
  if (!random.one_in(3)) {
    std::vector<Graph> graphs;
    edited(b, [&](Bundle& from) {
      if (const Module* m = a_module(random, from)) graphs = m->graphs;
    });
    const auto joined = edited(a, [&](Bundle& into) {
      Module* m = a_module(random, into);
      for (Graph& g : graphs)
        if (m && m->graphs.size() < 8) m->graphs.push_back(std::move(g));
    });
    if (joined && !graphs.empty()) return {joined->begin(), joined->end()};
  }
  Bytes result(a.begin(), a.end());
  for (size_t n = 1 + random.below(3); n > 0; --n) paste(random, result, b);
  return result;
}

}  // namespace fusebox::fuzz
