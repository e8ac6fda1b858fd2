// What a campaign has produced: counters by op and dtype, by pairs of transforms, by parallel type, by step, by
// memory, and by classes of extents, split factors, ranks, layouts, values and lengths, constants, casts, slices,
// outputs and swizzles (coverage_classes.h). A row that stays at 0 is a hole in the generators.
//
// Invariants: the rows follow from the tables, in their order; `may_be_zero` rows are those that nothing can produce,
// with a reason.
//
//   Coverage coverage;
//   coverage.count(case);
//   for (const CoverageRow& row : coverage.rows()) if (row.count == 0) …
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fuzz/generate/case.h"

namespace fusebox::fuzz {

struct CoverageRow {
  std::string group;  // op, transforms, parallel, step, extent …
  std::string name;
  uint64_t count = 0;
};

class Coverage {
 public:
  Coverage();
  // The fusion and its inputs; and the schedule, where the case is compiled.
  void count(const Case& c);
  std::vector<CoverageRow> rows() const;
  size_t row_count() const { return rows_.size(); }
  size_t covered() const;
  // Counts of another run, in the order of the rows; as many as there are rows.
  void add_counts(std::span<const uint64_t> counts);
  void add(const Coverage& other);

 private:
  void count_fusion(const Graph& g);
  void count_inputs(const Case& c);
  void count_schedule(const Compiled& c);
  void count_row(size_t group, size_t offset);

  std::vector<CoverageRow> rows_;
  std::vector<size_t> groups_;    // where each group begins
  std::vector<size_t> op_dtype_;  // op × dtype → row, or none
};

}  // namespace fusebox::fuzz
