// Vectorized copies: `set` with a vectorized innermost loop becomes one access of that width, between global or shared
// memory and local memory, or between any two.
//
// Needed of each side: the index is the loop plus a rest that the width divides. What is not proved of extents and
// strides is asked of the launch, which checks it at run time, together with the address of the memory.
#include <algorithm>

#include "ir/domain/domain.h"
#include "ir/table/error.h"
#include "passes/lower/lowering.h"

namespace fusebox::lowering {

bool Lowering::is_vector_copy(const Statement& s) const {
  const Op& op = g[s.op];
  const auto& loop = loop_of(g.tensor_of(op.results[0]));
  if (loop.empty() || g[loop.back()].parallel != ParallelType::kVectorize) return false;
  return op.kind == OpKind::kSet && g.is_tensor(op.operands[0]);
}

namespace {

// Width divides the form, possibly because of what the launch checks; adds what it must check. False: cannot be shown.
bool divided(Lowering& l, IndexAlgebra& algebra, Form form, int64_t width, std::set<Lowering::Divisibility>& needed) {
  if (algebra.constant_part(form) % width != 0) return false;
  for (const TermView& term : algebra.terms(form)) {
    if (term.coefficient % width == 0) continue;
    std::vector<ScalarParameter> product;
    bool has_stride = false;
    const std::vector<AtomId> factors(term.factors.begin(), term.factors.end());
    for (AtomId f : factors) {
      const AtomView atom = algebra.atom(f);
      if (atom.kind != AtomKind::kSymbol) continue;
      if (const auto it = l.stride_symbols.find(atom.id); it != l.stride_symbols.end())
        product.push_back(it->second), has_stride = true;
      else if (!l.run_time_symbols.contains(atom.id))
        product.push_back({ValueId(static_cast<uint32_t>(atom.id)), {}, 0});
    }
    if (product.empty()) return false;
    if (has_stride && l.options.defects.has(Defect::kVectorStride)) continue;
    std::sort(product.begin(), product.end());
    needed.insert({width, product});
  }
  return true;
}

}  // namespace

void Lowering::emit_vector_copy(OpView& view) {
  const Op& op = g[view.statement.op];
  const ValueId to = op.results[0], from = op.operands[0];
  const auto& loop = loop_of(g.tensor_of(to));
  const std::string place = place_of(to) + "." + g[loop.back()].name;
  const auto width = algebra.constant_value(view.own.extent(loop.back()));
  const int64_t bytes = width ? *width * size_bytes(g[to].dtype) : 0;
  if (!width || *width < 1 || (*width & (*width - 1)) != 0 || bytes > 16)
    throw Error(ErrorCode::kIllegalVectorize,
                "a vector is a power of two of elements, 16 bytes at most; split by such a factor", place);
  if (g[to].dtype != g[from].dtype)
    throw Error(ErrorCode::kIllegalVectorize, "a vectorized copy keeps the dtype; cast in an op of its own", place);
  const int node = static_cast<int>(view.statement.path.back());
  std::set<Divisibility> needed;
  const auto side = [&](ValueId v, Form index) {
    const auto linear = view.algebra.linear_in(index, node);
    if (*width > 1 && (!linear || algebra.constant_value(linear->coefficient) != 1 ||
                       !divided(*this, algebra, linear->rest, *width, needed)))
      throw Error(ErrorCode::kIllegalVectorize,
                  "its elements in " + place_of(v) +
                      " do not lie side by side, or do not start at a multiple of the width; vectorize the innermost "
                      "contiguous axis",
                  place);
    return linear ? linear->rest : index;
  };
  DomainValues values = view.feed(0);
  const Form source = side(from, view.index_of(buffers[from.index], values));
  const Form target = side(to, view.index_of(buffers[to.index], view.own));
  // A check holds for all elements of a vector or for none: value and extent are multiples of the width.
  for (const DomainCheck& check : view.own.checks()) {
    if (!algebra.depends_on(check.value, node) || options.defects.has(Defect::kVectorTail)) continue;
    const auto linear = algebra.linear_in(check.value, node);
    if (!linear || algebra.constant_value(linear->coefficient) != 1 ||
        !divided(*this, algebra, linear->rest, *width, needed) ||
        !divided(*this, algebra, check.extent, *width, needed))
      throw Error(ErrorCode::kIllegalVectorize,
                  "a vector could reach over the end of " + g[check.domain].name +
                      "; split so that the width divides its extent",
                  place);
  }
  divisibilities.insert(needed.begin(), needed.end());
  for (ValueId v : {to, from}) {
    const Buffer& b = buffers[v.index];
    if (v == to && options.defects.has(Defect::kTargetAlignment)) continue;
    if (b.memory == MemoryType::kGlobal && !options.defects.has(Defect::kVectorAlignment)) {
      int64_t& align = alignments[b.kernel_value];
      align = std::max(align, bytes);
    }
  }
  const ValueId predicate = emit_conditions(view);
  Attrs attrs;
  attrs.set(AttrKey::kWidth, *width);
  for (AttrKey key : {AttrKey::kCopyKind, AttrKey::kCacheOp})
    if (op.attrs.has(key)) attrs.set(key, op.attrs.integer(key));
  const auto emit = [&] {
    const ValueId at = emit_form(target);
    kernel.effect(OpKind::kCopy, {buffer_of(to), at, buffer_of(from), emit_form(source), ValueId()}, {}, attrs);
  };
  guarded(predicate, emit);
}

}  // namespace fusebox::lowering
