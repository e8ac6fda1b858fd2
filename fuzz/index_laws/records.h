// Cases of the index laws as bytes: a head, then a record for each transform. Every byte string is a case, and every
// edit of a record is an edit of one transform, so that mutations of the bytes are mutations of the chain.
//
// Invariants: what does not fit where it stands is passed over (a merge of a domain with itself, a swizzle of extents
// that it cannot have); a case has at most kMostRecords transforms.
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
  bool down = false;  // not to the loops
  Kind kind = Kind::kSplitInner;
  uint8_t first = 0, second = 0;  // places among the domains that there are
  uint8_t factor = 0, right = 0;  // scalars (case.h), or what a resize adds
  bool operator==(const Record&) const = default;
};

struct Records {
  std::vector<uint8_t> axes;  // one or two extents, of every tensor; scalars
  uint8_t tensors = 1;
  bool transposed = false, branched = false;
  uint8_t op = 0;               // of the last tensor: 0 none, 1 a reshape by 4, 2 a resize
  uint8_t left = 0, right = 0;  // of that resize, less 2
  std::vector<Record> transforms;
  bool operator==(const Records&) const = default;
};

Records read_records(std::span<const uint8_t> bytes);
std::vector<uint8_t> write_records(const Records& r);

Case case_of(const Records& r);
// For extents that are symbols: what the law is checked under. One that binds nothing where there are none.
const std::vector<Binding>& bindings_of(const Records& r);

// Another transform, one less, two swapped, a factor beside what it was or at the extent's; another extent.
void mutate_records(fuzz::RandomSource& random, Records& r);
// The first's tensors with transforms of both.
Records cross_records(fuzz::RandomSource& random, const Records& a, const Records& b);

}  // namespace fusebox::index_laws
