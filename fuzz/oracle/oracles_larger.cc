// The oracle for plans of sizes that no case has: schedulers choose by sizes, and much of what they do begins at thousands of
// elements. The sizes of a case are multiplied, which needs no data, and the plan for these is judged: its laws, its steps
// alone, its launches for these sizes on a device that only counts, and its results with the case's own inputs, which its
// kernels must serve too.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "fuzz/base/random_source.h"
#include "fuzz/mutate/mutate.h"
#include "fuzz/oracle/oracle.h"
#include "fuzz/oracle/planned.h"
#include "ir/module/architecture.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "passes/schedule/apply_steps.h"
#include "passes/schedule/neighbours.h"
#include "replay/data/tensor_data.h"
#include "replay/run/aten_segment.h"
#include "replay/run/judge.h"

namespace fusebox::fuzz {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 32;  // of a tensor
constexpr int64_t kStepLimit = int64_t{1} << 22;

// Whole multiples keep what divides a size, so that the kernels serve the case's own sizes as often as possible. Odd ones
// leave its vectors as narrow as they are there.
constexpr int64_t kFactors[] = {3, 5, 16, 33, 64, 65, 127, 257, 512, 1001, 1025, 4096, 4097, 12345, 65537, 1000001};

// For a size that grows while the others stay as they are.
constexpr int64_t kLargeFactors[] = {1025, 4096, 4097, 12345, 65537, 1000001};

std::vector<ValueId> size_symbols(const Graph& g) {
  std::vector<ValueId> symbols;
  for (OpId id : g[Graph::body()].ops)
    if (g[id].kind == OpKind::kSize) symbols.insert(symbols.end(), g[id].results.begin(), g[id].results.end());
  return symbols;
}

// Whether a GPU has memory for so many elements.
bool is_small(const std::optional<std::vector<int64_t>>& shape) {
  int64_t elements = 1;
  return shape && std::ranges::all_of(*shape, [&](int64_t n) {
           return !__builtin_mul_overflow(elements, std::max<int64_t>(n, 1), &elements) && elements <= kMostElements;
         });
}

struct Inputs {
  std::vector<BoundInput> given;
  Bindings sizes;
};

// The inputs of the case with other values of its symbols, or nothing if the program refuses them.
std::optional<Inputs> with_sizes(const Case& c, const std::map<ValueId, int64_t>& values, RandomSource& random) {
  const Graph& g = c.fusion();
  Bindings sizes(g.values.size());
  for (const auto& [v, size] : values) sizes[v.index] = ConstantBits{static_cast<uint64_t>(size), 0};
  Inputs result{bound_inputs(c.inputs()), {}};
  const auto names = inputs(g);
  for (size_t i = 0; i < names.size(); ++i) {
    if (result.given[i].is_scalar) {
      sizes[names[i].index] = result.given[i].bits;
      continue;
    }
    const auto shape = evaluate_shape(g, names[i], sizes);
    if (!shape) return std::nullopt;
    result.given[i].shape = *shape;
    result.given[i].strides = draw_strides(random, g, names[i], *shape);
    result.given[i].align = random.one_in(8) ? 4 : 256;
  }
  try {
    result.sizes = bind_sizes(g, result.given);
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw;
    return std::nullopt;
  }
  for (uint32_t v = 0; v < g.values.size(); ++v)
    if (g.is_tensor(ValueId(v)) && g[ValueId(v)].def && !is_small(evaluate_shape(g, ValueId(v), result.sizes)))
      return std::nullopt;
  return result;
}

// Equal sizes mostly get the same factor, as ops may need them equal.
std::optional<Inputs> draw_larger(const Case& c, const Bindings& own, RandomSource& random) {
  constexpr int kTries = 6;
  const std::vector<ValueId> symbols = size_symbols(c.fusion());
  if (symbols.empty()) return std::nullopt;
  for (int i = 0; i < kTries; ++i) {
    std::map<int64_t, int64_t> factors;
    std::map<ValueId, int64_t> values;
    const bool by_size = !random.one_in(4);
    // Schedulers tell rows and columns of unlike sizes apart. So one draw in three lets one size grow, and the others seldom
    // let all of them grow.
    const std::optional<ValueId> grows = random.one_in(3) ? std::optional(random.pick(symbols)) : std::nullopt;
    if (grows) factors[static_cast<int64_t>(own[grows->index]->low)] = random.pick(kLargeFactors);
    for (ValueId v : symbols) {
      const int64_t size = static_cast<int64_t>(own[v.index]->low);
      const int64_t drawn = grows || random.one_in(3) ? 1 : random.pick(kFactors);
      const int64_t factor = by_size || grows ? factors.try_emplace(size, drawn).first->second : drawn;
      values[v] = size <= 1 ? size : size * factor;
    }
    if (std::ranges::all_of(values,
                            [&](const auto& v) { return v.second == static_cast<int64_t>(own[v.first.index]->low); }))
      continue;
    if (auto result = with_sizes(c, values, random)) return result;
  }
  return std::nullopt;
}

// A case whose vectors can be wide: one of its sizes is a multiple of 8.
std::optional<Case> with_even_size(const Case& c, RandomSource& random) {
  const std::vector<ValueId> symbols = size_symbols(c.fusion());
  if (symbols.empty()) return std::nullopt;
  const std::string& name = c.fusion()[random.pick(symbols)].name;
  return apply_mutation(c, {"extent", {name, std::to_string(8 * random.between(1, 8))}});
}

// Launches for large sizes, without memory: checks what a GPU would refuse or hang in.
class CountingDevice : public Device {
 public:
  // `most_elements`: of a tensor of the program; 0 where a thread may do much more than others.
  CountingDevice(const DeviceProperties& properties, int64_t most_elements)
      : properties_(properties), most_elements_(most_elements) {}

  std::string_view name() const override { return "counting"; }
  RunTensor allocate(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, bool) override {
    RunTensor t;
    t.layout.dtype = dtype;
    t.layout.shape = std::move(shape);
    t.layout.strides = std::move(strides);
    return placed(std::move(t));
  }
  RunTensor upload(const TensorData& from) override {
    RunTensor t;
    t.layout = from;
    return placed(std::move(t));
  }
  TensorData download(const RunTensor& t, const std::string&) override { return t.layout; }
  void copy(const RunTensor&, const RunTensor&) override {}
  int64_t alignment(const RunTensor& t) override { return alignment_of(t.pointer); }
  size_t prepare(const Graph& kernel, const KernelUse&) override {
    kernels_.push_back(&kernel);
    return kernels_.size() - 1;
  }
  void launch(size_t kernel, const LaunchDims& dims, std::span<const RunArgument> arguments) override {
    check_limits(*kernels_[kernel], dims);
    check_work(*kernels_[kernel], arguments);
  }
  void synchronize() override {}

 private:
  // Somewhere, apart from all others.
  RunTensor placed(RunTensor t) {
    t.pointer = next_;
    next_ += CudaPointer{1} << 44;
    return t;
  }

  void check_limits(const Graph& kernel, const LaunchDims& dims) const {
    const int64_t blocks = dims.grid[0] * dims.grid[1] * dims.grid[2];
    const int64_t threads = dims.block[0] * dims.block[1] * dims.block[2];
    constexpr int64_t kMostX = std::numeric_limits<int32_t>::max(), kMostYZ = 65535, kMostBlockZ = 64;
    const auto require = [&](bool holds, const std::string& what) {
      if (!holds) throw Error(ErrorCode::kLaunchLimit, what, "@" + kernel.name);
    };
    require(dims.grid[0] <= kMostX && dims.grid[1] <= kMostYZ && dims.grid[2] <= kMostYZ, "a grid is too large");
    require(threads <= properties_.block_threads && dims.block[2] <= kMostBlockZ, "a block has too many threads");
    require(dims.shared_bytes <= properties_.shared_block_bytes, "a block asks for more shared memory than there is");
    int64_t resident = 1;
    bool waits = false;
    for (const Op& op : kernel.ops) {
      if (op.kind == OpKind::kLaunchBound) {
        resident = std::max<int64_t>(op.attrs.integer(AttrKey::kLeastBlocks, 1), 1);
        require(threads <= op.attrs.integer(AttrKey::kMostThreads, threads), "a block is over its kernel's bound");
      }
      waits |= op.kind == OpKind::kGridBarrier || (op.kind == OpKind::kGridReduce && op.attrs.flag(AttrKey::kAll));
      require(!op.attrs.has(AttrKey::kClusterBlocks) || has_clusters(properties_.architecture),
              "the GPU has no clusters");
    }
    require(!waits || blocks <= properties_.multiprocessors * resident,
            std::to_string(blocks) + " blocks wait for one another, but " + std::to_string(resident) +
                " on each multiprocessor are all that the GPU is sure to hold");
  }

  // Scheduling has left a tensor behind if one thread computes most of it. No thread needs to access many more elements than
  // the program's largest tensor has for each thread that the device holds. Two do: a scatter reads all its indices for each
  // element, and what is spread over devices stays unfused.
  void check_work(const Graph& kernel, std::span<const RunArgument> arguments) const {
    constexpr int64_t kMostAccesses = 4096, kImbalance = 64, kThreadsEach = 2048;
    if (most_elements_ == 0) return;
    Bindings sizes(kernel.values.size());
    const auto parameters = inputs(kernel);
    for (size_t i = 0; i < parameters.size() && i < arguments.size(); ++i)
      if (arguments[i].is_scalar) sizes[parameters[i].index] = arguments[i].bits;
    const int64_t each = most_elements_ / (properties_.multiprocessors * kThreadsEach);
    check_region(kernel, kernel[Graph::body()], sizes, 1, std::max(kMostAccesses, kImbalance * each));
  }

  // `times`: the iterations of the loops around the region.
  static void check_region(const Graph& kernel, const Region& region, const Bindings& sizes, int64_t times,
                           int64_t limit) {
    for (OpId id : region.ops) {
      const Op& op = kernel[id];
      int64_t inner = times;
      if (op.kind == OpKind::kFor) {
        const auto bound = [&](size_t i) { return evaluate_integer(kernel, op.operands[i], sizes); };
        const auto start = bound(0), stop = bound(1), step = bound(2);
        const bool is_known = start && stop && step && *step > 0;
        const int64_t count = is_known ? std::max<int64_t>(*stop - *start + *step - 1, 0) / *step : 1;
        if (__builtin_mul_overflow(times, count, &inner)) inner = std::numeric_limits<int64_t>::max();
      }
      const bool accesses = op.kind == OpKind::kLoad || op.kind == OpKind::kStore;
      if (accesses && times > limit && kernel[kernel[op.operands[0]].def].kind == OpKind::kInput)
        throw Error(ErrorCode::kLaunchLimit,
                    "one thread may access " + std::to_string(times) + " elements of %" + kernel[op.operands[0]].name,
                    "@" + kernel.name);
      for (RegionId r : op.regions) check_region(kernel, kernel[r], sizes, inner, limit);
    }
  }

  const DeviceProperties& properties_;
  const int64_t most_elements_;
  std::vector<const Graph*> kernels_;
  CudaPointer next_ = CudaPointer{1} << 44;
};

int64_t most_elements(const Graph& g, const Bindings& sizes) {
  int64_t most = 1;
  for (uint32_t v = 0; v < g.values.size(); ++v) {
    if (!g.is_tensor(ValueId(v)) || !g[ValueId(v)].def) continue;
    const auto shape = evaluate_shape(g, ValueId(v), sizes);
    if (shape) most = std::max(most, element_count(*shape));
  }
  return most;
}

void check_launches(OracleRun& run, const Compiled& c, const Inputs& larger, const DeviceProperties& properties) {
  const auto is_aten = [](const Segment& s) { return s.executor == SegmentExecutor::kAten; };
  if (std::ranges::any_of(c.segmentation.segments, is_aten)) return;
  std::vector<Argument> arguments;
  const auto names = inputs(run.fusion());
  for (size_t i = 0; i < names.size(); ++i) {
    const Dtype dtype = run.fusion()[names[i]].dtype;
    const BoundInput& b = larger.given[i];
    if (b.is_scalar) {
      arguments.push_back(Argument::scalar(dtype, b.bits));
      continue;
    }
    TensorData t;
    t.dtype = dtype;
    t.shape = b.shape;
    t.strides = b.strides.empty() ? contiguous_strides(b.shape) : b.strides;
    arguments.push_back(Argument::of(std::move(t)));
  }
  const Graph& g = run.fusion();
  const bool counts_work = std::ranges::count(g.ops, OpKind::kScatter, &Op::kind) == 0 &&
                           std::ranges::all_of(g.tensors, [](const Tensor& t) { return t.devices.empty(); });
  CountingDevice device(properties, counts_work ? most_elements(g, larger.sizes) : 0);
  const std::vector<NamedKernel> kernels = named_kernels(c);
  run_host_program(c.host, kernels, device, arguments, {}, false);
}

// The steps as a file has them, read again: they alone make the same program.
void check_steps(OracleRun& run, const Compiled& c, const Inputs& larger, CompileOptions options) {
  Module m{{run.fusion()}, {{"", run.fusion().name, c.automatic->steps}}, {}, {}};
  options.steps = parse_module(print(m)).step_lists.at(0).steps;
  options.device.reset();
  options.heuristics.clear();
  if (*options.steps != c.automatic->steps)
    run.report("larger", "text", "", "the steps of the plan read back as others");
  if (!are_same_programs(compile(run.fusion(), larger.sizes, options), c))
    run.report("larger", "repeated", "", "the steps of the plan alone give another program");
}

// Another choice for one segment, near its own or one that its scheduler would have measured.
void take_neighbour(const Compiled& c, CompileOptions& options, RandomSource& random) {
  if (c.automatic->decisions.empty()) return;
  const Decision& d = random.pick(c.automatic->decisions);
  auto next = neighbours(d.heuristics);
  next.insert(next.end(), d.others.begin(), d.others.end());
  if (!next.empty()) options.heuristics[d.segment] = {d.heuristics, random.pick(next)};
}

// Whether no plan takes these sizes: the unfused plan is refused with the same code, or its launches are. Sizes are drawn one by
// one, and some ops need two of them equal. An axis may turn out to be expanded, and then an output over it cannot overwrite an
// input. An index that the program computes may leave 64 bits.
bool is_refused_unfused(OracleRun& run, const Inputs& larger, const CompileOptions& options, ErrorCode code) {
  CompileOptions unfused = options;
  unfused.device.reset();
  try {
    check_launches(run, compile(run.fusion(), larger.sizes, unfused), larger, *options.device);
  } catch (const Error& e) {
    return e.code == code;
  }
  return false;
}

// Whether the case's own sizes are refused as well: in a case whose sizes were made even, or once the plan's rewrites have found
// that a size is 1 there.
bool is_refused_at_own_sizes(OracleRun& run, const std::vector<Step>& steps, ErrorCode code) {
  const auto has_code = [&](const HostRun& r) { return !r.ok() && r.failure->code == code; };
  if (has_code(run.unfused())) return true;
  Graph rewritten = run.fusion();
  apply_steps(rewritten, std::span(steps).first(leading_rewrites(steps)), run.options().defects);
  return has_code(run.run_unfused(rewritten));
}

bool is_far(const BoundInput& b) {
  constexpr int64_t kFar = int64_t{1} << 22;  // elements: a block of the plan has threads behind the last one
  return std::ranges::any_of(b.strides, [](int64_t stride) { return stride >= kFar; }) ||
         (!b.strides.empty() && span_elems(b.shape, b.strides) >= kFar);
}

void judge(OracleRun& run, RandomSource& random) {
  const auto larger = draw_larger(run.subject(), run.sizes(), random);
  if (!larger) return;
  const DeviceProperties& device = device_presets()[random.below(device_presets().size())];
  CompileOptions options{
      .device = device, .inputs = larger->given, .defects = run.options().defects, .infer = infer_by_aten()};
  options.others = random.one_in(4);
  // A few elements of the case may lie so far apart that 32 bits do not hold their places.
  if (std::ranges::any_of(bound_inputs(run.subject().inputs()), is_far)) options.index_bits = 64;
  const bool takes_neighbour = random.one_in(3);
  constexpr const char *kPlan = "the plan", *kOwn = "the plan for larger sizes, with the case's own";
  std::string what = kPlan;
  std::vector<Step> steps;
  try {
    Compiled c = compile(run.fusion(), larger->sizes, options);
    what = "the decisions of the plan";
    check_decisions(run, "larger", c, larger->sizes, device);
    what = "a launch for sizes that the plan was made for";
    check_launches(run, c, *larger, device);
    if (takes_neighbour) {
      what = "a neighbour of the plan";
      take_neighbour(c, options, random);
      if (!options.heuristics.empty()) c = compile(run.fusion(), larger->sizes, options);
    }
    what = "the steps of the plan alone";
    check_steps(run, c, *larger, options);
    what = kOwn;
    // A program whose symbolic axes are others, or whose indices are too narrow here, serves other sizes only.
    CompileOptions again = options;
    again.steps = steps = c.automatic->steps;
    again.inputs = bound_inputs(run.arguments());
    if (c.index_bits == 64) again.index_bits = 64;
    Compiled by_steps = c;
    by_steps.automatic.reset();
    if (!serves(by_steps, run.fusion(), run.sizes(), again)) return;
    judge_planned(run, "larger", c, {.step_limit = kStepLimit, .may_refuse = true});
  } catch (const Error& e) {
    const bool is_by_sizes = is_size_refusal(e.code);
    if ((is_by_sizes && what == kPlan) || e.code == ErrorCode::kScalarOverflow) {
      options.heuristics.clear();
      if (is_refused_unfused(run, *larger, options, e.code)) return;
    }
    if (is_by_sizes && what == kOwn && is_refused_at_own_sizes(run, steps, e.code)) return;
    std::string sizes;
    for (const BoundInput& b : larger->given)
      for (size_t i = 0; i < b.shape.size(); ++i) sizes += (i > 0 ? "x" : " ") + std::to_string(b.shape[i]);
    run.report("larger", e, what + ", for " + device.name + " and inputs" + sizes);
  }
}

}  // namespace

void larger(OracleRun& run) {
  RandomSource random = run.random(11);
  if (random.one_in(2)) return judge(run, random);
  const auto even = with_even_size(run.subject(), random);
  if (!even) return judge(run, random);
  OracleRun other(*even, run.options());
  judge(other, random);
  for (Finding& f : other.findings) run.findings.push_back(std::move(f));
}

}  // namespace fusebox::fuzz
