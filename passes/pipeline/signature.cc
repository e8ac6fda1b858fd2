#include "passes/pipeline/signature.h"

#include <algorithm>

#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/scalar/numeric.h"
#include "ir/text/print.h"
#include "passes/schedule/apply_steps.h"
#include "passes/schedule/size_classes.h"

namespace fusebox {
namespace {

SignatureInput signature_of(const Graph& fusion, ValueId v, const BoundInput& given, const MemoryClass* memory,
                            bool has_class) {
  SignatureInput input;
  input.name = fusion[v].name;
  input.dtype = fusion[v].dtype;
  input.is_scalar = given.is_scalar;
  if (given.is_scalar) {
    if (has_class && is_integer(input.dtype)) {
      const SizeClass c = class_of_size(to_int64(input.dtype, given.bits));
      input.most = c.most, input.divisor = c.divisor;
    }
    return input;
  }
  for (size_t i = 0; i < given.shape.size(); ++i) {
    SignatureAxis axis;
    if (memory) {
      if (i < given.strides.size() && (given.strides[i] == 0 || given.strides[i] == 1)) axis.stride = given.strides[i];
      const SizeClass c = class_of_size(given.shape[i]);
      axis.most = c.most, axis.divisor = c.divisor;
      if (i < memory->stride_divisors.size()) axis.stride_divisor = memory->stride_divisors[i];
    }
    input.axes.push_back(axis);
  }
  if (memory) input.align = memory->align;
  return input;
}

std::string words(const std::vector<Step>& steps) {
  if (steps.empty()) return "nothing";
  std::string all;
  for (const Step& s : steps) all += (all.empty() ? "" : "; ") + print(s);
  return all;
}

std::string words(const SizeClass& c) {
  return "up to " + std::to_string(c.most) + (c.divisor > 1 ? " by " + std::to_string(c.divisor) : "");
}

}  // namespace

InputSignature signature_of(const Graph& fusion, const CompileOptions& options) {
  const bool by_classes = is_automatic(fusion, options);
  const MemoryClasses memory = by_classes ? memory_classes(fusion, options.inputs) : MemoryClasses();
  const MemoryClass unknown;
  InputSignature result;
  const auto names = inputs(fusion);
  const std::vector<bool> shapes = by_classes ? shaping_scalars(fusion) : std::vector<bool>(fusion.values.size());
  for (size_t i = 0; i < names.size() && i < options.inputs.size(); ++i) {
    const auto it = memory.find(fusion[names[i]].name);
    const MemoryClass* classes = !by_classes ? nullptr : it == memory.end() ? &unknown : &it->second;
    result.inputs.push_back(signature_of(fusion, names[i], options.inputs[i], classes, shapes[names[i].index]));
  }
  if (options.index_bits != 0) result.facts.push_back({"index width", std::to_string(options.index_bits)});
  return result;
}

std::string why_not(const Compiled& compiled, const Graph& fusion, const Bindings& bindings,
                    const CompileOptions& options) {
  if (!options.defects.empty()) return "seeded defects: every call is planned";
  CompileOptions own = options;
  if (compiled.automatic) own.steps = compiled.automatic->steps;
  if (is_automatic(fusion, options) != compiled.automatic.has_value())
    return compiled.automatic ? "a schedule is given, was the automatic plan" : "the automatic plan, was a schedule";
  if (const auto steps = plan_concretization(fusion, bindings, own); steps != compiled.concretize)
    return "symbolic axes become: " + words(steps) + ", was " + words(compiled.concretize);
  const Bindings sizes = rebind(fusion, bindings, compiled.concretized);
  if (compiled.automatic) {
    const Graph& g = compiled.concretized;
    const SizeClasses now(g, sizes);
    for (uint32_t i = 0; i < g.values.size(); ++i)
      if (now.of(ValueId(i)) != compiled.automatic->sizes.of(ValueId(i)))
        return "%" + g.values[i].name + ": " + words(now.of(ValueId(i))) + ", was " +
               words(compiled.automatic->sizes.of(ValueId(i)));
    for (uint32_t i = 0; i < g.domains.size(); ++i)
      if (const DomainId d(i); now.of(d) != compiled.automatic->sizes.of(d))
        return "%" + g[g[g[d].tensor].value].name + "." + g[d].name + ": " + words(now.of(d)) + ", was " +
               words(compiled.automatic->sizes.of(d));
    if (compiled.automatic->memory != memory_classes(fusion, options.inputs))
      return "alignments or strides of the inputs";
  }
  return "the width of indices, was " + std::to_string(compiled.index_bits);
}

}  // namespace fusebox
