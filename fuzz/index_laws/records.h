// Cases of the index laws as bytes: a head, then one record for each transform. Every byte string is a case. Editing a
// record edits one transform, so mutating the bytes mutates the chain.
//
// Invariants: a transform that cannot apply is skipped (a merge of a domain with itself, a swizzle of unsuitable
// extents); a case has at most kMostRecords transforms.
//
//   Records r = read_records(bytes);
//   r.transforms.push_back({.kind = Kind::kMerge, .first = 0, .second = 1});
//   Case c = case_of(r);   std::vector<uint8_t> again = write_records(r);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fuzz/base/random_source.h"
#include "fuzz/index_laws/cases.h"

namespace fusebox::index_laws {

inline constexpr size_t kMostRecords = 12, kMostOfTensor = 6;

struct Record {
  uint8_t tensor = 0;
  bool down = false;  // the transform does not lead to the loops
  Kind kind = Kind::kSplitInner;
  uint8_t first = 0, second = 0;  // places in the list of existing domains
  uint8_t factor = 0, right = 0;  // scalars (chain.h); for a resize, the amounts it adds
  bool operator==(const Record&) const = default;
};

struct Records {
  std::vector<uint8_t> axes;  // one or two extents, the same for every tensor; scalars
  uint8_t tensors = 1;
  bool transposed = false, branched = false;
  uint8_t op = 0;               // of the last tensor: 0 none, 1 a reshape by 4, 2 a resize
  uint8_t left = 0, right = 0;  // the amounts of that resize, plus 2
  std::vector<Record> transforms;
  bool operator==(const Records&) const = default;
};

Records read_records(std::span<const uint8_t> bytes);
std::vector<uint8_t> write_records(const Records& r);

Case case_of(const Records& r);
// The bindings under which the law is checked. Without symbolic extents, one binding that binds nothing.
const std::vector<Binding>& bindings_of(const Records& r);

// Adds, removes or exchanges transforms, or changes a factor or an extent to a nearby value.
void mutate_records(fuzz::RandomSource& random, Records& r);
// The tensors of the first case with transforms of both.
Records cross_records(fuzz::RandomSource& random, const Records& a, const Records& b);

}  // namespace fusebox::index_laws
