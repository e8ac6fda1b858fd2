// `PythonProgram` is the program that the Python package builds, schedules and runs: one fusion as a graph, and the
// steps taken on it.
//
// Invariants: `graph` stays at level math. The first step makes `scheduled`, a copy to which all steps are applied, and
// closes the graph. Python holds a `Value` by its number in `graph`, and by its name in `scheduled`.
//
//   PythonProgram p("f");
//   Value x = p.define_tensor("x", "f32", {-1, 3}, {2, 2}, {}, {});   // f32[%d0, 3]
//   p.add_output(p.pointwise("exp", {x}), std::nullopt);
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "ir/build/builder.h"
#include "ir/module/step.h"
#include "passes/pipeline/pipeline.h"
#include "replay/cache/log.h"
#include "replay/cache/plan_memory.h"
#include "replay/device/device.h"
#include "replay/device/repeating_device.h"
#include "replay/run/host_program.h"
#include "replay/run/run.h"

namespace fusebox::python {

namespace py = pybind11;

struct Value {
  ValueId id;  // none: a step made the tensor
  std::string name;
  bool is_tensor = false;
  uint64_t program = 0;  // the serial number of its program
};

// A value, or a Python bool, int, float or complex.
using Operand = py::object;
using Operands = std::vector<Operand>;

// An operand of a step: an integer, or tensor and domain; an empty domain means the tensor itself.
using StepWord = std::variant<int64_t, std::pair<std::string, std::string>>;

struct LoopInfo {
  std::string name, iter_type, parallel;
};

// The facts about an input that drawing its values needs. Axes are logical ones, in order.
struct InputInfo {
  std::string name, dtype;
  bool is_tensor = false;
  std::vector<int64_t> extents;         // −1 a symbol
  std::vector<std::string> iter_types;  // of the axes
  std::vector<bool> expanded;           // expanded broadcasts
  std::vector<int64_t> order;           // axes in the order of memory, outermost first
  std::vector<std::string> contiguity;  // of the axes in that order: true, false or none
  bool is_overwritten = false;          // by an output
  // The tensors that it indexes, each with the axis.
  std::vector<std::pair<Value, int64_t>> indexes;
};

// The result of judging a program on some inputs.
struct Judgement {
  std::string outcome;  // "passed", "refused" or "failed"
  // The stage, the check, and the kind of place (the op that makes the value). The same bug gives the same three, as
  // far as one can tell.
  std::string stage, check, place;
  std::string message;
};

// One compiled run that can be repeated on the same memory, without planning, checks or allocation.
class Launcher {
 public:
  Launcher(Compiled compiled, std::vector<Argument> arguments, int ordinal);
  // Clears, copies and launches again, on a GPU in the order of the default stream and without waiting.
  void launch() { device_->repeat(); }
  // The outputs' memory, as `PythonProgram::execute` returns it.
  py::list outputs() const;

 private:
  int ordinal_;
  Compiled compiled_;
  std::vector<Argument> arguments_;  // keeps the inputs
  std::unique_ptr<Device> inner_;
  std::unique_ptr<RepeatingDevice> device_;
  ProgramResult result_;
};

class PythonProgram {
 public:
  explicit PythonProgram(std::string_view name) : graph(fusion(name)) {}
  // The fusion in a text (the only one, or the one of that name), with one of its lists of steps; empty: the default
  // list, if there is one.
  static std::unique_ptr<PythonProgram> of_text(const std::string& text, const std::string& fusion,
                                                const std::string& steps);
  // The same for a file: a .fir or a .fuse. From a bundle it takes the steps and the seeded defects of its run.
  static std::unique_ptr<PythonProgram> of_file(const std::string& path, const std::string& fusion,
                                                const std::string& steps);

  // -- signature (program.cc). An extent of −1 is a symbol. An `expanded` of 1 means not expanded. `contiguity` has ids
  // of Contiguity, by axis; `order` has axes, outermost first.
  Value define_tensor(const std::string& name, const std::string& dtype, const std::vector<int64_t>& shape,
                      const std::vector<int64_t>& contiguity, const std::vector<int64_t>& order,
                      const std::vector<int64_t>& expanded);
  Value define_scalar(const std::string& name, const std::string& dtype);
  Value constant(const Operand& number, const std::optional<std::string>& dtype);
  void add_output(const Operand& value, const std::optional<Value>& alias);
  std::vector<std::string> input_names() const;
  std::string dtype(const Value& v) const;
  // The extents; −1 for a symbol.
  std::vector<int64_t> shape(const Value& v) const;

  // -- questions of shape (program_shapes.cc). `shapes` are those of the tensor inputs, in order.
  std::vector<InputInfo> input_infos() const;
  std::vector<LoopInfo> axes(const Value& v) const;
  std::vector<bool> expanded(const Value& v) const;
  // Whether the fusion has an op that ATen alone computes.
  bool has_library_ops() const;
  // Throws if no run of the fusion so far has inputs of these shapes.
  std::vector<int64_t> extents_of(const Value& v, const std::vector<std::vector<int64_t>>& shapes) const;
  // Decides symbolic axes as these shapes do, and closes the definition, so that steps can name the loops.
  void concretize(const std::vector<std::vector<int64_t>>& shapes);
  std::unique_ptr<PythonProgram> copy() const;

  // -- ops (program_ops.cc)
  Value pointwise(const std::string& op, const Operands& operands);
  Value cast(const Operand& x, const std::string& dtype);
  Value reduce(const std::string& op, const Value& x, const Axes& axes, bool keepdim,
               const std::optional<std::string>& dtype);
  Value var(const Value& x, const Axes& axes, int64_t correction, bool keepdim);
  std::pair<Value, Value> var_mean(const Value& x, const Axes& axes, int64_t correction, bool keepdim);
  std::vector<Value> moments(const std::string& op, const Value& x, const Axes& axes);
  Value broadcast(const Value& x, const std::vector<bool>& mask);
  Value shaped(const std::string& op, const Value& x, const Operands& shape, const Axes& dims);
  Value permute(const Value& x, const Axes& dims);
  Value squeeze(const Value& x, const Axes& axes, bool squeeze_expanded);
  Value slice(const Value& x, const Operands& starts, const Operands& stops, const std::optional<Operands>& steps);
  Value stride_order(const Value& x, const Axes& order);
  Value full(const Operands& shape, const Operand& fill, const std::string& dtype);
  Value iota(const Operand& length, const Operand& start, const Operand& step, const std::string& dtype);
  Value random(const std::string& op, const Operands& shape, const Operand& a, const Operand& b, const Operand& seed,
               const Operand& offset, const std::string& dtype);
  Value pad(const Value& x, const Operands& widths, const Operand& value);
  Value cat(const std::vector<Value>& tensors, int64_t axis);
  Value indexed(const std::string& op, const Value& x, const Operand& index, int64_t axis);
  Value scatter(const Value& x, const Value& index, const Operand& src, int64_t axis);
  Value triu(const Value& x, int64_t diagonal);
  Value embedding(const Value& indices, const Value& weight, const std::optional<double>& max_norm, double norm_type);
  // An op that ATen alone computes. `flag` sets the attribute of the op that is a flag.
  std::vector<Value> library(const std::string& op, const Operands& operands, const std::optional<int64_t>& axis,
                             bool flag, const std::optional<std::string>& dtype);
  Value size(const Value& x, int64_t axis);

  // -- schedule (program_steps.cc)
  void step(const std::string& kind, const std::vector<StepWord>& operands, const std::vector<std::string>& results,
            const py::dict& attrs);
  void take(const std::string& line);     // one step in the text form
  void take(std::span<const Step> list);  // the list of a fusion without steps
  std::optional<std::tuple<std::string, std::string, std::string>> refusal(const std::string& line) const;
  std::vector<std::string> step_lines() const;
  std::vector<LoopInfo> loops(const std::string& tensor) const;
  std::vector<std::string> tensors() const;
  std::vector<std::string> sizes() const;  // the sizes that the inputs bind
  bool is_reduction(const std::string& tensor) const;
  bool is_read(const std::string& tensor) const;
  std::string fresh_value(const std::string& wanted) const;
  std::string fresh_loop(const std::string& tensor, const std::string& wanted) const;
  Value value_named(const std::string& name) const;

  std::string text() const;            // the fusion and its steps
  std::string scheduled_text() const;  // the fusion as the steps have left it
  // -- programs as they are compiled for such arguments, whose memory is not touched (program_show.cc)
  std::string scheduled_text_for(const py::list& arguments) const;
  std::vector<std::pair<std::string, std::string>> cuda_source(const py::list& arguments) const;  // by kernel

  // -- execution (program_run.cc). An argument is (address, dtype, shape, strides, owner), or a number for a scalar.
  // Returns (storage capsule or none, dtype, shape, strides, number, at::Tensor or none) for each output that overwrites no input. On a
  // GPU the work goes to `stream`, and is waited for. With FUSEBOX_DEBUG a fault of the GPU leaves a bundle, which the error names.
  py::list execute(const py::list& arguments, int ordinal, int threads, uintptr_t stream);
  // The decisions of the automatic plan for such arguments: (segment, scheduler, [(key, number or word)], [(scheduler, why it
  // declined)]) for each segment. Empty if the program has a schedule of its own. `ordinal`: of the GPU, or −1.
  py::list plan_of(const py::list& arguments, int ordinal) const;
  // How often a plan was found on disk, and how often not.
  std::pair<int64_t, int64_t> disk_counts() const { return {disk_hits_, disk_misses_}; }
  PlanMemory::Info plan_info() const { return plans_.info(); }
  // A capsule of a FastCall (fast_call.h) for these arguments on a GPU, or none if the program needs the slower way.
  py::object fast_call(const py::list& arguments, int ordinal);
  // Whether `fast_call` would give none for all arguments: it did once, for a reason that lies in the program.
  bool needs_host_program() const { return needs_host_program_; }
  // Other ops become fast, the plan another one, rules broken.
  void set_fast(bool fast) { forget_plans(), is_fast = fast; }
  void set_unfused(bool alone) { forget_plans(), unfused = alone; }
  void set_defects(const Defects& broken) { forget_plans(), defects = broken; }
  // Times repeated runs (time_program.h). Inputs are not written.
  py::dict profile(const py::list& arguments, int ordinal, int threads, int runs);
  // A program with these steps, for arguments of these shapes.
  std::unique_ptr<PythonProgram> with_steps(std::span<const Step> list, std::span<const Argument> arguments) const;
  // Times schedules like those of the automatic plan (tune_program.h): the program with the fastest one's steps, and for each
  // segment (its name, chosen heuristics, the fastest ones, microseconds of the whole before and after, tries).
  py::tuple tune(const py::list& arguments, int ordinal, int runs);
  // Runs once, as `execute` does. Throws kUnsupportedOp for a program with a segment of ATen.
  std::unique_ptr<Launcher> launcher(const py::list& arguments, int ordinal);
  // Host memory only. (name, ok, largest error, bound, message) for each output.
  py::list validate(const py::list& arguments, const std::string& executor);
  // `notes` are options of the bundle, such as the finding.
  void record(const std::string& path, const py::list& arguments, const std::string& executor,
              const std::map<std::string, std::string>& notes);

  // -- judging (program_judge.cc), on the host executor
  Judgement judge(const py::list& arguments);
  // Why the steps cannot be compiled for these arguments: (code, message, place).
  std::optional<std::tuple<std::string, std::string, std::string>> compile_refusal(const py::list& arguments);

  Graph graph;
  std::optional<Graph> scheduled;
  std::vector<Step> steps;
  Defects defects;       // seeded
  bool unfused = false;  // without steps: one kernel for each op, not the automatic plan
  // Whether ops that have a fast form are fast where no step says otherwise.
  bool is_fast = true;

 private:
  const Graph& current() const { return scheduled ? *scheduled : graph; }
  // The scheduled graph that makes a tensor. If ops are assigned, that of its first segment.
  const Graph& with(const std::string& tensor) const;
  // The graph, or if ops are assigned the graph of each segment.
  std::vector<const Graph*> parts() const;
  Graph& open();  // the graph, for one more op; throws after the first step
  ValueId id(const Operand& o, std::optional<Dtype> wanted = std::nullopt);  // `wanted`: as for `number_of`
  ValueId id(const Value& v) const;
  // A constant of a Python number, in a narrower dtype of its class.
  ValueId default_number(const Operand& number, Dtype dtype);
  Scalar extent(const Operand& o);
  Shape extents(const Operands& list);
  Value wrap(ValueId v) const;
  std::vector<Argument> arguments_of(const py::list& given) const;
  Module module() const;
  // The steps of a run: those of the program, behind the one that makes ops fast, if it is needed.
  std::vector<Step> steps_to_run() const;
  // The tensors among the arguments in the device's memory. A tensor that an output overwrites is a copy.
  std::vector<RunTensor> timed_inputs(std::span<const Argument> arguments, Device& device, int ordinal) const;
  Compiled compiled_for(std::span<const Argument> arguments, int ordinal) const;
  RunOptions run_options(const std::string& executor) const;
  CompileOptions compile_options(std::span<const Argument> arguments, int ordinal) const;
  std::shared_ptr<const KnownPlan> plan(std::span<const Argument> arguments, int ordinal);
  // The next three are called while `running_` is held.
  const std::shared_ptr<Device>& gpu(int ordinal);
  ProgramResult run_on_gpu(const KnownPlan& plan, std::span<const Argument> arguments, int ordinal, uintptr_t stream);
  // Makes the GPU ready for a plan: compiles its kernels, several at once, unless a run of an equal program did.
  void prepare(const KnownPlan& plan, int ordinal);
  // Keeps the binaries of a plan's kernels in memory, and the plan on disk, if it is new. Call it after a run.
  void keep_plan(const KnownPlan& plan, std::span<const Argument> arguments, int ordinal);
  void forget_plans();
  // Everything that plans depend on, beside the arguments.
  std::shared_ptr<const PlanProgram> plan_program(const CompileOptions& options, int ordinal);
  Bindings sizes(const std::vector<std::vector<int64_t>>& shapes) const;
  void take(const Step& step);
  // Takes a list behind the rewrites. If symbolic axes stand in its way, it waits until they are decided.
  void take_schedule(std::span<const Step> list);
  static uint64_t next_serial();
  const uint64_t serial_ = next_serial();  // one for each program of the process
  std::map<uint64_t, size_t> originals_;   // programs that this one was copied from, by serial, and their values then
  size_t waiting_ = 0;                     // steps at the end of `steps` that are not in `scheduled` yet
  bool is_concretized_ = false;
  std::atomic<bool> needs_host_program_ = false;  // forgotten with the plans
  std::vector<Graph> segments_;                   // scheduled; empty if no ops are assigned
  PlanMemory plans_{{.store = PlanStore::of_process(), .log = log_of("recompiles")}};
  std::mutex keying_;                                                // guards the next one
  std::map<int, std::shared_ptr<const PlanProgram>> plan_programs_;  // by ordinal; forgotten with the plans
  std::mutex running_;                           // guards the next two while Python's lock is released
  std::map<int, std::shared_ptr<Device>> gpus_;  // by ordinal; they hold the loaded kernels
  std::set<std::weak_ptr<KnownPlan::State>, std::owner_less<>> prepared_;  // plans whose kernels they hold
  std::atomic<int64_t> disk_hits_ = 0, disk_misses_ = 0;
  std::shared_ptr<bool> is_stale_ = std::make_shared<bool>(false);  // shared with the fast calls of these plans
};

Dtype dtype_named(const std::string& name);
// The dtype and bits of a constant for a Python number. An integer of 2^63 or more has a dtype only if u64 is wanted.
std::pair<Dtype, ConstantBits> number_of(const py::handle& number, std::optional<Dtype> wanted = std::nullopt);
// The text form of a step.
std::string step_line(const std::string& kind, const std::vector<StepWord>& operands,
                      const std::vector<std::string>& results, const py::dict& attrs);
// (name, family, operands, accepted dtypes) of every op of a fusion that makes tensors. Families: pointwise, cast,
// reduction, metadata, indexed, library, other.
std::vector<std::tuple<std::string, std::string, int, std::vector<std::string>>> op_table();
// The storage of an output as bytes, owned by a DLPack capsule.
py::capsule storage_capsule(const RunTensor& t, int ordinal);

}  // namespace fusebox::python
