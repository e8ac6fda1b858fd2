// Running a PythonProgram on the caller's memory, checking it, and recording it.
#include <algorithm>
#include <pybind11/complex.h>

#include "ir/infer/bind.h"
#include "ir/infer/scalar_operand.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/verify/verify.h"
#include "passes/schedule/apply_steps.h"
#include "replay/cache/compiled_record.h"
#include "replay/cache/user_cache.h"
#include "replay/data/file.h"
#include "replay/device/captures.h"
#include "replay/device/cuda_loader.h"
#include "replay/python/fault_keeper.h"
#include "replay/python/program.h"
#include "replay/record/record.h"
#include "replay/run/aten_segment.h"
#include "replay/run/host_program.h"
#include "replay/run/prepare_together.h"
#include "serde/encode.h"

namespace fusebox::python {
namespace {

constexpr size_t kMaxNote = 4096;

// Keeps the Python object that owns some memory.
std::shared_ptr<void> keep(py::object owner) {
  return {new py::object(std::move(owner)), [](void* p) {
            py::gil_scoped_acquire gil;
            delete static_cast<py::object*>(p);
          }};
}

py::object number_to_python(Dtype dtype, ConstantBits bits) {
  if (is_boolean(dtype)) return py::bool_(to_bool(dtype, bits));
  if (is_complex(dtype)) return py::cast(to_complex(dtype, bits));
  if (is_floating(dtype)) return py::float_(to_double(dtype, bits));
  if (is_signed(dtype)) return py::int_(to_int64(dtype, bits));
  return py::int_(bits.low);
}

void require_written(const std::string& name, const RunTensor& t) {
  if (const auto missing = t.defined->first_missing(t.layout))
    throw Error(ErrorCode::kUnwrittenOutput,
                "element " + std::to_string(*missing) + " of the storage of an output was never written", "%" + name);
}

// Runs on the arguments' own memory.
ProgramResult run_in_place(const Compiled& compiled, Device& device, std::span<const Argument> arguments, int ordinal) {
  std::vector<RunTensor> in_place;
  for (const Argument& a : arguments) {
    if (a.is_scalar) continue;
    RunTensor t;
    t.layout = a.tensor;
    if (ordinal >= 0) {
      t.pointer = reinterpret_cast<CudaPointer>(a.tensor.storage.get());
      t.owner = a.tensor.storage;
      t.layout.storage.reset();
    } else {
      t.defined = std::make_shared<DefinedElements>(DefinedElements::of_elements(t.layout));
    }
    in_place.push_back(std::move(t));
  }
  const std::vector<NamedKernel> kernels = named_kernels(compiled);
  HostProgramOptions options;
  options.run_aten = run_aten_segments(compiled);
  options.in_place_inputs = in_place;
  return run_host_program(compiled.host, kernels, device, arguments, options, false);
}

// PyTorch takes the memory of a DLPack capsule as foreign. What an ATen segment made is its own: this keeps the at::Tensor.
py::object tensor_capsule(const RunTensor& t) {
  if (!t.is_by_aten) return py::none();
  return py::capsule(new std::shared_ptr<void>(t.owner),
                     [](void* p) { delete static_cast<std::shared_ptr<void>*>(p); });
}

py::list outputs_to_python(const ProgramResult& result, int ordinal) {
  py::list outs;
  for (const ProgramOutput& out : result.outputs) {
    if (out.overwrites_input) continue;
    if (out.value.is_scalar) {
      outs.append(py::make_tuple(py::none(), fusebox::text(out.value.dtype), py::list(), py::list(),
                                 number_to_python(out.value.dtype, out.value.bits), py::none()));
      continue;
    }
    const TensorData& t = out.on_device.layout;
    outs.append(py::make_tuple(storage_capsule(out.on_device, ordinal), fusebox::text(t.dtype), t.shape, t.strides,
                               py::none(), tensor_capsule(out.on_device)));
  }
  return outs;
}

// The GPU of this number, or the default one.
DeviceProperties planned_device(int ordinal) {
  if (ordinal < 0) return default_device();
  static const std::vector<CudaDevice> devices = cuda_backend().devices();
  return static_cast<size_t>(ordinal) < devices.size() ? devices[static_cast<size_t>(ordinal)].properties
                                                       : default_device();
}

Executor executor_named(const std::string& word) {
  if (const auto e = parse_executor(word)) return *e;
  throw Error(ErrorCode::kUsage, "an executor is cuda, host or aten", word);
}

}  // namespace

std::vector<Argument> PythonProgram::arguments_of(const py::list& given) const {
  const auto wanted = inputs(graph);
  if (given.size() != wanted.size())
    throw Error(given.size() < wanted.size() ? ErrorCode::kMissingInput : ErrorCode::kBadInput,
                "the fusion has " + std::to_string(wanted.size()) + " inputs, and " + std::to_string(given.size()) +
                    " are given",
                given.size() < wanted.size() ? "%" + graph[wanted[given.size()]].name : "@" + graph.name);
  std::vector<Argument> arguments;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const fusebox::Value& v = graph[wanted[i]];
    const py::handle a = given[i];
    const bool is_tensor = py::isinstance<py::tuple>(a);
    if (is_tensor != graph.is_tensor(wanted[i]))
      throw Error(ErrorCode::kBadInput,
                  std::string("this input is a ") +
                      (is_tensor ? "scalar; give a Python number" : "tensor; give a torch tensor"),
                  "%" + v.name);
    if (!is_tensor) {
      const auto [dtype, bits] = number_of(a, v.dtype);
      const bool wider = (is_complex(dtype) && !is_complex(v.dtype)) ||
                         (is_floating(dtype) && !is_floating(v.dtype) && !is_complex(v.dtype));
      if (wider || (is_integer(v.dtype) && !holds(v.dtype, dtype, bits)))
        throw Error(ErrorCode::kBadInput,
                    "this input is a scalar of dtype " + std::string(fusebox::text(v.dtype)) +
                        ", and the number does not fit it",
                    "%" + v.name);
      arguments.push_back(Argument::scalar(v.dtype, convert(dtype, bits, v.dtype)));
      continue;
    }
    const auto [address, name, shape, strides, owner] =
        a.cast<std::tuple<uintptr_t, std::string, std::vector<int64_t>, std::vector<int64_t>, py::object>>();
    const Dtype dtype = dtype_named(name);
    if (dtype != v.dtype && !(dtype == Dtype::kInt64 && v.dtype == Dtype::kIndex))
      throw Error(
          ErrorCode::kBadInput,
          "this input wants " + std::string(fusebox::text(v.dtype)) + ", and the tensor is " + name + "; cast it",
          "%" + v.name);
    arguments.push_back(
        Argument::of(external_tensor(v.dtype, reinterpret_cast<void*>(address), shape, strides, keep(owner))));
  }
  return arguments;
}

std::vector<Step> PythonProgram::steps_to_run() const {
  if (!is_fast) return steps;
  const Step fast = precision_step(true);
  if (with_precision(graph, std::span(&fast, 1)) == graph) return steps;
  std::vector<Step> all{fast};
  all.insert(all.end(), steps.begin(), steps.end());
  return all;
}

CompileOptions PythonProgram::compile_options(std::span<const Argument> arguments, int ordinal) const {
  CompileOptions options;
  if (std::vector<Step> all = steps_to_run(); !all.empty()) options.steps = std::move(all);
  options.inputs = bound_inputs(arguments);
  options.defects = defects;
  if (!unfused) options.device = planned_device(ordinal);
  options.infer = infer_by_aten();
  return options;
}

Compiled PythonProgram::compiled_for(std::span<const Argument> arguments, int ordinal) const {
  verify(graph);
  return compile(graph, bind_sizes(graph, bound_inputs(arguments)), compile_options(arguments, ordinal));
}

py::list PythonProgram::plan_of(const py::list& given, int ordinal) const {
  const std::vector<Argument> arguments = arguments_of(given);
  const Compiled compiled = compiled_for(arguments, ordinal);
  py::list result;
  if (!compiled.automatic) return result;
  for (const Decision& d : compiled.automatic->decisions) {
    py::list choices, declined;
    for (const Heuristic& h : d.heuristics.choices)
      choices.append(py::make_tuple(h.key, h.word.empty() ? py::object(py::int_(h.number)) : py::str(h.word)));
    for (const Declined& other : d.declined) declined.append(py::make_tuple(other.scheduler, other.why));
    result.append(py::make_tuple(d.segment, d.heuristics.scheduler, choices, declined));
  }
  return result;
}

namespace {

std::shared_ptr<FusionCache> disk_cache(int ordinal) {
  return user_cache(ordinal >= 0 ? CacheUse::kGpu : CacheUse::kHost);
}
std::string target(int ordinal) { return cache_target(ordinal >= 0 ? Executor::kCuda : Executor::kHost, ordinal); }

}  // namespace

std::shared_ptr<const KnownPlan> PythonProgram::plan(std::span<const Argument> arguments, int ordinal) {
  CompileOptions options = compile_options(arguments, ordinal);
  const Bindings sizes = bind_sizes(graph, options.inputs);
  const PlanRequest request{.fusion = graph,
                            .sizes = sizes,
                            .options = options,
                            .target = ordinal < 0 ? "the host" : "GPU " + std::to_string(ordinal),
                            .program = plan_program(options, ordinal)};
  return plans_.find_or_make(request, [&] {
    verify(graph);
    const auto cache = disk_cache(ordinal);
    // A record has the digests of plans, for whoever shows it.
    if (cache) options.digest_plans = true;
    PlannedFusion made =
        plan_fusion(cache.get(), {.fusion = graph, .bindings = sizes, .options = options, .target = target(ordinal)});
    if (cache) ++(made.is_from_cache ? disk_hits_ : disk_misses_);
    KnownPlan plan{.compiled = std::move(made.compiled), .launch = std::move(made.launch)};
    if (!made.images.empty()) plan.state->images = std::make_shared<const KnownPlan::Images>(std::move(made.images));
    plan.state->is_kept = made.is_from_cache || !cache;
    return plan;
  });
}

const std::shared_ptr<Device>& PythonProgram::gpu(int ordinal) {
  auto& device = gpus_[ordinal];
  if (!device)
    device = make_cuda_device({.ordinal = ordinal, .texts = {}, .images = disk_cache(ordinal), .keeps_images = true});
  return device;
}

std::shared_ptr<const PlanProgram> PythonProgram::plan_program(const CompileOptions& options, int ordinal) {
  const std::lock_guard lock(keying_);
  auto& program = plan_programs_[ordinal];
  // The target is a part of the request.
  if (!program)
    program = plans_.store().program(
        key_bytes(program_key({.fusion = graph, .bindings = {}, .options = options, .target = ""})));
  return program;
}

void PythonProgram::prepare(const KnownPlan& plan, int ordinal) {
  if (!prepared_.insert(plan.state).second) return;
  if (const auto images = plan.state->images.load()) gpu(ordinal)->offer(*images);
  prepare_together(*gpu(ordinal), plan.compiled->kernels);
}

void PythonProgram::keep_plan(const KnownPlan& plan, std::span<const Argument> arguments, int ordinal) {
  if (ordinal >= 0 && !plan.state->images.load())
    plans_.store().keep_images(plan, images_of(*plan.compiled, gpu(ordinal)->images()));
  if (plan.state->is_kept.exchange(true)) return;
  const CompileOptions options = compile_options(arguments, ordinal);
  const Bindings sizes = bind_sizes(graph, options.inputs);
  const auto images = ordinal >= 0 ? gpu(ordinal)->images() : std::vector<KernelImage>();
  if (const auto cache = disk_cache(ordinal))
    cache->keep({.fusion = graph, .bindings = sizes, .options = options, .target = target(ordinal)}, *plan.compiled,
                images);
}

void PythonProgram::forget_plans() {
  {
    const std::lock_guard lock(keying_);
    if (plan_programs_.empty()) return;  // nothing was planned
    plan_programs_.clear();
  }
  // A run that holds the lock may need Python's.
  const py::gil_scoped_release no_gil;
  const std::lock_guard lock(running_);
  gpus_.clear();
  prepared_.clear();
  needs_host_program_ = false;
  *is_stale_ = true;
  is_stale_ = std::make_shared<bool>(false);
}

ProgramResult PythonProgram::run_on_gpu(const KnownPlan& plan, std::span<const Argument> arguments, int ordinal,
                                        uintptr_t stream) {
  const std::shared_ptr<Device> device = gpu(ordinal);
  refuse_captured(*device->session(), reinterpret_cast<CudaStream>(stream), "@" + graph.name);
  prepare(plan, ordinal);
  device->set_stream(reinterpret_cast<CudaStream>(stream));
  const FaultKeeper keeper(arguments, device.get());
  try {
    return run_in_place(*plan.compiled, *device, arguments, ordinal);
  } catch (const Error& e) {
    if (!keeper.keeps(e)) throw;
    Run run;
    run.executor = Executor::kCuda;
    run.fusion = graph;
    run.steps = plan.compiled->automatic ? plan.compiled->automatic->steps : steps_to_run();
    run.unfused = run.steps.empty();
    run.defects = defects;
    run.compiled = *plan.compiled;
    throw keeper.kept(e, std::move(run), module());
  }
}

py::list PythonProgram::execute(const py::list& given, int ordinal, int threads, uintptr_t stream) {
  const std::vector<Argument> arguments = arguments_of(given);
  ProgramResult result;
  {
    py::gil_scoped_release no_gil;
    const auto known = plan(arguments, ordinal);
    if (ordinal < 0) {
      // A host device keeps its compiled kernels, so each run makes its own, and runs of several threads do not meet.
      const auto host = make_host_device({.threads = threads});
      result = run_in_place(*known->compiled, *host, arguments, ordinal);
    } else {
      const std::lock_guard lock(running_);
      result = run_on_gpu(*known, arguments, ordinal, stream);
    }
    if (!known->state->is_kept || (ordinal >= 0 && !known->state->images.load())) {
      const std::lock_guard lock(running_);
      keep_plan(*known, arguments, ordinal);
    }
    if (ordinal < 0)
      for (const ProgramOutput& out : result.outputs)
        if (!out.value.is_scalar) require_written(out.name, out.on_device);
  }
  return outputs_to_python(result, ordinal);
}

std::unique_ptr<Launcher> PythonProgram::launcher(const py::list& given, int ordinal) {
  std::vector<Argument> arguments = arguments_of(given);
  py::gil_scoped_release no_gil;
  Compiled compiled = compiled_for(arguments, ordinal);
  for (const Segment& s : compiled.segmentation.segments)
    if (s.executor != SegmentExecutor::kKernel && s.executor != SegmentExecutor::kView)
      throw Error(ErrorCode::kUnsupportedOp, "only kernels can be launched again; assign no ops to ATen", s.name);
  return std::make_unique<Launcher>(std::move(compiled), std::move(arguments), ordinal);
}

Launcher::Launcher(Compiled compiled, std::vector<Argument> arguments, int ordinal)
    : ordinal_(ordinal),
      compiled_(std::move(compiled)),
      arguments_(std::move(arguments)),
      inner_(ordinal >= 0 ? make_cuda_device({.ordinal = ordinal, .texts = {}}) : make_host_device()),
      device_(std::make_unique<RepeatingDevice>(*inner_)),
      result_(run_in_place(compiled_, *device_, arguments_, ordinal_)) {}

py::list Launcher::outputs() const { return outputs_to_python(result_, ordinal_); }

RunOptions PythonProgram::run_options(const std::string& executor) const {
  RunOptions options;
  options.executor = executor_named(executor);
  options.defects = defects;
  if (!unfused) options.device = planned_device(options.executor == Executor::kCuda ? 0 : -1);
  if (std::vector<Step> all = steps_to_run(); !all.empty()) options.steps = std::move(all);
  return options;
}

py::list PythonProgram::validate(const py::list& given, const std::string& executor) {
  const std::vector<Argument> arguments = arguments_of(given);
  const RunOptions options = run_options(executor);
  std::vector<CheckedOutput> checked;
  {
    py::gil_scoped_release no_gil;
    const Run run = run_program(module(), arguments, options);
    if (run.failure) throw Error(run.failure->code, run.failure->message, run.failure->place);
    checked = check_outputs(run, arguments);
  }
  py::list result;
  for (const CheckedOutput& c : checked)
    result.append(py::make_tuple(c.name, c.comparison.ok, c.comparison.max_error, c.comparison.bound,
                                 c.comparison.ok ? "" : c.comparison.message(c.name)));
  return result;
}

void PythonProgram::record(const std::string& path, const py::list& given, const std::string& executor,
                           const std::map<std::string, std::string>& notes) {
  const std::vector<Argument> arguments = arguments_of(given);
  const RunOptions options = run_options(executor);
  py::gil_scoped_release no_gil;
  const Module m = module();
  const Run run = run_program(m, arguments, options);
  Bundle bundle = make_bundle(run, m, exact_inputs(run.fusion, arguments), arguments);
  for (const auto& [key, value] : notes) bundle.options.push_back({key, value.substr(0, kMaxNote)});
  write_file(path, encode(bundle));
  // A run that failed is recorded too.
  if (run.failure) throw Error(run.failure->code, run.failure->message, run.failure->place);
}

}  // namespace fusebox::python
