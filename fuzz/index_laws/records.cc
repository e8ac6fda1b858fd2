#include "fuzz/index_laws/records.h"

#include <algorithm>

#include "fuzz/index_laws/random.h"

namespace fusebox::index_laws {
namespace {

constexpr size_t kHead = 8, kBytesOfRecord = 6;
constexpr uint8_t kSymbols[] = {254, 255};  // the bytes for %n and %m

// An extent or a factor: 1 to 40, or a symbol.
int scalar_of(uint8_t byte) {
  if (byte == kSymbols[0]) return kSymbolN;
  if (byte == kSymbols[1]) return kSymbolM;
  return number(1 + byte % 40);
}
bool is_symbol(uint8_t byte) { return byte >= kSymbols[0]; }

bool is_symbolic(const Records& r) {
  return std::any_of(r.axes.begin(), r.axes.end(), is_symbol) ||
         std::any_of(r.transforms.begin(), r.transforms.end(),
                     [](const Record& t) { return t.kind != Kind::kResize && is_symbol(t.factor); });
}

bool may_swizzle(const Tensor& t, int a, int b, const std::vector<Binding>& bindings) {
  std::vector<int64_t> e;
  return std::all_of(bindings.begin(), bindings.end(), [&](const Binding& binding) {
    t.extents(binding, e);
    return is_power_of_two(e[Tensor::at(b)]) && e[Tensor::at(a)] <= e[Tensor::at(b)];
  });
}

void add_op(Tensor& t, const Records& r, const std::vector<Binding>& bindings) {
  std::vector<int64_t> e;
  if (r.op == 1) {
    for (const Binding& binding : bindings) {
      t.extents(binding, e);
      if (e[0] % 4 != 0) return;
    }
    t.reshaped = true;
    t.apply(t.op, t.logical, Kind::kSplitInner, 0, 0, number(4));
    if (r.right % 2 != 0 && t.logical.size() == 2) t.apply(t.op, t.logical, Kind::kMerge, 0, 1);
  } else {
    const int left = r.left % 5 - 2, right = r.right % 5 - 2;
    for (const Binding& binding : bindings) {
      t.extents(binding, e);
      if (e[0] + left + right < 1) return;
    }
    t.apply(t.op, t.logical, Kind::kResize, 0, 0, number(left), number(right));
  }
  t.loops = t.logical;
}

void add(Tensor& t, std::vector<Step>& steps, std::vector<int>& frontier, const Record& r,
         const std::vector<Binding>& bindings) {
  if (t.chain.size() + t.down.size() >= kMostOfTensor) return;
  const size_t i = r.first % frontier.size(), j = r.second % frontier.size();
  const bool two = r.kind == Kind::kMerge || r.kind == Kind::kXor || r.kind == Kind::kCyclic;
  if (two && i == j) return;
  if (r.kind == Kind::kXor && !may_swizzle(t, frontier[i], frontier[j], bindings)) return;
  const bool resize = r.kind == Kind::kResize;
  const int factor = resize ? number(r.factor % 8) : two ? 0 : scalar_of(r.factor);
  t.apply(steps, frontier, r.kind, i, two ? j : i, factor, resize ? number(r.right % 8) : 0);
}

}  // namespace

Records read_records(std::span<const uint8_t> bytes) {
  const auto at = [&](size_t i) { return i < bytes.size() ? bytes[i] : uint8_t{0}; };
  Records r;
  r.tensors = static_cast<uint8_t>(1 + at(0) % 3);
  r.axes.resize(1 + at(1) % 2);
  for (size_t i = 0; i < r.axes.size(); ++i) r.axes[i] = at(2 + i);
  r.transposed = (at(4) & 1) != 0 && r.tensors == 3 && r.axes.size() == 2;
  r.branched = (at(4) & 2) != 0 && r.tensors == 3 && !r.transposed;
  r.op = at(5) % 3;
  r.left = at(6);
  r.right = at(7);
  for (size_t i = kHead; i < bytes.size() && r.transforms.size() < kMostRecords; i += kBytesOfRecord)
    r.transforms.push_back({static_cast<uint8_t>(at(i) / 2 % 3), at(i) % 2 != 0, static_cast<Kind>(at(i + 1) % 6),
                            at(i + 2), at(i + 3), at(i + 4), at(i + 5)});
  return r;
}

std::vector<uint8_t> write_records(const Records& r) {
  std::vector<uint8_t> bytes = {static_cast<uint8_t>(r.tensors - 1),
                                static_cast<uint8_t>(r.axes.size() - 1),
                                r.axes[0],
                                r.axes.size() > 1 ? r.axes[1] : uint8_t{0},
                                static_cast<uint8_t>((r.transposed ? 1 : 0) + (r.branched ? 2 : 0)),
                                r.op,
                                r.left,
                                r.right};
  for (const Record& t : r.transforms)
    bytes.insert(bytes.end(), {static_cast<uint8_t>(2 * t.tensor + (t.down ? 1 : 0)), static_cast<uint8_t>(t.kind),
                               t.first, t.second, t.factor, t.right});
  return bytes;
}

const std::vector<Binding>& bindings_of(const Records& r) {
  static const std::vector<Binding> one(1);
  static const std::vector<Binding> several = {{4, 3}, {4, 1}, {8, 2}, {12, 7}, {16, 4}, {28, 5}, {32, 16}};
  return is_symbolic(r) ? several : one;
}

Case case_of(const Records& r) {
  const std::vector<Binding>& bindings = bindings_of(r);
  std::vector<int> axes;
  // Two long axes would have too many points.
  for (const uint8_t axis : r.axes)
    axes.push_back(scalar_of(r.axes.size() == 2 && !is_symbol(axis) ? static_cast<uint8_t>(axis % 12) : axis));
  Case c;
  c.transposed = r.transposed;
  c.branched = r.branched;
  if (c.transposed) axes[1] = axes[0];
  for (uint8_t i = 0; i < r.tensors; ++i) {
    Tensor t = Tensor::of(axes);
    // Only the last tensor may have an op, because no tensor of the case reads that one.
    if (i + 1 == r.tensors && i > 0 && r.op != 0 && !r.transposed) add_op(t, r, bindings);
    for (const Record& record : r.transforms)
      if (record.tensor % r.tensors == i && !record.down) add(t, t.chain, t.loops, record, bindings);
    std::vector<int> others = t.logical;
    for (const Record& record : r.transforms)
      if (record.tensor % r.tensors == i && record.down) add(t, t.down, others, record, bindings);
    c.tensors.push_back(std::move(t));
  }
  return c;
}

namespace {

Record draw_record(fuzz::RandomSource& random, const Records& r) {
  Record t;
  t.tensor = static_cast<uint8_t>(random.below(r.tensors));
  t.down = random.one_in(4);
  t.kind = static_cast<Kind>(random.below(6));
  t.first = static_cast<uint8_t>(random.below(4));
  t.second = static_cast<uint8_t>(random.below(4));
  t.factor = static_cast<uint8_t>(random.one_in(8) ? random.pick(kSymbols) : random.below(random.one_in(2) ? 5 : 40));
  t.right = static_cast<uint8_t>(random.below(4));
  return t;
}

// A neighbour of the factor, 1, the extent or a neighbour of the extent.
void perturb(fuzz::RandomSource& random, uint8_t& factor, const Records& r) {
  const uint8_t axis = r.axes[random.below(r.axes.size())];
  const uint8_t choices[] = {static_cast<uint8_t>(factor - 1),
                             static_cast<uint8_t>(factor + 1),
                             0,
                             axis,
                             static_cast<uint8_t>(axis + 1),
                             static_cast<uint8_t>(axis - 1),
                             random.pick(kSymbols)};
  factor = random.pick(choices);
}

}  // namespace

void mutate_records(fuzz::RandomSource& random, Records& r) {
  const auto place = [&](size_t i) { return r.transforms.begin() + static_cast<std::ptrdiff_t>(i); };
  const size_t count = r.transforms.size();
  const size_t kind = count == 0 ? 4 + random.below(4) : random.below(9);
  switch (kind) {
    case 0:
      r.transforms.erase(place(random.below(count)));
      return;
    case 1:
      std::swap(r.transforms[random.below(count)], r.transforms[random.below(count)]);
      return;
    case 2:
      return perturb(random, r.transforms[random.below(count)].factor, r);
    case 3: {  // the same on another tensor, or twice
      Record same = r.transforms[random.below(count)];
      same.tensor = static_cast<uint8_t>(random.below(r.tensors));
      if (count < kMostRecords) r.transforms.insert(place(random.below(count + 1)), same);
      return;
    }
    case 4:
      return perturb(random, r.axes[random.below(r.axes.size())], r);
    case 5:
      r.tensors = static_cast<uint8_t>(1 + random.below(3));
      r.transposed = r.tensors == 3 && r.axes.size() == 2 && random.one_in(2);
      r.branched = r.tensors == 3 && !r.transposed && random.one_in(2);
      return;
    case 6:
      r.op = static_cast<uint8_t>(random.below(3));
      r.left = static_cast<uint8_t>(random.below(5));
      r.right = static_cast<uint8_t>(random.below(5));
      return;
    case 8:
      r.transforms[random.below(count)] = draw_record(random, r);
      return;
    default:
      if (count < kMostRecords) r.transforms.insert(place(random.below(count + 1)), draw_record(random, r));
  }
}

Records cross_records(fuzz::RandomSource& random, const Records& a, const Records& b) {
  Records r = a;
  r.transforms.resize(random.below(a.transforms.size() + 1));
  for (size_t i = random.below(b.transforms.size() + 1); i < b.transforms.size() && r.transforms.size() < kMostRecords;
       ++i)
    r.transforms.push_back(b.transforms[i]);
  return r;
}

}  // namespace fusebox::index_laws
