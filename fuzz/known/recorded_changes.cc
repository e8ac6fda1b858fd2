#include <fmt/format.h>

#include "fuzz/field_laws/changes.h"
#include "fuzz/known/outcome_list.h"
#include "fuzz/known/recorded.h"
#include "ir/module/launch_record.h"
#include "ir/table/dtype.h"
#include "ir/table/error.h"
#include "ir/table/op.h"
#include "ir/text/dot.h"
#include "ir/text/json.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "ir/verify/verify_rules.h"
#include "passes/host/launch_code.h"
#include "passes/schedule/apply_steps.h"
#include "replay/data/input.h"

namespace fusebox::fuzz {
namespace {

// Judges each change of the value.
template <class T>
void add_changes(OutcomeList& all, const T& value, const ChangeNames& names,
                 const std::function<std::string(const T&)>& judge) {
  const ChangeCounts counts = count_changes(value, names);
  for (size_t kind = 0; kind < counts.size(); ++kind)
    for (size_t i = 0; i < counts[kind]; ++i) {
      T changed = value;
      const FieldChange change = make_change(changed, kind, i, names);
      all.add(text(change), [&] { return judge(changed); });
    }
}

// The names that calls of a host program's kernels have.
std::vector<std::string> launched_kernels(const Graph& host) {
  std::vector<std::string> names;
  for (const OpId id : ops_in_order(host))
    if (host[id].kind == OpKind::kLaunch) names.emplace_back(host[id].attrs.string(AttrKey::kName));
  return names;
}

}  // namespace

std::string recorded_changes(const Graph& g) {
  OutcomeList all;
  // A graph whose ids are right is written even if it does not verify; as text only if that infers no types. A kernel's other
  // forms hold nothing more.
  Checksum refused;
  const bool is_kernel = g.level == Level::kKernel;
  add_changes<Graph>(all, g, names_of(g), [&](const Graph& changed) {
    check_ids(changed);
    if (const std::optional<Error> e = find_error(changed)) {
      if (!is_kernel) refused.add(to_json(changed));
      if (changed.level != Level::kMath) refused.add(print(changed));
      throw *e;
    }
    return is_kernel ? print(changed)
                     : print(changed) + to_json(changed) + ops_to_dot(changed) + domains_to_dot(changed);
  });
  return fmt::format("texts of refused graphs: checksum {}\n", refused.text()) + all.text();
}

std::string recorded_module_changes(const Module& m) {
  OutcomeList all;
  const ChangeNames names = names_of(main_graph(m));
  // Each list is changed in its place, and the whole module is checked.
  const auto add_list = [&]<class T>(std::vector<T> Module::* list) {
    for (size_t i = 0; i < (m.*list).size(); ++i)
      add_changes<T>(all, (m.*list)[i], names, [&](const T& changed) {
        Module other = m;
        (other.*list)[i] = changed;
        verify(other);
        std::string out = print(changed);
        if constexpr (std::is_same_v<T, InputSpecs>)
          for (const InputSpec& spec : changed.specs)
            if (const Argument made = make_argument(spec, 1); !spec.is_scalar) out += describe(made.tensor);
        return out + to_json(other);
      });
  };
  add_list(&Module::step_lists);
  add_list(&Module::segmentations);
  add_list(&Module::input_specs);
  for (size_t i = 0; i < m.graphs.size(); ++i)
    if (m.graphs[i].level == Level::kHost)
      add_changes<Graph>(all, m.graphs[i], names_of(m.graphs[i]), [&](const Graph& changed) {
        Module other = m;
        other.graphs[i] = changed;
        verify(other);
        return print(changed);
      });
  return all.text();
}

std::string recorded_step_changes(const Module& m) {
  const Graph& g = main_graph(m);
  const StepList* list = find_steps(m, g.name);
  if (list == nullptr) throw Error(ErrorCode::kUnknownName, "the file has no steps; write them");
  OutcomeList all;
  add_changes<StepList>(all, *list, names_of(g), [&](const StepList& changed) {
    Graph copy = g;
    apply_steps(copy, changed.steps);
    verify(copy);
    return print(copy);
  });
  return all.text();
}

std::string recorded_launch_changes(const Graph& host) {
  const std::optional<LaunchRecord> record = launch_code(host, launched_kernels(host));
  if (!record) throw Error(ErrorCode::kUnsupportedOp, "no launch record holds this host program");
  OutcomeList all;
  const auto judge = [&](const std::string& what, const LaunchRecord& changed) {
    all.add(what, [&] {
      if (const std::optional<std::string> fault = objection(changed)) throw Error(ErrorCode::kInvalidField, *fault);
      return text(changed);
    });
  };
  judge("as it is", *record);
  const auto kDtypes = static_cast<uint8_t>(dtype_rows().size()), kOps = static_cast<uint8_t>(op_rows().size());
  const auto kInstructions = static_cast<uint8_t>(launch_op_rows().size());
  for (size_t i = 0; i < record->code.size(); ++i)
    for (int byte = 0; byte < 8; ++byte) {
      const int shift = 8 * byte;
      const auto was = static_cast<uint8_t>(record->code[i] >> shift);
      for (const uint8_t wanted :
           {static_cast<uint8_t>(was + 1), static_cast<uint8_t>(was - 1), uint8_t{0}, uint8_t{2}, uint8_t{3},
            uint8_t{4}, uint8_t{0xff}, kDtypes, static_cast<uint8_t>(kDtypes - 1), kOps, static_cast<uint8_t>(kOps - 1),
            kInstructions, static_cast<uint8_t>(kInstructions - 1)}) {
        if (wanted == was) continue;
        LaunchRecord changed = *record;
        changed.code[i] ^= uint64_t{static_cast<uint8_t>(wanted ^ was)} << shift;
        judge(fmt::format("byte {} of word {} is {}", byte, i, wanted), changed);
      }
    }
  for (size_t i = 0; i < record->code.size(); ++i) {
    LaunchRecord changed = *record;
    changed.code.resize(i);
    judge(fmt::format("{} words", i), changed);
  }
  const auto fewer = [&](const std::string& what, auto change) {
    LaunchRecord changed = *record;
    change(changed);
    judge(what, changed);
  };
  fewer("one register less", [](LaunchRecord& r) { --r.registers; });
  fewer("too many registers", [](LaunchRecord& r) { r.registers = (uint32_t{1} << 16) + 1; });
  fewer("as many registers as there may be", [](LaunchRecord& r) { r.registers = uint32_t{1} << 16; });
  fewer("no kernel", [](LaunchRecord& r) { r.kernels = 0; });
  fewer("no error", [](LaunchRecord& r) { r.errors.clear(); });
  fewer("no name", [](LaunchRecord& r) { r.names.clear(); });
  for (size_t i = 0; i < record->inputs.size(); ++i) {
    fewer(fmt::format("input {} of another kind", i), [&](LaunchRecord& r) { r.inputs[i].is_scalar ^= true; });
    fewer(fmt::format("input {} of rank 0", i), [&](LaunchRecord& r) { r.inputs[i].rank = 0; });
  }
  for (size_t i = 0; i < record->allocated.size(); ++i)
    fewer(fmt::format("tensor {} of one more axis", i), [&](LaunchRecord& r) { ++r.allocated[i].rank; });
  return all.text();
}

}  // namespace fusebox::fuzz
