// Draws steps for generate_steps.h and applies each to its graph at once. Only for use inside fuzz/.
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

  // -- whole schedules; accepted steps are appended to `steps`
  // Makes ops fast, and perhaps some of them exact again.
  void precision();
  void rewrite();
  void concretize(const Graph& fusion, const Bindings& sizes);
  // Assigns the ops to segments and schedules each segment.
  void assign(size_t max_transforms);
  // The same for the ops that ATen alone computes and the kernels between them, which only get threads.
  void assign_plain();
  void schedule(size_t max_transforms);
  // Replays the list, skips steps that do not apply, then adds what every kernel needs.
  void replay_list(std::span<const Step> list, const Bindings& sizes);
  // -- step_needs.cc: the steps that nearly every fusion needs to be lowered as one kernel. Reductions become the
  // innermost loops. Tensors that are not inlined move to memory that all threads share. No thread keeps a symbolic
  // number of accumulators.
  void reduce_innermost();
  void keep_visible(MemoryType memory);
  void bound_accumulators();
  // Puts each element of each tensor on a thread of its own.
  void spread();

  // Takes one random step of any kind (step_kinds.cc).
  void random_step();

  std::vector<Step> steps;
  Focus focus = {};  // used by `schedule`
  // Whether there is a tensor to schedule.
  bool has_tensors() const { return !tensors(false).empty(); }

 private:
  bool take(Step step);
  std::optional<int64_t> extent_of(const StepOperand& domain, const Bindings& sizes = {}) const;
  bool is_small_launch(const Step& parallelize);
  // Assigns the ops, then calls `schedule_part` for each kernel's segment, with that segment as the graph.
  void each_part(const std::vector<Step>& assigns, const std::function<void()>& schedule_part);
  bool is_library_op(const std::string& name) const;
  // Ops that ATen alone computes are parts of their own. Each result of such an op may be cut from the others.
  void cut_at_library_ops(const std::vector<std::string>& names, std::vector<size_t>& cuts) const;
  // Cuts around reshapes and slices, so that they may be views.
  void cut_at_views(const std::vector<std::string>& names, std::vector<size_t>& cuts);
  bool may_be_view(const std::string& name) const;
  // Makes views of segments of one such op, as far as they are allowed.
  void assign_views(std::vector<Step>& assigns);
  // An `assign` step for the tensors between each two cuts; the first tensor of a part decides who computes it.
  std::vector<Step> assigns_of(const std::vector<std::string>& names, std::vector<size_t> cuts,
                               const std::function<bool(const std::string&)>& is_for_aten);
  std::vector<std::string> tensors(bool with_inputs) const;
  std::string any_tensor();
  std::string any_needed_tensor();
  const Tensor& tensor(const std::string& name) const { return g_.tensor_of(*find_value(g_, name)); }
  StepOperand any_domain(const std::string& name);
  StepOperand factor(DomainId of);
  std::string fresh();
  std::pair<std::string, std::string> read_and_reader();
  std::string target();
  size_t shared_loops(const Tensor& t) const;
  bool has_constant_part(const Tensor& t) const;

  // step_recipes.cc: whole schedules, drawn instead of `schedule`. Each returns false if it does not suit the fusion;
  // it may have taken steps before.
  bool recipe();
  bool vector_rows();
  bool block_reductions();
  bool one_parallel_axis();
  bool clustered_rows();
  bool loads_ahead();
  std::string merge_loops(const std::string& name, size_t first, size_t last);
  void finish(const std::string& name, bool in_vectors);

  // step_situations.cc: the schedules of a focus; false if they do not suit the fusion.
  bool block_dimensions(const BlockFocus& block);
  bool shared_in_loop(ParallelType loop);
  bool sum_of_all_blocks();
  bool two_scopes();
  bool two_cluster_sums();
  bool rows_in_vectors();
  bool two_widths();
  bool rows_of_threads();
  bool resized_alike();
  bool later_result();
  bool slice_in_vectors();
  bool inlined();
  bool parallelize(const std::string& tensor, DomainId d, ParallelType p);
  // Adds segment borders until there are as many as the focus wants.
  void cut_apart(std::vector<size_t>& cuts);
  void permute_crossings();

  // step_facts.cc: facts about sizes that hold in the case, or now and then do not, a bound on the launch, and clusters.
  void facts();
  void bound_launch();
  void dependent_launch();
  void cluster(int64_t blocks, ParallelType axis);

  // step_kinds.cc: the steps of one kind.
  void relate();
  void prepare();
  void memory(const std::string& name);
  void lay_out();
  void loop_like_a_reader(const std::string& name);
  Attrs copy_attrs();
  Attrs fork_attrs();
  void like_some(const std::string& name);
  void set_mesh(const std::string& name);
  void rfactor(const std::string& name);
  void unroll_sum();
  void permute_allocation(const std::string& name);
  void threads(const std::string& name);

  // step_transforms.cc
  void transform(const std::string& name, size_t count);
  void split(const std::string& name, DomainId d);
  void swizzle(const std::string& name);
  void resize(const std::string& name);
  // Two transforms; the second transforms a result of the first.
  void pair_of(const std::string& name, const TransformFocus& kinds);
  // Takes one transform of that kind of a domain and returns one of the domains that it makes.
  std::optional<StepOperand> transform_of(TransformKind kind, const std::string& name, const StepOperand& domain);
  // Splits two loops so that parts of them have the given extents, and swizzles these.
  void swizzle_parts(const std::string& name, const SwizzleFocus& parts);
  bool take_swizzle(SwizzleType type, const StepOperand& first, const StepOperand& second);

  // step_vectors.cc: copies of inputs and of an output, which become vector accesses.
  // The output that is stored in vectors: one that overwrites an input, if there is one.
  std::string stored_output(const std::string& otherwise);
  bool vectors(const std::string& name, int64_t width = 0);
  void copy_again(std::string copy);
  std::string vector_of(const std::string& copy);
  void vectorize();

  RandomSource& random_;
  Graph g_;
  Graph unscheduled_;                // the graph, or the segment, before `schedule`; empty before
  std::vector<std::string> copies_;  // tensors to make in vectors of the domain `vector_`
  std::string vector_;
  int64_t vector_width_ = 0;
  int next_ = 0;
  Bindings sizes_;  // sizes of the graph
  std::map<ParallelType, int64_t> launch_;
  int64_t idle_ = 1;                 // iterations of a schedule's loops per element of the tensor
  bool in_part_ = false;             // the graph is a segment
  std::string part_;                 // its name
  bool names_part_ = false;          // steps say which segment they are for
  std::set<std::string> elsewhere_;  // tensors of earlier segments
};

}  // namespace fusebox::fuzz
