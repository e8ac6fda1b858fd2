// What generate_steps.h is made with: a graph that steps are applied to as they are drawn. Not for use outside fuzz/.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/generate/generate_steps.h"
#include "ir/module/module.h"

namespace fusebox::fuzz {

class StepMaker {
 public:
  StepMaker(RandomSource& random, Graph graph) : random_(random), g_(std::move(graph)) {}

  // -- whole schedules; what was taken is in `steps`
  void rewrite();
  void concretize(const Graph& fusion, const Bindings& sizes);
  // The ops dealt out to segments, each scheduled by itself.
  void assign(size_t max_transforms);
  void schedule(size_t max_transforms);
  // Those of the steps that apply, one after another, and what a kernel needs besides.
  void replay_list(std::span<const Step> list, const Bindings& sizes);
  // What nearly every fusion needs to be lowered as one kernel: reductions last in their loops, whatever is not inlined
  // in memory that all threads share, and no symbolic number of accumulators in a thread.
  void reduce_innermost();
  void keep_visible(MemoryType memory);
  void bound_accumulators();
  // Each element of each tensor on a thread of its own.
  void spread();
  // One step of any kind, with nothing around it.
  void random_step();

  std::vector<Step> steps;
  Focus focus = {};  // of `schedule`
  // Whether there is a tensor to schedule.
  bool has_tensors() const { return !tensors(false).empty(); }

 private:
  bool take(Step step);
  std::optional<int64_t> extent_of(const StepOperand& domain, const Bindings& sizes = {}) const;
  bool is_small_launch(const Step& parallelize);
  // Makes each kernel's segment the graph that steps apply to, one after another.
  void each_part(const std::vector<Step>& assigns, const std::function<void()>& schedule_part);
  std::vector<std::string> tensors(bool with_inputs) const;
  std::string any_tensor();
  std::string any_needed_tensor();
  const Tensor& tensor(const std::string& name) const { return g_.tensor_of(*find_value(g_, name)); }
  StepOperand any_domain(const std::string& name);
  StepOperand factor(DomainId of);
  std::string fresh();
  std::pair<std::string, std::string> read_and_reader();
  std::string target();
  // The output that vectors store: one that overwrites an input, where there is such.
  std::string stored_output(const std::string& otherwise);
  size_t shared_loops(const Tensor& t) const;
  bool has_constant_part(const Tensor& t) const;

  // step_recipes.cc: a schedule drawn as a whole, beside `schedule`; false where the fusion has nothing for it, and
  // then steps may have been taken all the same.
  bool recipe();
  bool vector_rows();
  bool block_reductions();
  bool one_parallel_axis();
  std::string merge_loops(const std::string& name, size_t first, size_t last);
  void finish(const std::string& name, bool in_vectors);

  // step_situations.cc: what a case is aimed at; false where the fusion has nothing for it.
  bool block_dimensions(const BlockFocus& block);
  bool shared_in_loop(ParallelType loop);
  bool parallelize(const std::string& tensor, DomainId d, ParallelType p);
  // Borders of as many segments as the case is aimed at, beside those that are there.
  void cut_apart(std::vector<size_t>& cuts);
  void permute_crossings();

  void relate();
  void prepare();
  void memory(const std::string& name);
  void transform(const std::string& name, size_t count);
  void split(const std::string& name, DomainId d);
  void swizzle(const std::string& name);
  void resize(const std::string& name);
  void lay_out();
  Attrs copy_attrs();
  void like_some(const std::string& name);
  void set_mesh(const std::string& name);
  void rfactor(const std::string& name);
  void unroll_sum();
  void permute_allocation(const std::string& name);
  // Two transforms, the second of a result of the first.
  void pair_of(const std::string& name, const TransformFocus& kinds);
  // One of its kind, of a domain; a domain that it made.
  std::optional<StepOperand> transform_of(TransformKind kind, const std::string& name, const StepOperand& domain);
  // Of parts of two loops that have the given extents.
  void swizzle_parts(const std::string& name, const SwizzleFocus& parts);
  bool take_swizzle(SwizzleType type, const StepOperand& first, const StepOperand& second);
  bool vectors(const std::string& name, int64_t width = 0);
  void copy_again(std::string copy);
  std::string vector_of(const std::string& copy);
  void vectorize();
  void threads(const std::string& name);

  RandomSource& random_;
  Graph g_;
  std::vector<std::string> copies_;  // tensors to be made in vectors of the domain vector_
  std::string vector_;
  int64_t vector_width_ = 0;
  int next_ = 0;
  Bindings sizes_;  // of the graph
  std::map<ParallelType, int64_t> launch_;
  int64_t idle_ = 1;                 // how much more the loops of a schedule iterate than the tensor has elements
  bool in_part_ = false;             // the graph is a segment
  std::set<std::string> elsewhere_;  // tensors of the segments before it
};

}  // namespace fusebox::fuzz
