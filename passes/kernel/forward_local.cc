#include "passes/kernel/forward_local.h"

#include <algorithm>
#include <map>
#include <set>

namespace fusebox {
namespace {

struct Use {
  OpId op;
  std::vector<RegionId> scope;  // from the body inwards
  size_t order;
};

struct Candidate {
  OpId allocate;
  std::vector<Use> stores, loads;
  bool other = false;
};

class Forwarder {
 public:
  Forwarder(Graph& g, const Defects& defects) : g_(g), defects_(defects) {}

  bool run() {
    walk(Graph::body());
    std::map<ValueId, ValueId> replaced;
    std::set<OpId> dropped;
    for (auto& [buffer, c] : candidates_) {
      if (c.other || c.stores.empty()) continue;
      if (c.stores.size() > 1 && !defects_.has(Defect::kForwardedStale)) continue;
      const Use& store = c.stores[0];
      bool visible = true;
      for (const Use& load : c.loads)
        visible &= load.order > store.order &&
                   (starts_with(load.scope, store.scope) || defects_.has(Defect::kForwardedOutOfScope));
      if (!visible) continue;
      for (const Use& load : c.loads) {
        replaced[g_[load.op].results[0]] = g_[store.op].operands[2];
        dropped.insert(load.op);
      }
      for (const Use& s : c.stores) dropped.insert(s.op);
      dropped.insert(c.allocate);
    }
    if (dropped.empty()) return false;
    for (Op& op : g_.ops)
      for (ValueId& v : op.operands)
        for (auto it = replaced.find(v); it != replaced.end(); it = replaced.find(v)) v = it->second;
    for (Region& r : g_.regions) std::erase_if(r.ops, [&](OpId op) { return dropped.contains(op); });
    return true;
  }

 private:
  static bool starts_with(const std::vector<RegionId>& scope, const std::vector<RegionId>& prefix) {
    return scope.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), scope.begin());
  }
  void walk(RegionId region) {
    scope_.push_back(region);
    for (OpId id : g_[region].ops) {
      const Op& op = g_[id];
      ++order_;
      if (op.kind == OpKind::kAllocate) {
        const Tensor& t = g_.tensor_of(op.results[0]);
        if (t.memory == MemoryType::kLocal && constant_integer(g_, op.operands[0]) == 1)
          candidates_[op.results[0]].allocate = id;
      } else {
        for (size_t k = 0; k < op.operands.size(); ++k) {
          const auto it = op.operands[k] ? candidates_.find(op.operands[k]) : candidates_.end();
          if (it == candidates_.end()) continue;
          const bool plain_load = op.kind == OpKind::kLoad && k == 0 && !op.operands[2];
          const bool plain_store = op.kind == OpKind::kStore && k == 0 && !op.operands[3];
          if (plain_load)
            it->second.loads.push_back({id, scope_, order_});
          else if (plain_store)
            it->second.stores.push_back({id, scope_, order_});
          else
            it->second.other = true;
        }
      }
      for (RegionId inner : op.regions) walk(inner);
    }
    scope_.pop_back();
  }

  Graph& g_;
  const Defects& defects_;
  std::map<ValueId, Candidate> candidates_;
  std::vector<RegionId> scope_;
  size_t order_ = 0;
};

}  // namespace

bool forward_local(Graph& kernel, const Defects& defects) { return Forwarder(kernel, defects).run(); }

}  // namespace fusebox
