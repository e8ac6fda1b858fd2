// Planning knows a class of each size of a run, and not the size itself. So one plan serves every
// run whose sizes have the same classes, whichever run came first.
//
// Invariants: a class says nothing that is not true of the size. Every class of a graph follows from its bindings.
//
//   SizeClass c = class_of_size(4099);   // c.most == 5120, c.divisor == 1
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/infer/bind.h"
#include "ir/scalar/scalar.h"
#include "ir/table/defect.h"

namespace fusebox {

struct SizeClass {
  int64_t most = 0;     // the size is at most this; more than 4/5 of it is reached, from 5 on
  int64_t divisor = 1;  // the largest power of two, up to 64, that divides the size; 64 for 0
  bool operator==(const SizeClass&) const = default;
};

// 0, 1, 2, 3 and 4 are classes of their own. From there on the bounds are 4, 5, 6 and 7 times a power of two. A negative
// number has the bound 0, and no divisor.
SizeClass class_of_size(int64_t size, const Defects& defects = {});

// The largest size of the class below: every size of the class is larger. 0 where nothing is known.
int64_t below_class(SizeClass c);

// a / b, rounded up, for any a; 0 for a negative one.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a - 1) / b + 1; }
// The largest power of two that divides a number, up to `most`, itself a power of two.
int64_t power_of_two_in(int64_t number, int64_t most);

// For each value, whether it is a scalar that extents, bounds or facts follow from. Any other scalar is data, such as the seed
// of a random tensor, and no plan depends on it.
std::vector<bool> shaping_scalars(const Graph& g);

// The classes of these scalars and of the domains of a graph, as far as bindings give their values.
class SizeClasses {
 public:
  SizeClasses() = default;
  SizeClasses(const Graph& g, const Bindings& bindings, const Defects& defects = {});

  // The class of a scalar of the graph: a constant, a size, or a scalar computed from them. An unknown
  // scalar has the class {INT64_MAX, 1}.
  SizeClass of(ValueId v) const;
  // The class of a domain's extent: 1 for a broadcast, also an expanded one.
  SizeClass of(DomainId d) const;

  bool operator==(const SizeClasses&) const = default;

 private:
  std::vector<SizeClass> by_value_, by_domain_;
};

// The bytes of a tensor at the bounds of its classes.
double bytes_at_most(const Graph& g, ValueId tensor, const SizeClasses& sizes);

// Planning knows this much of an input tensor's memory.
struct MemoryClass {
  int64_t align = 16;  // of the address of element (0, 0, …), in bytes: a power of two, up to 16
  // By axis: the largest power of two, up to 64, that divides the stride, in elements. Empty: a contiguous tensor.
  std::vector<int64_t> stride_divisors = {};
  bool operator==(const MemoryClass&) const = default;
};

// By name of an input. An input that is not there is contiguous, and aligned to 16 bytes.
using MemoryClasses = std::map<std::string, MemoryClass>;

// `inputs` are those of the fusion, in order, and may be empty.
MemoryClasses memory_classes(const Graph& fusion, std::span<const BoundInput> inputs, const Defects& defects = {});

}  // namespace fusebox
