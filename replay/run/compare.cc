#include "replay/run/compare.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <thread>

#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "replay/data/overflow.h"
#include "replay/data/parts.h"

namespace fusebox {
namespace {

// An infinity is compared with numbers as the power of two above the dtype's largest number.
double notional(double v, double overflow) { return std::isinf(v) ? std::copysign(overflow, v) : v; }

struct Judgement {
  double error = 0;
  bool differs = false;
};

Judgement judge_real(double actual, double expected, double bound, double overflow) {
  if (actual == expected || (actual != actual && expected != expected)) return {};
  if (actual != actual || expected != expected) return {INFINITY, true};
  const double error = std::abs(notional(actual, overflow) - notional(expected, overflow));
  return {error <= bound || !(std::isinf(actual) || std::isinf(expected)) ? error : INFINITY, true};
}

Judgement judge_complex(std::complex<double> actual, std::complex<double> expected, double bound, double overflow) {
  const Judgement re = judge_real(actual.real(), expected.real(), bound, overflow);
  const Judgement im = judge_real(actual.imag(), expected.imag(), bound, overflow);
  return {std::hypot(re.error, im.error), re.differs || im.differs};
}

// Sums of 64 bits wrap, so the distance wraps too.
Judgement judge_integer(int64_t actual, int64_t expected) {
  if (actual == expected) return {};
  const uint64_t distance = static_cast<uint64_t>(actual) - static_cast<uint64_t>(expected);
  return {static_cast<double>(std::min(distance, 0 - distance)), true};
}

class Judge {
 public:
  Judge(const TensorData& actual, const Evaluated& expected)
      : a_(actual), e_(expected), overflow_(overflow_of(real_of(actual.dtype))) {
    const bool whole = is_boolean(a_.dtype) || is_integer(a_.dtype);
    kind_ = is_storage_only(a_.dtype) ? Kind::kBytes
            : whole                   ? Kind::kInteger
            : is_complex(a_.dtype)    ? Kind::kComplex
                                      : Kind::kReal;
  }

  // Rows along the last axis, [begin, end) in row-major order.
  Comparison rows(int64_t begin, int64_t end) const {
    Comparison c;
    double worst_ratio = -1;
    const size_t outer = a_.shape.empty() ? 0 : a_.shape.size() - 1;
    const int64_t count = a_.shape.empty() ? 1 : a_.shape.back();
    const auto step = [&](const TensorData& t) { return t.shape.empty() ? 1 : t.strides.back(); };
    const bool exact = e_.is_exact();
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row, at = a_.offset, reference_at = e_.reference.offset, bound_at = e_.bound.offset;
      for (size_t x = outer; x-- > 0;) {
        const int64_t i = rest % a_.shape[x];
        rest /= a_.shape[x];
        at += i * a_.strides[x];
        reference_at += i * e_.reference.strides[x];
        if (!exact) bound_at += i * e_.bound.strides[x];
      }
      for (int64_t i = 0; i < count; ++i) {
        const double bound =
            exact ? 0.0 : reinterpret_cast<const double*>(e_.bound.storage.get())[bound_at + i * step(e_.bound)];
        ++c.count;
        if (kind_ == Kind::kInteger && bound > 0) ++c.ambiguous;
        const Judgement j = judge(at + i * step(a_), reference_at + i * step(e_.reference), bound);
        c.differing += j.differs;
        if (bound == INFINITY) {
          ++c.unconstrained;
          continue;
        }
        const bool fails = j.error != 0 && !(j.error <= bound);  // an error of 0 agrees even if the bound is NaN
        c.failed += fails;
        const double ratio = j.error == 0 ? 0 : bound == 0 ? INFINITY : j.error / bound;
        if (ratio > worst_ratio) {
          worst_ratio = ratio;
          c.max_error = j.error;
          c.bound = bound;
          c.worst = {row, i};
        }
      }
    }
    c.ok = c.failed == 0;
    return c;
  }

  double ratio(const Comparison& c) const {
    return c.worst.empty() ? -1 : c.max_error == 0 ? 0 : c.bound == 0 ? INFINITY : c.max_error / c.bound;
  }

  // Describes the worst element.
  void describe_worst(Comparison& c) const {
    if (c.worst.empty()) return;
    int64_t row = c.worst[0];
    std::vector<int64_t> index(a_.shape.size());
    if (!index.empty()) index.back() = c.worst[1];
    for (size_t x = index.empty() ? 0 : index.size() - 1; x-- > 0;) {
      index[x] = row % a_.shape[x];
      row /= a_.shape[x];
    }
    c.actual = shown(a_, position_of(a_, index));
    c.expected = shown(e_.reference, position_of(e_.reference, index));
    c.worst = std::move(index);
  }

 private:
  enum class Kind : uint8_t { kReal, kComplex, kInteger, kBytes };

  Judgement judge(int64_t at, int64_t reference_at, double bound) const {
    switch (kind_) {
      case Kind::kReal: {
        const double expected = reinterpret_cast<const double*>(e_.reference.storage.get())[reference_at];
        const double actual = a_.dtype == Dtype::kFloat
                                  ? static_cast<double>(reinterpret_cast<const float*>(a_.storage.get())[at])
                                  : to_double(a_.dtype, load_element(a_, at));
        return judge_real(actual, expected, bound, overflow_);
      }
      case Kind::kComplex: {
        const double* expected = reinterpret_cast<const double*>(e_.reference.storage.get()) + 2 * reference_at;
        return judge_complex(to_complex(a_.dtype, load_element(a_, at)), {expected[0], expected[1]}, bound, overflow_);
      }
      case Kind::kInteger:
        return judge_integer(static_cast<int64_t>(load_element(a_, at).low),
                             static_cast<int64_t>(load_element(e_.reference, reference_at).low));
      case Kind::kBytes:
        break;
    }
    const bool same = load_element(a_, at) == load_element(e_.reference, reference_at);
    return {same ? 0.0 : INFINITY, !same};
  }

  static std::string shown(const TensorData& t, int64_t position) {
    const ConstantBits bits = load_element(t, position);
    if (is_complex(t.dtype)) {
      const auto z = to_complex(t.dtype, bits);
      return fmt::format("({}, {})", z.real(), z.imag());
    }
    if (t.dtype == Dtype::kUint64) return fmt::format("{}", bits.low);
    if (is_integer(t.dtype) || is_boolean(t.dtype)) return fmt::format("{}", static_cast<int64_t>(bits.low));
    if (is_storage_only(t.dtype)) return fmt::format("0x{:02x}", bits.low);
    return fmt::format("{}", to_double(t.dtype, bits));
  }

  const TensorData& a_;
  const Evaluated& e_;
  double overflow_;
  Kind kind_;
};

}  // namespace

Comparison compare(const TensorData& actual, const Evaluated& expected, int threads) {
  if (actual.dtype != expected.dtype)
    throw Error(ErrorCode::kDtypeMismatch,
                "the result has dtype " + std::string(text(actual.dtype)) + ", the program " +
                    std::string(text(expected.dtype)) + "; compare results of one program",
                "%" + expected.name);
  if (actual.shape != expected.reference.shape)
    throw Error(ErrorCode::kShapeMismatch,
                "the result is " + describe(actual) + ", the reference " + describe(expected.reference) +
                    "; compare results of one program",
                "%" + expected.name);
  const int64_t count = element_count(actual.shape);
  if (count == 0) return {};
  const Judge judge(actual, expected);
  const int64_t rows = actual.shape.empty() ? 1 : count / actual.shape.back();
  if (threads <= 0)
    threads = count < (1 << 18) ? 1 : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  threads = static_cast<int>(std::min<int64_t>(threads, rows));
  std::vector<Comparison> parts(static_cast<size_t>(threads));
  run_parts(threads,
            [&](int k) { parts[static_cast<size_t>(k)] = judge.rows(rows * k / threads, rows * (k + 1) / threads); });

  Comparison c = parts[0];
  for (size_t k = 1; k < parts.size(); ++k) {
    const Comparison& p = parts[k];
    c.ok &= p.ok;
    c.count += p.count;
    c.failed += p.failed;
    c.differing += p.differing;
    c.unconstrained += p.unconstrained;
    c.ambiguous += p.ambiguous;
    if (judge.ratio(p) > judge.ratio(c)) {
      c.max_error = p.max_error;
      c.bound = p.bound;
      c.worst = p.worst;
    }
  }
  judge.describe_worst(c);
  return c;
}

std::string Comparison::message(const std::string& name) const {
  return fmt::format("%{}[{}] is {}, expected {} within {} ({} of {} elements differ by more than their bounds)", name,
                     fmt::join(worst, ", "), actual, expected, bound, failed, count);
}

TensorData result_of(const Evaluated& e) {
  const TensorData& from = e.reference;
  TensorData to = allocate_tensor(e.dtype, from.shape, from.strides);
  const Dtype d = e.dtype;
  std::vector<int64_t> starts;
  for_each_run(to, [&](int64_t position, int64_t, int64_t) { starts.push_back(position); });
  size_t run = 0;
  for_each_run(from, [&](int64_t position, int64_t stride, int64_t count) {
    const int64_t start = starts[run++];
    for (int64_t i = 0; i < (stride == 0 ? 1 : count); ++i) {
      const ConstantBits bits = load_element(from, position + i * stride);
      const bool as_it_is = is_boolean(d) || is_integer(d) || is_storage_only(d);
      store_element(to, start + i * stride, as_it_is ? canonical_bits(d, bits) : convert(from.dtype, bits, d));
    }
  });
  return to;
}

}  // namespace fusebox
