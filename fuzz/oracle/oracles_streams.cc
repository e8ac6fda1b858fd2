// The oracle of calls at the same time. The launch record of the case's program makes the resolved call of its host program. Two
// calls of it with other data, one step of each in turn, and two threads give the bits of each call alone.
#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "fuzz/oracle/oracle.h"
#include "ir/scalar/numeric.h"
#include "passes/host/launch_code.h"
#include "replay/run/aten_segment.h"
#include "replay/run/judge.h"
#include "replay/run/launch_machine.h"
#include "replay/run/turns.h"

namespace fusebox::fuzz {
namespace {

// The same layouts, with the elements of each tensor in the reverse order of its storage. So an index names the places that it
// named before.
std::vector<Argument> reversed(std::span<const Argument> arguments) {
  std::vector<Argument> result;
  for (const Argument& a : arguments) {
    result.push_back(a);
    if (a.is_scalar || element_count(a.tensor.shape) == 0) continue;
    result.back().tensor = deep_copy(a.tensor);
    const auto positions = positions_of(a.tensor);
    for (size_t i = 0; i < positions.size(); ++i)
      store_element(result.back().tensor, positions[i], load_element(a.tensor, positions[positions.size() - 1 - i]));
  }
  return result;
}

ConstantBits other_number(Dtype dtype, ConstantBits bits) {
  if (is_complex(dtype)) return {bits.high, bits.low};
  const ConstantBits one = is_floating(dtype) ? from_double(dtype, 0.75) : from_int64(dtype, 1);
  return one == bits ? (is_floating(dtype) ? from_double(dtype, 0.5) : from_int64(dtype, 0)) : one;
}

// What is wrong with the memory that a host program takes: a tensor that it makes is an output, is copied over one, or is given
// back after its last use. Nothing if all is well.
std::optional<std::string> misplaced(const Graph& host) {
  std::map<TensorId, std::string> kept;  // what is not yet given back: its name
  std::set<TensorId> given_back;
  for (OpId id : host[Graph::body()].ops) {
    const Op& op = host[id];
    for (ValueId v : op.operands)
      if (v && host.is_tensor(v) && given_back.contains(host[v].tensor))
        return "%" + host[v].name + " is used after it is given back";
    if (op.kind == OpKind::kAllocateTensor || op.kind == OpKind::kRunAten)
      for (ValueId v : op.results) kept[host[v].tensor] = host[v].name;
    const size_t end = op.kind == OpKind::kCopyTensor ? 1 : 0;  // the operand whose life may end here
    const bool ends = end == 1 || op.kind == OpKind::kDeallocate || op.kind == OpKind::kOutput;
    if (!ends || !host.is_tensor(op.operands[end])) continue;
    kept.erase(host[op.operands[end]].tensor);
    if (op.kind == OpKind::kDeallocate) given_back.insert(host[op.operands[end]].tensor);
  }
  if (kept.empty()) return std::nullopt;
  return "%" + kept.begin()->second + " is never given back";
}

class StreamsJudge {
 public:
  StreamsJudge(OracleRun& run, const Compiled& compiled) : run_(run), compiled_(compiled) {
    for (size_t i = 0; i < compiled.kernels.size(); ++i) {
      names_.push_back(compiled.segmentation.segments[i].name);
      kernels_.push_back({names_.back(), &compiled.kernels[i]});
    }
  }

  void judge() {
    if (const auto why = misplaced(compiled_.host)) report("memory", *why);
    const HostRun& alone = run_.scheduled();
    if (!alone.ok()) return;
    const auto record = launch_code(compiled_.host, names_);
    if (!record) {
      // ATen gives the memory of what its segments make, which no record can say.
      const bool is_by_aten = std::ranges::any_of(
          compiled_.host.ops, [](const Op& op) { return op.kind == OpKind::kRunAten && !op.results.empty(); });
      if (!is_by_aten) report("record", "the host program has no launch record");
      return;
    }
    if (const auto why = objection(*record)) return report("record", "the launch record breaks an invariant: " + *why);
    const std::vector<Argument> first(run_.arguments().begin(), run_.arguments().end());
    std::vector<uint64_t> addresses;
    for (const Argument& a : first)
      if (!a.is_scalar) addresses.push_back(static_cast<uint64_t>(kArenaAlign));
    const Defects& defects = run_.options().defects;
    ResolvedCall wanted, call;
    try {
      wanted = resolve_call(compiled_.host, kernels_, first, addresses);
      call = evaluate_launch(*record, first, addresses, {.defects = defects});
    } catch (const Error& e) {
      return run_.report("streams", e, "a call that the host program makes");
    }
    // A call that is refused is described as far as it came.
    const bool is_same = call.refused.empty() ? call == wanted : !wanted.refused.empty();
    if (!is_same && !defects.has(Defect::kArenaReleasedEarly))
      return report("record", "the launch record makes another call than the host program");
    std::vector<Argument> second = reversed(first);
    for (size_t i = 0; i < second.size(); ++i)
      if (second[i].is_scalar && i < call.is_open_scalar.size() && call.is_open_scalar[i])
        second[i].bits = other_number(second[i].dtype, first[i].bits);
    HostRun other = run_alone(second);
    if (!other.ok()) second = first, other = alone;
    if (call.refused.empty()) judge_turns(call, first, second, {&alone, &other});
    judge_threads(first, second, {&alone, &other});
  }

 private:
  using Alone = std::array<const HostRun*, 2>;

  void report(std::string_view check, std::string message) { run_.report("streams", check, "", std::move(message)); }

  std::unique_ptr<Device> device() const { return make_host_device(host_options(run_.options())); }
  HostRun run_alone(std::span<const Argument> arguments) const {
    HostRun run;
    try {
      const auto own = device();
      HostProgramOptions options;
      options.run_aten = run_aten_segments(compiled_);
      for (ProgramOutput& out : run_host_program(compiled_.host, kernels_, *own, arguments, options).outputs)
        run.outputs.push_back(std::move(out.value));
    } catch (const Error& e) {
      run.failure = e;
    }
    return run;
  }

  void judge_turns(const ResolvedCall& call, std::span<const Argument> first, std::span<const Argument> second,
                   const Alone& alone) {
    const auto own = device();
    std::array<std::vector<RunTensor>, 2> inputs;
    std::array<Turn, 2> turns = {Turn{first, {}}, Turn{second, {}}};
    for (size_t t = 0; t < 2; ++t) {
      for (const Argument& a : turns[t].arguments)
        if (!a.is_scalar) inputs[t].push_back(own->upload(a.tensor));
      turns[t].inputs = inputs[t];
    }
    try {
      const auto tensors = run_in_turns(call, kernels_, *own, turns, {.defects = run_.options().defects});
      for (size_t t = 0; t < 2; ++t)
        for (size_t i = 0; i < call.outputs.size(); ++i) {
          const ResolvedOutput& out = call.outputs[i];
          if (out.is_scalar) continue;
          const TensorData made = own->download(tensors[t][out.slot], "%" + out.name);
          if (first_difference(made, as_tensor(alone[t]->outputs[i])))
            return report("turns", "%" + out.name + " of call " + std::to_string(t) +
                                       " has other bits where another call runs in turn with it");
        }
    } catch (const Error& e) {
      run_.report("streams", e, "two calls in turns");
    }
  }

  void judge_threads(std::span<const Argument> first, std::span<const Argument> second, const Alone& alone) {
    std::array<HostRun, 2> made;
    {
      std::jthread beside([&] { made[1] = run_alone(second); });
      made[0] = run_alone(first);
    }
    for (size_t t = 0; t < 2; ++t) {
      if (!made[t].ok()) return run_.report("streams", *made[t].failure, "two threads");
      for (size_t i = 0; i < made[t].outputs.size(); ++i)
        if (first_difference(as_tensor(made[t].outputs[i]), as_tensor(alone[t]->outputs[i])))
          return report("threads", "an output has other bits where another thread runs the program");
    }
  }

  OracleRun& run_;
  const Compiled& compiled_;
  std::vector<std::string> names_;
  std::vector<NamedKernel> kernels_;
};

}  // namespace

void streams(OracleRun& run) {
  if (const Compiled* c = run.compiled()) StreamsJudge(run, *c).judge();
}

}  // namespace fusebox::fuzz
