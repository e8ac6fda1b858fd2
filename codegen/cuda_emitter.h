// Writes one kernel as a CUDA function. Only for use inside codegen; cuda.h is the interface.
//
// Invariants: the kernel is canonical. A line is written when its op comes, so definitions stand before their uses. The
// headers that a line needs are noted when it is written.
//
//   CudaHeaders headers;
//   std::string text = CudaEmitter(kernel, options).emit(headers);  // `extern "C" __global__ void …`
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "codegen/constant_ranges.h"
#include "codegen/cuda.h"
#include "codegen/cuda_expression.h"
#include "codegen/cuda_names.h"
#include "codegen/divisors.h"
#include "ir/table/error.h"

namespace fusebox {

class CudaEmitter {
 public:
  CudaEmitter(const Graph& graph, const CudaOptions& options)
      : g_(graph), options_(options), names_(graph), ranges_(graph) {}

  // Adds the headers that the text needs to `headers`.
  std::string emit(CudaHeaders& headers);

 private:
  // -- what is known before anything is written
  void look_ahead();
  void parameters();
  std::string launch_bounds() const;
  std::string cluster_dims() const;
  // -- ops
  void region(RegionId id) { region(std::span<const OpId>(g_[id].ops)); }
  void region(std::span<const OpId> ops);
  bool is_move(const Op& op) const;
  void op(const Op& op);
  void scalar(const Op& op);
  void thread(const Op& op);
  void loop(const Op& op);
  std::string_view limit_of_copies(const Op& loop) const;
  void branch(const Op& op);
  // -- cuda_memory.cc
  void allocate(const Op& op);
  void load(const Op& op);
  void store(const Op& op);
  void copy(const Op& op);
  // The cache operator of an access to global memory, as a template argument; empty: the default.
  std::string cache(const Op& op, ValueId tensor) const;
  // Whether it allocates an even number of 16-bit floats for a thread.
  bool is_in_pairs(const Op& allocation) const;
  // -- cuda_collectives.cc
  void collective(const Op& op);
  // The first op, a reduction in a block, and those behind it with which it can exchange values at once: each of one
  // value, by the same threads and through the same workspace.
  struct Together {
    std::vector<OpId> before;      // ops between them, which are emitted first
    std::vector<OpId> reductions;  // the first op, and those that join it
    size_t count = 1;              // of all these ops
  };
  Together exchanged_together(std::span<const OpId> ops) const;
  void collectives(std::span<const OpId> ops);
  void grid_reduce(const Op& op);
  void cluster_reduce(const Op& op);
  void warp_reduce(const Op& op);
  // Lists of buffers that blocks combine: how many elements they have, and one list as an argument.
  int64_t array_elements(const Op& op, std::span<const ValueId> arrays) const;
  std::string places_of(const Op& op, std::span<const ValueId> list);
  // The coordinates along which a collective exchanges values, as a template argument.
  std::string threads_of(const Op& op, const std::string& place) const;
  void welford_combine(const Op& op);

  // -- pieces
  void line(const std::string& text) { body_ += std::string(static_cast<size_t>(2 * depth_), ' ') + text + "\n"; }
  void prepare_divisor(ValueId v);
  std::string prepared_divisor(ValueId v, bool is_fast) const;
  void divide_in_loop(RegionId inner, const std::set<ValueId>& divisors, const std::function<void(RegionId)>& emit);
  CudaTerm term(ValueId v) const {
    if (!v) throw Error(ErrorCode::kInvalidGraph, "an operand is missing");
    if (g_.is_tensor(v))
      throw Error(ErrorCode::kWrongKind, "a buffer stands where a scalar is needed", "%" + g_[v].name);
    if (!g_[v].constant && names_[v].empty())
      throw Error(ErrorCode::kNotDominated, "used before it is defined", "%" + g_[v].name);
    return {names_[v], g_[v].dtype, g_[v].constant};
  }
  std::string as(ValueId v, Dtype dtype, bool bare = false) { return cuda_term(term(v), dtype, headers_, bare); }
  std::string index(ValueId v) { return as(v, Dtype::kIndex, true); }
  const std::string& buffer(ValueId v) const {
    if (!v || !g_.is_tensor(v))
      throw Error(ErrorCode::kWrongKind, "a scalar stands where a buffer is needed", v ? "%" + g_[v].name : "");
    return names_[v];
  }
  std::string place(ValueId tensor, ValueId at) { return buffer(tensor) + "[" + index(at) + "]"; }
  // `const T name = `, with the result named after its dtype.
  std::string define(ValueId result) {
    return "const " + std::string(cuda_type(g_[result].dtype)) + " " + names_.define(result) + " = ";
  }
  // `const auto [a, b, c] = `
  std::string define_all(const Op& op) {
    std::string text = "const auto [";
    for (size_t i = 0; i < op.results.size(); ++i) text += (i == 0 ? "" : ", ") + names_.define(op.results[i]);
    return text + "] = ";
  }
  std::string welford_type(Dtype value, Dtype count) {
    headers_.need(CudaHeader::kCombine);
    return "<" + std::string(cuda_type(value)) + ", " + std::string(cuda_type(count)) + ">";
  }

  const Graph& g_;
  const CudaOptions& options_;
  CudaNames names_;
  const ConstantRanges ranges_;
  CudaHeaders headers_;
  std::string body_, comment_, signature_;
  int depth_ = 1, loops_ = 0;                // of the line that comes next, and the loops around it
  std::set<ValueId> written_;                // buffers that the kernel stores to
  std::vector<bool> ahead_;                  // values that a compiler can compute ahead
  std::map<ValueId, int64_t> vector_bytes_;  // the widest vector access of a buffer
  std::set<ValueId> in_pairs_;               // buffers of a thread whose 16-bit floats are written in vectors only
  bool uses_shared_ = false;
  Divisors wanted_;
  std::map<ValueId, std::string> divisors_, reciprocals_;  // the prepared ones, by name
  int outside_count_ = 0;
  int together_count_ = 0;  // arrays of values that are exchanged at once
  std::string outside_;     // of the loop around, if it runs again for dividends that are out of range
};

}  // namespace fusebox
