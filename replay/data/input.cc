#include "replay/data/input.h"

#include <algorithm>

#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "replay/data/npy.h"

namespace fusebox {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// Rewrites `f64 0.5`, as people write a scalar, to the text form's `0.5_f64`.
std::string spec_text(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::string(text);
  const std::string_view word = text.substr(0, space), rest = trimmed(text.substr(space));
  const auto dtype = parse_dtype(word);
  if (!dtype || rest.find(' ') != std::string_view::npos) return std::string(text);
  if (rest == "true" || rest == "false") return std::string(rest);
  return std::string(rest) + "_" + std::string(word);
}

// Whether the text is a number without a dtype.
bool is_bare_number(std::string_view text) {
  const bool starts_number = !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
  return (starts_number && text.find_first_of("_ ") == std::string_view::npos) || text == "inf" || text == "nan";
}

InputSpec read_spec(const std::string& name, std::string_view text) {
  try {
    return parse_input_spec(name, spec_text(text));
  } catch (const Error& e) {
    throw Error(ErrorCode::kBadInputSpec, "the spec of this input cannot be read: " + std::string(e.what()),
                "%" + name);
  }
}

}  // namespace

InputOption parse_input_option(std::string_view text) {
  const size_t equals = text.find('=');
  std::string_view name = trimmed(text.substr(0, equals));
  if (!name.empty() && name.front() == '%') name.remove_prefix(1);
  if (equals == std::string_view::npos || name.empty())
    throw Error(ErrorCode::kBadInputSpec,
                "an input is given as NAME=SPEC, such as x=f32[5,7] or x=file.npy; write it so",
                std::string(text.substr(0, 40)));
  InputOption option;
  option.name = std::string(name);
  const std::string_view spec = trimmed(text.substr(equals + 1));
  if (spec.ends_with(".npy")) {
    option.file = std::string(spec);
    return option;
  }
  option.spec = read_spec(option.name, spec);
  if (is_bare_number(spec)) option.number = std::string(spec);
  return option;
}

Argument make_argument(const InputOption& option, Dtype dtype, bool is_scalar) {
  if (is_scalar && !is_complex(dtype) && !option.number.empty()) {
    const bool is_truth = is_boolean(dtype) && (option.number == "0" || option.number == "1");
    const std::string given = is_truth ? (option.number == "1" ? "true" : "false") : option.number;
    return make_argument(read_spec(option.name, std::string(text(dtype)) + " " + given));
  }
  if (option.spec) return make_argument(*option.spec);
  TensorData t = read_npy(option.file, dtype);
  if (!is_scalar) return Argument::of(std::move(t));
  if (element_count(t.shape) != 1)
    throw Error(ErrorCode::kBadNpy,
                option.file + " holds " + std::to_string(element_count(t.shape)) + " numbers; a scalar takes one",
                "%" + option.name);
  return Argument::scalar(dtype, load_element(t, t.offset));
}

}  // namespace fusebox
