// Counts what a campaign has produced: ops by dtype, pairs of transforms, parallel types, steps, memory types, and the
// classes of coverage_classes.h (extents, split factors, ranks, layouts, values and so on). A row that stays at 0 is a
// hole in the generators.
//
// Invariants: the rows follow from the tables, in their order. Combinations that nothing can produce have no row.
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
  // Counts the fusion and its inputs, and the schedule if the case is compiled.
  void count(const Case& c);
  std::vector<CoverageRow> rows() const;
  size_t row_count() const { return rows_.size(); }
  size_t covered() const;
  // Adds the counts of another run, one for each row in order.
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
