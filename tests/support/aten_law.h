// The law of ATen segments: what is inferred before any data is what ATen gives, and the values are right. The tests for
// the CPU and for a GPU share it. It takes the op cases, so an op is judged as soon as it has cases.
//
//   AtenLaw law(*device);
//   for (const OpCase& c : op_cases(kind).cases) law.check(c, Lying::kSliced);
#pragma once

#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>
#include <map>
#include <string>

#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "replay/data/input.h"
#include "replay/device/module_loader.h"
#include "replay/run/aten_segment.h"
#include "replay/run/compare.h"
#include "tests/support/op_cases.h"

namespace fusebox::test {

// How the inputs of a case lie in memory.
enum class Lying { kAsGiven, kSliced, kTransposed, kExpanded, kPermuted, kOffset, kStrided };
inline constexpr Lying kLyings[] = {Lying::kAsGiven,  Lying::kSliced, Lying::kTransposed, Lying::kExpanded,
                                    Lying::kPermuted, Lying::kOffset, Lying::kStrided};

// The same elements, lying otherwise; with kExpanded all rows of the first axis are one.
inline TensorData lying(const TensorData& t, Lying way) {
  const size_t rank = t.rank();
  if (way == Lying::kAsGiven || rank == 0) return t;
  std::vector<size_t> order(rank);
  for (size_t i = 0; i < rank; ++i) order[i] = i;
  if (way == Lying::kTransposed) std::reverse(order.begin(), order.end());
  if (way == Lying::kPermuted) std::rotate(order.begin(), order.begin() + 1, order.end());
  std::vector<int64_t> strides(rank);
  int64_t run = way == Lying::kStrided ? 2 : 1;
  for (size_t k = rank; k-- > 0;) {
    strides[order[k]] = run;
    run *= std::max<int64_t>(t.shape[order[k]], 1) + (way == Lying::kSliced ? 1 : 0);
  }
  if (way == Lying::kExpanded) strides[0] = 0;
  TensorData made = allocate_tensor(t.dtype, t.shape, strides, way == Lying::kOffset ? 3 : 0);
  copy_elements(made, t);
  return made;
}

class AtenLaw {
 public:
  explicit AtenLaw(Device& device) : device_(device) {}

  void check(const OpCase& c, Lying way);
  // Checks some cases of every op in all ways.
  void check_every_op(size_t cases_of_each);
  // Checks every op of two operands with a number in the place of either.
  void check_numbers();

  int ran = 0, refused = 0, called = 0;  // called: as one call of several ops

 private:
  std::string judged(const Graph& form, std::span<const BoundInput> bound, std::span<const AtenValue> given,
                     const Evaluation& expected, const ProductCall* call);
  void fail(const OpCase& c, Lying way, const std::string& why) {
    if (failed_[std::string(row_of(c.kind).text) + why.substr(0, 6)]++ == 0)
      ADD_FAILURE() << device_.name() << ": " << c.name << ", way " << static_cast<int>(way) << ": " << why << "\n"
                    << print(c.fusion);
  }

  Device& device_;
  std::map<std::string, int> failed_;
};

inline std::string strides_text(const TensorLayout& l) {
  std::string all;
  for (size_t i = 0; i < l.shape.size(); ++i)
    all += (i ? ", " : "") + std::to_string(l.shape[i]) + ":" + std::to_string(l.strides[i]);
  return "[" + all + "]";
}

inline void AtenLaw::check(const OpCase& c, Lying way) {
  // A segment makes tensors.
  for (const OutputRef& out : outputs(c.fusion))
    if (!c.fusion.is_tensor(out.value)) return;
  std::vector<Argument> inputs;
  for (const InputSpec& s : c.inputs) {
    Argument a = make_argument(s);
    if (!a.is_scalar) a.tensor = lying(a.tensor, way);
    inputs.push_back(std::move(a));
  }
  const AtenApi& aten = load_aten();
  std::optional<Evaluation> expected;
  Bindings sizes;
  try {
    sizes = bind_sizes(c.fusion, bound_inputs(inputs));
    expected = aten.evaluate(c.fusion, inputs);
  } catch (const Error&) {
    ++refused;  // the program declares another layout, or an index lies outside
    return;
  }
  const Graph form = aten_form(c.fusion);
  const AtenPlace place = device_.aten_place();
  std::vector<AtenValue> given;
  std::vector<BoundInput> bound;
  std::vector<RunTensor> kept;
  size_t next = 0;
  const std::vector<ValueId> own = fusebox::inputs(c.fusion);
  for (ValueId v : fusebox::inputs(form)) {
    AtenValue value;
    value.dtype = form[v].dtype;
    if (form.is_tensor(v)) {
      while (inputs[next].is_scalar) ++next;
      kept.push_back(device_.upload(inputs[next++].tensor));
      const TensorData& layout = kept.back().layout;
      value.layout = {layout.shape, layout.strides};
      value.data = place.is_gpu ? reinterpret_cast<void*>(kept.back().pointer) : static_cast<void*>(layout.data());
      bound.push_back({.shape = layout.shape, .strides = layout.strides});
    } else {
      value.is_scalar = true;
      value.bits = *sizes[find_value(c.fusion, form[v].name)->index];
      bound.push_back({.is_scalar = true, .bits = value.bits});
    }
    given.push_back(std::move(value));
  }
  // As one call of several ops, if they are one, and each op by itself.
  const std::optional<ProductCall> whole = product_call(form);
  for (const ProductCall* call : {whole ? &*whole : nullptr, static_cast<const ProductCall*>(nullptr)}) {
    if (const std::string why = judged(form, bound, given, *expected, call); !why.empty())
      return fail(c, way, why + (call ? ", as one call" : ""));
    if (!call) break;
    ++called;
  }
  ++ran;
}

// What is wrong with a run; empty if nothing is.
inline std::string AtenLaw::judged(const Graph& form, std::span<const BoundInput> bound,
                                   std::span<const AtenValue> given, const Evaluation& expected,
                                   const ProductCall* call) {
  const AtenPlace place = device_.aten_place();
  try {
    const std::vector<TensorLayout> inferred = load_aten().infer(form, bound, call);
    const std::vector<AtenValue> made = load_aten().run(form, given, place, call);
    if (inferred.size() != made.size()) return "number of results";
    for (size_t i = 0; i < made.size(); ++i) {
      TensorLayout a = inferred[i], b = made[i].layout;
      bool same = a.shape == b.shape;
      // The stride of an axis with one element, or of a tensor without elements, says nothing.
      const bool is_empty = std::ranges::find(a.shape, 0) != a.shape.end();
      for (size_t k = 0; same && !is_empty && k < a.shape.size(); ++k)
        same = a.shape[k] <= 1 || a.strides[k] == b.strides[k];
      if (!same) return "layout " + strides_text(a) + " was inferred, and ATen gives " + strides_text(b);
      TensorData actual = external_tensor(made[i].dtype, made[i].data, b.shape, b.strides, made[i].keeper);
      if (place.is_gpu) {
        RunTensor t;
        t.layout = actual;
        t.layout.storage.reset();
        t.pointer = reinterpret_cast<CudaPointer>(made[i].data);
        actual = device_.download(t, "");
      }
      const Comparison comparison = compare(actual, expected.outputs[i], 1);
      if (!comparison.ok) return "values " + comparison.message(expected.outputs[i].name);
    }
  } catch (const Error& e) {
    return code_text(e.code) + " " + e.place + ": " + e.what();
  }
  return {};
}

// A few cases of each op and dtype.
inline std::vector<OpCase> some_cases(OpKind kind, size_t of_each_dtype) {
  std::map<Dtype, size_t> taken;
  std::vector<OpCase> some;
  for (OpCase& c : op_cases(kind).cases)
    if (taken[c.dtype]++ < of_each_dtype) some.push_back(std::move(c));
  return some;
}

inline void AtenLaw::check_numbers() {
  constexpr std::pair<const char*, const char*> kNumbers[] = {{"f32", "2.5_f32"}, {"f16", "2.5_f16"}, {"i32", "3_i32"}};
  for (const OpKind kind : ops_with_cases()) {
    if (row_of(kind).format->name != "kBinary") continue;
    for (const auto& [dtype, number] : kNumbers)
      for (const bool is_first : {true, false}) {
        const std::string op(row_of(kind).text),
            operands = is_first ? std::string(number) + ", %x" : "%x, " + std::string(number);
        OpCase c;
        c.name = op + " " + operands;
        c.kind = kind;
        try {
          c.fusion = canonical_order(
              main_graph(parse_module("fusion @f {\n  %n = size\n  %x = input " + std::string(dtype) +
                                      "[%n] contiguity [false]\n  %y = " + op + " " + operands + "\n  output %y\n}")));
        } catch (const Error&) {
          continue;  // the op takes no such number
        }
        c.inputs = {parse_input_spec("x", std::string(dtype) + "[7] boundary seed 3")};
        check(c, Lying::kAsGiven);
      }
  }
}

inline void AtenLaw::check_every_op(size_t cases_of_each) {
  for (const OpKind kind : ops_with_cases()) {
    const int before = ran;
    for (const OpCase& c : some_cases(kind, cases_of_each))
      for (const Lying way : kLyings) check(c, way);
    EXPECT_GT(ran, before) << row_of(kind).text << " was never run";
  }
  std::printf("  %d runs, %d with inputs that the program refuses\n", ran, refused);
}

}  // namespace fusebox::test
