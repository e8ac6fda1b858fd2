#include "fuzz/generate/generate_inputs.h"

#include <algorithm>
#include <cmath>

#include "fuzz/generate/constants.h"
#include "ir/build/builder.h"
#include "ir/domain/domain.h"
#include "ir/infer/bind.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/table/families.h"

namespace fusebox::fuzz {
namespace {

bool is_overwritten(const Graph& g, ValueId input) {
  for (const OutputRef& o : outputs(g))
    if (o.alias == input) return true;
  return false;
}

// Values around the last integer up to which a float with that many digits is exact.
bool draw_last_exact(RandomSource& random, InputSpec& spec) {
  constexpr int kDigits[] = {8, 11, 24, 24, 53};
  const int digits = random.pick(kDigits);
  if (!is_integer(spec.dtype) || digits + 2 > bits(spec.dtype)) return false;
  spec.generator = InputGenerator::kIntegers;
  spec.low = std::ldexp(1, digits) - 2;
  spec.high = std::ldexp(1, digits) + 4;
  return true;
}

// One value for all elements: when many are added, all rounding errors have the same sign.
bool draw_equal(RandomSource& random, InputSpec& spec) {
  constexpr int64_t kMany = 200, kVeryMany = 2000;
  int64_t elements = 1;
  for (int64_t e : spec.shape) elements *= e;
  if (elements < kMany || !(is_floating(spec.dtype) || is_complex(spec.dtype)) || is_storage_only(spec.dtype))
    return false;
  if (elements >= kVeryMany ? random.one_in(4) : !random.one_in(3)) return false;
  spec.generator = InputGenerator::kConstant;
  const double size = 0.25 + static_cast<double>(random.below(1 << 10)) / 1021;
  spec.value = from_double(spec.dtype, random.one_in(2) ? size : -size);
  return true;
}

void draw_values(RandomSource& random, const InputsOptions& options, InputSpec& spec) {
  spec.seed = random.below(1 << 16);
  const bool whole = is_integer(spec.dtype) || is_boolean(spec.dtype);
  if (!options.special && !options.integers && draw_equal(random, spec)) return;
  if (options.special && random.one_in(3) && draw_last_exact(random, spec)) return;
  if (options.special) {
    spec.generator = InputGenerator::kBoundary;
  } else if (whole || options.integers) {
    spec.generator = InputGenerator::kIntegers;
    spec.low = whole && !is_signed(spec.dtype) ? 0 : -4;
    spec.high = is_boolean(spec.dtype) ? 2 : 5;
    // Unsigned values that are all negative if read as signed.
    if (is_integer(spec.dtype) && !is_signed(spec.dtype) && bits(spec.dtype) <= 32 && random.one_in(4)) {
      spec.high = std::ldexp(1, bits(spec.dtype));
      spec.low = spec.high - 6;
    }
  } else if (random.one_in(3)) {
    spec.generator = InputGenerator::kUniform;
    spec.low = random.one_in(2) ? 0.125 : -2;
    spec.high = 2;
  } else {
    spec.generator = InputGenerator::kNormal;
  }
}

void draw_in_range(RandomSource& random, const InputRange& range, InputSpec& spec) {
  spec.seed = random.below(1 << 16);
  spec.generator = range.is_boundary ? InputGenerator::kBoundary : InputGenerator::kUniform;
  if (range.is_boundary) return;
  spec.low = range.low;
  spec.high = range.high;
}

ConstantBits scalar_value(RandomSource& random, const InputsOptions& options, Dtype dtype) {
  constexpr double kValues[] = {1, 2, 3, 0, -1, 0.5};
  if (!options.special) return small_constant(dtype, random.pick(kValues));
  return random.one_in(4) ? small_constant(dtype, -0.0) : draw_constant(random, dtype);
}

}  // namespace

namespace {

// A large stride for few elements: positions exceed 32 bits, or nearly. The memory between elements is only reserved. A
// GPU cannot reserve memory that way, so the stride is bounded.
std::optional<int64_t> far_stride(RandomSource& random, int64_t extent, int64_t element_bytes, bool is_aimed) {
  constexpr int64_t kFar[] = {int64_t{1} << 29, int64_t{1} << 30, int64_t{1} << 31, int64_t{1} << 32, 1500000000};
  constexpr int64_t kMostBytes = (int64_t{1} << 33) + (1 << 20), kLimit = int64_t{1} << 31;
  if (extent < 2 || extent > 9 || !(is_aimed || random.one_in(5))) return std::nullopt;
  // Puts the last element's position, or the stride, near a power of two.
  const int64_t by = random.one_in(2) ? 1 : extent - 1;
  const int64_t stride =
      is_aimed ? kLimit / (extent - 1) + random.between(0, 2) : random.pick(kFar) / by + random.between(-2, 2);
  if (stride * (extent - 1) * element_bytes > kMostBytes) return std::nullopt;
  return stride;
}

}  // namespace

std::vector<int64_t> draw_strides(RandomSource& random, const Graph& g, ValueId input, std::span<const int64_t> shape,
                                  bool is_far) {
  const Tensor& t = g.tensor_of(input);
  const auto order = allocation_of(g, t);
  const auto contiguity = contiguity_of(g, t);
  std::vector<int64_t> strides(shape.size(), 1);
  int64_t next = 1;
  for (size_t k = order.size(); k > 0; --k) {
    const size_t axis = position_in(t.logical, order[k - 1]);
    if (axis >= shape.size()) return {};
    const int64_t extent = std::max<int64_t>(shape[axis], 1);
    strides[axis] = next;
    if (g[order[k - 1]].expanded) {
      strides[axis] = 0;
      continue;
    }
    if (contiguity[k - 1] == Contiguity::kNone) continue;
    if (contiguity[k - 1] == Contiguity::kFalse) {
      // A contiguous axis outside of this one could not continue from a stride of 0.
      const bool free_outside = k == 1 || contiguity[k - 2] == Contiguity::kFalse;
      if (free_outside && !is_far && !is_overwritten(g, input) && random.one_in(6)) {
        strides[axis] = 0;
        continue;
      }
      // The stride of a single element is never used, so it may be anything.
      if (free_outside && extent == 1 && random.one_in(8)) {
        strides[axis] = (int64_t{1} << 31) + random.between(0, 3);
        continue;
      }
      const auto far = k == 1 ? far_stride(random, extent, size_bytes(g[input].dtype), is_far) : std::nullopt;
      strides[axis] = far && *far > next ? *far : next * random.between(1, 2) + random.between(0, 3);
    }
    next = strides[axis] * extent;
  }
  return strides;
}

std::vector<std::optional<int64_t>> index_limits(const Graph& g, const Bindings& sizes) {
  std::vector<std::optional<int64_t>> limits(g.values.size());
  for (OpId id : g[Graph::body()].ops) {
    const Op& op = g[id];
    // Rows are added along the first axis; there is no attribute of it.
    const auto index = adds_at_places(op.kind) ? std::optional<size_t>(1) : index_operand(op.kind);
    if (!index || !op.operands[*index]) continue;
    const auto shape = evaluate_shape(g, op.operands[0], sizes);
    if (!shape || shape->empty()) continue;
    int64_t axis = op.attrs.integer(AttrKey::kAxis);
    if (axis < 0) axis += static_cast<int64_t>(shape->size());
    auto& limit = limits[op.operands[*index].index];
    const int64_t extent = (*shape)[static_cast<size_t>(axis)];
    limit = limit ? std::min(*limit, extent) : extent;
  }
  std::vector<std::optional<int64_t>> result;
  for (ValueId v : inputs(g)) result.push_back(limits[v.index]);
  return result;
}

InputSpecs generate_inputs(RandomSource& random, const Graph& g, const Bindings& sizes, const InputsOptions& options) {
  InputSpecs result;
  result.graph = g.name;
  result.where = "host";
  const auto limits = index_limits(g, sizes);
  for (ValueId v : inputs(g)) {
    InputSpec spec;
    spec.name = g[v].name;
    spec.dtype = g[v].dtype;
    if (!g.is_tensor(v)) {
      spec.is_scalar = true;
      const bool is_given = v.index < sizes.size() && sizes[v.index];
      spec.value = is_given ? *sizes[v.index] : scalar_value(random, options, spec.dtype);
      result.specs.push_back(std::move(spec));
      continue;
    }
    const auto shape = evaluate_shape(g, v, sizes);
    check_internal(shape.has_value(), "an input's size is not given");
    spec.shape = *shape;
    std::vector<int64_t> strides = draw_strides(random, g, v, spec.shape, options.is_far);
    std::vector<int64_t> plain(spec.shape.size(), 1);
    for (size_t i = plain.size(); i > 1; --i) plain[i - 2] = plain[i - 1] * spec.shape[i - 1];
    if (strides != plain) spec.strides = std::move(strides);
    // Often an offset at which narrow vectors are aligned and wide ones are not.
    const bool is_target = is_overwritten(g, v);
    if (is_target && options.offset > 0)
      spec.offset = options.offset;
    else if (options.strides && (options.shifted ? !random.one_in(3) : random.one_in(is_target ? 3 : 6)))
      spec.offset = random.one_in(2) ? random.between(1, 5) : 2 << random.below(2);
    const auto range =
        std::find_if(options.ranges.begin(), options.ranges.end(), [&](const InputRange& r) { return r.input == v; });
    if (range == options.ranges.end())
      draw_values(random, options, spec);
    else
      draw_in_range(random, *range, spec);
    if (const auto limit = limits[result.specs.size()]) make_index(spec, *limit);
    result.specs.push_back(std::move(spec));
  }
  return result;
}

void make_index(InputSpec& spec, int64_t limit) {
  spec.generator = InputGenerator::kIntegers;
  spec.low = 0;
  spec.high = std::min(static_cast<double>(limit), std::ldexp(1, bits(spec.dtype) - is_signed(spec.dtype)));
}

std::vector<BoundInput> bound_inputs(const InputSpecs& specs) {
  std::vector<BoundInput> given;
  for (const InputSpec& s : specs.specs)
    given.push_back({.is_scalar = s.is_scalar, .bits = s.value, .shape = s.shape, .strides = s.strides});
  return given;
}

Bindings sizes_of(const Graph& g, const InputSpecs& specs) { return bind_sizes(g, bound_inputs(specs)); }

}  // namespace fusebox::fuzz
