// Collects what `show --why` prints: for each statement, each domain and each thread dimension, whether it is checked,
// the reason, and where the kernel holds the outcome.
#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/lower/kernel_emitter.h"

namespace fusebox {

std::vector<CheckNote> KernelEmitter::check_notes() {
  std::vector<CheckNote> notes;
  for (uint32_t statement = 0; statement < plan_.tree.statements.size(); ++statement) {
    const Statement& s = plan_.tree.statements[statement];
    if (s.kind == StatementKind::kInit || s.kind == StatementKind::kExchange) continue;
    StatementView view(plan_, s);
    const std::string value = g_[g_[s.op].results[0]].name;
    const auto& list = plan_.statements[statement].conditions;
    for (size_t i = 0; i < list.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        check_internal(list[i].domain != list[k].domain || list[i].compare != list[k].compare ||
                           list[i].kind != list[k].kind || list[i].guard != list[k].guard,
                       "a domain is checked twice");
    // Both bounds of a domain share one note.
    const auto note_of = [&](size_t i) -> CheckNote& {
      const Condition& c = list[i];
      const std::string domain = c.domain ? g_[c.domain].name : std::string(text(*c.guard));
      for (CheckNote& n : notes)
        if (n.value == value && n.kind == c.kind && n.domain == domain) {
          // The statement that stores a reduction's result may need a check that the reducing statement does not.
          if (!n.checked) n = {c.kind, value, domain, true, c.reason, {}, false};
          return n;
        }
      notes.push_back({c.kind, value, domain, true, c.reason, {}, false});
      return notes.back();
    };
    for (size_t i = 0; i < list.size(); ++i) {
      CheckNote& note = note_of(i);
      const auto it = emitted_.find({statement, i});
      if (it == emitted_.end()) continue;
      note.settled = it->second.settled;
      const Value& predicate = kernel_.graph()[it->second.predicate];
      if (!predicate.constant) note.predicate += (note.predicate.empty() ? "%" : ", %") + predicate.name;
    }
    const auto add = [&](CheckKind kind, const std::string& domain, CheckReason reason) {
      const bool there = std::any_of(notes.begin(), notes.end(), [&](const CheckNote& n) {
        const bool is_kind = n.kind == kind || (kind == CheckKind::kThread && n.kind == CheckKind::kLastBlock);
        return n.value == value && is_kind && n.domain == domain;
      });
      if (!there) notes.push_back({kind, value, domain, false, reason, {}, false});
    };
    for (const DomainVerdict& v : view.own.verdicts())
      if (!v.checked) add(CheckKind::kDomain, g_[v.domain].name, v.reason);
    const auto& loop = loop_of(g_.tensor_of(g_[s.op].results[0]));
    for (size_t i = 0; i < s.path.size(); ++i)
      if (s.path[i] != LoopNode::kNoNode && is_thread(plan_.parallel_of(s.path[i])))
        add(CheckKind::kLoopExtent, g_[loop[i]].name,
            plan_.is_replicated(loop[i]) ? CheckReason::kReplicated : CheckReason::kLaunchExact);
    for (ParallelType p : plan_.used_threads) add(CheckKind::kThread, std::string(text(p)), CheckReason::kOneMemory);
  }
  return notes;
}

}  // namespace fusebox
