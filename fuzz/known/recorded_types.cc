// The table of what each op makes of dtypes.
#include <fmt/format.h>
#include <vector>

#include "fuzz/known/outcome_list.h"
#include "fuzz/known/recorded_tables.h"
#include "ir/table/dtype.h"
#include "ir/table/error.h"
#include "ir/table/op.h"
#include "ir/table/type_rule.h"

namespace fusebox::fuzz {
namespace {

std::vector<Dtype> all_dtypes() {
  std::vector<Dtype> all;
  for (size_t i = 0; i < dtype_rows().size(); ++i) all.push_back(static_cast<Dtype>(i));
  return all;
}

// The dtypes for which it is true.
template <class Is>
std::string names(Is is) {
  std::string out;
  for (const Dtype d : all_dtypes())
    if (is(d)) out += fmt::format(" {}", text(d));
  return out;
}

// The dtypes in which tensors meet, tensors and scalars, three of both.
std::string meetings() {
  std::string out;
  OutcomeList all;
  const auto meet = [&](const std::vector<OperandType>& operands) {
    std::string what, met;
    for (const OperandType& o : operands) what += fmt::format("{}{} ", o.is_scalar ? "scalar " : "", text(o.dtype));
    all.add(what, [&] { return met = text(common_dtype(operands)); });
    return met;
  };
  for (const bool is_scalar : {false, true})
    for (const Dtype a : all_dtypes()) {
      out += fmt::format("{} and {}:", text(a), is_scalar ? "scalars" : "tensors");
      for (const Dtype b : all_dtypes())
        if (const std::string met = meet({{a}, {b, is_scalar}}); met != text(a) && !met.empty())
          out += fmt::format(" {} {}", text(b), met);
      out += "\n";
      for (const Dtype b : all_dtypes()) {
        meet({{a, is_scalar}, {b, true}, {Dtype::kHalf}});
        meet({{a}, {b, is_scalar}, {Dtype::kInt32, true}});
      }
    }
  return out + all.text();
}

}  // namespace

std::string type_calls() {
  std::string out;
  for (const OpRow& row : op_rows()) {
    if (!row.at(Level::kMath)) continue;
    out += fmt::format("{}:{}\n", row.text, names([&](Dtype d) { return accepts_dtype(row.kind, d); }));
    if (const std::string by_aten = names([&](Dtype d) { return is_library(row.kind, d); });
        !by_aten.empty() && !demands(row.kind, kLibrary))
      out += "  by ATen:" + by_aten + "\n";
    if (!demands(row.kind, kPointwise)) continue;
    // What a scalar beside a tensor is converted to.
    OutcomeList converted;
    for (const Dtype tensor : all_dtypes())
      for (const Dtype scalar : all_dtypes())
        for (const size_t at : {size_t{0}, size_t{1}, size_t{2}}) {
          std::vector<OperandType> operands(3, {tensor});
          operands[at] = {scalar, true};
          converted.add(fmt::format("{} {} {}", text(tensor), text(scalar), at), [&] {
            const auto to = scalar_dtype(row.kind, operands, at);
            return std::string(to ? text(*to) : "as it is");
          });
        }
    Checksum sum;
    sum.add(converted.text());
    out += "  scalars: checksum " + sum.text() + "\n";
  }
  return out + meetings();
}

}  // namespace fusebox::fuzz
