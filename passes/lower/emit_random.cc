// Emits random numbers.
//
// An element has the number e in row-major order of the logical domain, whatever the schedule is. It takes word e mod 4 of
// Philox block offset + e div 4, in stream 0 (philox.cuh). Other streams have further words of the same element:
//
//   uniform      u = the high digits of stream 0, as many as the dtype has; f64 takes its 53 from streams 0 and 1
//   normal       z = sqrt(-2 log u1) cos(2 pi u2), with u1 in (0, 1] and u2 in [0, 1)
//     in f32     u1 = w0 2^-32 + 2^-33, u2 = the 24 high digits of w1
//     in f64     u1 = (53 digits of w0 and w1, plus 1) 2^-53, u2 = 53 digits of w2 and w3
//
// f16 and bf16 are computed in f32 and rounded once.
#include <algorithm>
#include <cmath>

#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/table/families.h"
#include "passes/lower/kernel_emitter.h"

namespace fusebox {
namespace {

// Emits arithmetic in one floating dtype.
class Arithmetic {
 public:
  Arithmetic(KernelBuilder& kernel, Dtype dtype) : kernel_(kernel), dtype_(dtype) {}

  ValueId constant(double x) { return kernel_.constant(dtype_, from_double(dtype_, x)); }
  ValueId cast(ValueId v) { return kernel_.op(OpKind::kCast, {v}, dtype_); }
  ValueId unary(OpKind kind, ValueId a) { return kernel_.op(kind, {a}, dtype_); }
  ValueId add(ValueId a, ValueId b) { return kernel_.op(OpKind::kAdd, {a, b}, dtype_); }
  ValueId sub(ValueId a, ValueId b) { return kernel_.op(OpKind::kSub, {a, b}, dtype_); }
  ValueId mul(ValueId a, ValueId b) { return kernel_.op(OpKind::kMul, {a, b}, dtype_); }

  // The `digits` high digits of a word as an integer.
  ValueId high_digits(ValueId word, int digits) {
    if (digits == 32) return cast(word);
    const ValueId by = kernel_.constant(Dtype::kUint32, {static_cast<uint64_t>(32 - digits), 0});
    return cast(kernel_.op(OpKind::kLogicalRightShift, {word, by}, Dtype::kUint32));
  }
  // The 53 high digits of two words as an integer; no step of it rounds in f64.
  ValueId wide_digits(ValueId high, ValueId low) {
    const ValueId shifted = mul(high_digits(high, 32), constant(0x1p21));
    return add(shifted, high_digits(low, 21));
  }

 private:
  KernelBuilder& kernel_;
  Dtype dtype_;
};

// The seed of the first random op: only a seeded defect asks for it.
ValueId first_seed(const Graph& g) {
  for (OpId op : g[Graph::body()].ops)
    if (g[op].kind == OpKind::kUniform || g[op].kind == OpKind::kNormal) return g[op].operands[2];
  return {};
}

}  // namespace

ValueId KernelEmitter::compute_random(Site& site) {
  const Op& op = site.op;
  IndexAlgebra& algebra = site.view.algebra;
  const Dtype dtype = data_dtype(g_[op.results[0]].dtype);
  const Dtype computed = dtype == Dtype::kDouble ? Dtype::kDouble : Dtype::kFloat;
  const bool is_wide = computed == Dtype::kDouble;
  Arithmetic a(kernel_, computed);

  std::vector<DomainId> axes = g_.tensor_of(op.results[0]).logical;
  if (!defects().has(Defect::kRandomColumnMajor)) std::reverse(axes.begin(), axes.end());
  Form place = algebra.constant(0), run = algebra.constant(1);
  for (DomainId d : axes) {
    if (g_[d].iter_type == IterType::kBroadcast) continue;
    place = algebra.add(place, algebra.mul(site.view.place(d), run));
    run = algebra.mul(run, site.view.own.extent(d));
  }
  ValueId element = emit_form(algebra, place);
  if (defects().has(Defect::kRandomBlockKept)) element = kernel_.floor_mod(element, kernel_.index(4), true);

  const auto word_of = [&](ValueId v) {
    const Value& own = g_[v];
    return own.constant ? kernel_.constant(Dtype::kUint64, convert(own.dtype, *own.constant, Dtype::kUint64))
                        : cast_to(scalar(v), Dtype::kUint64);
  };
  const auto low_half = [&](ValueId v) {
    return kernel_.op(OpKind::kBitwiseAnd, {v, kernel_.constant(Dtype::kUint64, {0xffffffffu, 0})}, Dtype::kUint64);
  };
  ValueId seed = word_of(op.operands[2]), offset = word_of(op.operands[3]);
  if (defects().has(Defect::kRandomSeedShared)) seed = word_of(first_seed(g_));
  if (defects().has(Defect::kRandomSeedTruncated)) seed = low_half(seed);
  if (defects().has(Defect::kRandomHighWordDropped)) offset = low_half(offset);
  if (defects().has(Defect::kRandomOffsetDropped)) offset = kernel_.constant(Dtype::kUint64, {});
  const auto word = [&](int64_t stream) {
    Attrs attrs;
    attrs.set(AttrKey::kSlot, defects().has(Defect::kRandomStreamShared) ? 0 : stream);
    return kernel_.op(OpKind::kPhilox, {seed, offset, element}, Dtype::kUint32, attrs);
  };
  const auto parameter = [&](size_t k) { return cast_to(cast_to(scalar(op.operands[k]), dtype), computed); };

  // Ops that could be made in either order stand in statements of their own: C++ leaves the order of arguments open.
  if (op.kind == OpKind::kUniform) {
    const int digits = format_of(dtype).digits();
    const ValueId high = word(0);
    const ValueId whole = is_wide ? a.wide_digits(high, word(1)) : a.high_digits(high, digits);
    const ValueId u = a.mul(whole, a.constant(std::ldexp(1.0, -digits)));
    const ValueId low = parameter(0);
    const ValueId width = a.sub(parameter(1), low);
    const ValueId part = a.mul(u, width);
    return cast_to(a.add(low, part), dtype);
  }
  if (op.kind == OpKind::kNormal) {
    constexpr double kTwoPi = 6.283185307179586;
    const ValueId w0 = word(0), w1 = word(1);
    ValueId u1, u2;
    if (is_wide) {
      u1 = a.mul(a.add(a.wide_digits(w0, w1), a.constant(1)), a.constant(0x1p-53));
      const ValueId w2 = word(2), w3 = word(3);
      u2 = a.mul(a.wide_digits(w2, w3), a.constant(0x1p-53));
    } else {
      u1 = a.add(a.mul(a.high_digits(w0, 32), a.constant(0x1p-32)), a.constant(0x1p-33));
      u2 = a.mul(a.high_digits(w1, 24), a.constant(0x1p-24));
    }
    const ValueId logarithm = a.unary(OpKind::kLog, u1);
    const ValueId radius = a.unary(OpKind::kSqrt, a.mul(a.constant(-2), logarithm));
    const ValueId angle = a.mul(a.constant(kTwoPi), u2);
    const ValueId cosine = a.unary(OpKind::kCos, angle);
    const ValueId z = a.mul(radius, cosine);
    const ValueId mean = parameter(0);
    const ValueId distance = a.mul(parameter(1), z);
    return cast_to(a.add(mean, distance), dtype);
  }
  not_in_family(op.kind, "draws no random numbers");
}

}  // namespace fusebox
