// Reductions of inputs: layouts and values.
#include <algorithm>

#include "fuzz/reduce/reduce_rules.h"
#include "ir/scalar/numeric.h"

namespace fusebox::fuzz {
namespace {

Edit for_input(const std::string& name, std::function<bool(InputSpec&)> change) {
  return [name, change = std::move(change)](Case& to) {
    InputSpec* spec = spec_of(to, name);
    return spec && change(*spec);
  };
}

InputSpec with_values(InputSpec spec, InputGenerator generator, uint64_t seed, double low, double high) {
  spec.generator = generator;
  spec.seed = seed;
  spec.low = low;
  spec.high = high;
  return spec;
}

}  // namespace

std::vector<Edit> plain_layouts(const Case& c) {
  std::vector<Edit> edits;
  for (const InputSpec& s : c.inputs().specs) {
    if (s.is_scalar) continue;
    edits.push_back([name = s.name](Case& to) {
      const auto v = find_value(to.fusion(), name);
      if (!v) return false;
      FusionChange change;
      change.plain.insert(*v);
      return change_fusion(to, change);
    });
    if (s.offset != 0)
      for (int64_t offset : {int64_t{0}, int64_t{1}})
        edits.push_back(for_input(s.name, [offset](InputSpec& spec) {
          spec.offset = offset;
          return true;
        }));
    if (!s.strides.empty())
      edits.push_back(for_input(s.name, [](InputSpec& spec) {
        spec.strides.clear();
        return true;
      }));
    for (size_t i = 0; i < s.strides.size(); ++i)
      for (int64_t stride : smaller_numbers(s.strides[i], 0))
        edits.push_back(for_input(s.name, [i, stride](InputSpec& spec) {
          if (i >= spec.strides.size()) return false;
          spec.strides[i] = stride;
          return true;
        }));
  }
  return edits;
}

std::vector<Edit> simple_values(const Case& c) {
  std::vector<Edit> edits;
  for (const InputSpec& s : c.inputs().specs) {
    const bool real = !is_complex(s.dtype);
    if (s.is_scalar) {
      for (double value : {1.0, 2.0, 0.0})
        if (real)
          edits.push_back(for_input(s.name, [value](InputSpec& spec) {
            spec.value = from_double(spec.dtype, value);
            return true;
          }));
      continue;
    }
    const bool negative = !is_boolean(s.dtype) && !(is_integer(s.dtype) && !is_signed(s.dtype));
    std::vector<InputSpec> simpler = {with_values(s, InputGenerator::kConstant, 0, 1, 1),
                                      with_values(s, InputGenerator::kConstant, 0, 0, 1),
                                      with_values(s, InputGenerator::kIntegers, 1, 0, 2)};
    if (!is_boolean(s.dtype)) {
      simpler.push_back(with_values(s, InputGenerator::kIntegers, 1, 0, 4));
      simpler.push_back(with_values(s, InputGenerator::kIntegers, 1, negative ? -4 : 0, 5));
    }
    simpler.push_back(with_values(s, InputGenerator::kUniform, 1, 0.125, 2));
    simpler.push_back(with_values(s, InputGenerator::kBoundary, 1, 0, 1));
    for (const InputSpec& spec : simpler)
      if (value_rank(spec) < value_rank(s))
        edits.push_back(for_input(s.name, [spec](InputSpec& to) {
          const InputSpec values = with_values(to, spec.generator, spec.seed, spec.low, spec.high);
          if (values == to) return false;
          to = values;
          to.value = ConstantBits{};
          return true;
        }));
  }
  return edits;
}

std::vector<Edit> forget_seed(const Case& c) {
  if (c.seed == 0 && c.lineage.empty()) return {};
  return {[](Case& to) {
    to.seed = 0;
    to.lineage.clear();
    return true;
  }};
}

// A smaller tensor may need other random elements to fail.
std::vector<Edit> redraw_values(const Case& c) {
  const auto is_drawn = [](const InputSpec& s) { return !s.is_scalar && s.generator != InputGenerator::kConstant; };
  std::vector<Edit> edits;
  if (std::none_of(c.inputs().specs.begin(), c.inputs().specs.end(), is_drawn)) return edits;
  for (const Edit& smaller : shrink_extents(c))
    for (uint64_t seed = 1; seed <= 6; ++seed)
      edits.push_back([smaller, seed, is_drawn](Case& to) {
        if (!smaller(to)) return false;
        for (InputSpec& s : to.module.input_specs[0].specs)
          if (is_drawn(s)) s.seed = seed;
        return true;
      });
  return edits;
}

}  // namespace fusebox::fuzz
