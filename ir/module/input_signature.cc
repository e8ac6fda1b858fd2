#include "ir/module/input_signature.h"

#include <algorithm>

namespace fusebox {
namespace {

std::string most_text(int64_t most) { return most == kAny ? "any" : "up to " + std::to_string(most); }
std::string class_text(int64_t most, int64_t divisor) {
  return most_text(most) + (divisor > 1 ? " by " + std::to_string(divisor) : "");
}
std::string stride_text(const SignatureAxis& a) {
  if (a.stride != kAny) return "stride " + std::to_string(a.stride);
  return a.stride_divisor > 1 ? "stride by " + std::to_string(a.stride_divisor) : "any stride";
}

std::string was(const std::string& now, const std::string& before) { return now + ", was " + before; }
std::string number_or_any(int64_t n) { return n == kAny ? "any" : std::to_string(n); }

std::string difference_of_sizes(const SignatureAxis& now, const SignatureAxis& before) {
  if (now.most != before.most) return was(most_text(now.most), most_text(before.most));
  if (now.divisor != before.divisor)
    return "divisible by " + was(number_or_any(now.divisor), number_or_any(before.divisor));
  return {};
}

std::string difference_of_strides(const SignatureAxis& now, const SignatureAxis& before) {
  if (now.stride != before.stride) return was(stride_text(now), stride_text(before));
  if (now.stride_divisor != before.stride_divisor)
    return "stride divisible by " + was(number_or_any(now.stride_divisor), number_or_any(before.stride_divisor));
  return {};
}

std::string difference(const SignatureInput& now, const SignatureInput& before) {
  const std::string name = "%" + now.name;
  if (now.name != before.name) return "input " + was(name, "%" + before.name);
  if (now.is_scalar != before.is_scalar)
    return name + (now.is_scalar ? ": a scalar, was a tensor" : ": a tensor, was a scalar");
  if (now.dtype != before.dtype)
    return name + ": dtype " + was(std::string(text(now.dtype)), std::string(text(before.dtype)));
  if (now.axes.size() != before.axes.size())
    return name + ": rank " + was(std::to_string(now.axes.size()), std::to_string(before.axes.size()));
  // Strides follow from sizes in most calls, so sizes are named first.
  for (const auto differ : {difference_of_sizes, difference_of_strides})
    for (size_t i = 0; i < now.axes.size(); ++i)
      if (const std::string d = differ(now.axes[i], before.axes[i]); !d.empty())
        return name + "." + std::to_string(i) + ": " + d;
  if (now.align != before.align)
    return name + ": aligned to " + was(number_or_any(now.align), number_or_any(before.align));
  if (now.most != before.most || now.divisor != before.divisor)
    return name + ": " + was(class_text(now.most, now.divisor), class_text(before.most, before.divisor));
  return {};
}

}  // namespace

std::string text(const InputSignature& signature) {
  std::string all;
  for (const SignatureInput& input : signature.inputs) {
    all += "%" + input.name + " " + std::string(text(input.dtype));
    if (input.is_scalar) {
      if (input.most != kAny) all += " " + class_text(input.most, input.divisor);
    } else {
      all += " [";
      for (size_t i = 0; i < input.axes.size(); ++i)
        all +=
            (i ? ", " : "") + class_text(input.axes[i].most, input.axes[i].divisor) + " " + stride_text(input.axes[i]);
      all += "]";
      if (input.align != kAny) all += " aligned to " + std::to_string(input.align);
    }
    all += "\n";
  }
  for (const SignatureFact& fact : signature.facts) all += fact.name + ": " + fact.value + "\n";
  return all;
}

std::string difference(const InputSignature& now, const InputSignature& before) {
  if (now.inputs.size() != before.inputs.size())
    return was(std::to_string(now.inputs.size()) + " inputs", std::to_string(before.inputs.size()));
  for (size_t i = 0; i < now.inputs.size(); ++i)
    if (std::string d = difference(now.inputs[i], before.inputs[i]); !d.empty()) return d;
  const auto value_in = [](const InputSignature& s, const std::string& name) -> const std::string* {
    const auto it = std::ranges::find(s.facts, name, &SignatureFact::name);
    return it == s.facts.end() ? nullptr : &it->value;
  };
  for (const SignatureFact& fact : now.facts) {
    const std::string* old = value_in(before, fact.name);
    if (!old || *old != fact.value) return fact.name + ": " + was(fact.value, old ? *old : "not there");
  }
  for (const SignatureFact& fact : before.facts)
    if (!value_in(now, fact.name)) return fact.name + ": not there, was " + fact.value;
  return {};
}

}  // namespace fusebox
