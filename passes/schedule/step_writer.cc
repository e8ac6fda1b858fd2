#include "passes/schedule/step_writer.h"

#include "ir/table/error.h"

namespace fusebox {

void StepWriter::add(Step step) {
  steps_.push_back(std::move(step));
  applier_.apply(steps_.back());
}

ValueId StepWriter::tensor(std::string_view name) const {
  const auto v = find_value(graph_, name);
  if (!v || !graph_.is_tensor(*v))
    throw Error(ErrorCode::kInternal, "a schedule names a tensor that is not there", "%" + std::string(name));
  return *v;
}

std::vector<std::string> StepWriter::loops(std::string_view name) const {
  std::vector<std::string> result;
  for (DomainId d : loop_of(graph_.tensor_of(tensor(name)))) result.push_back(graph_[d].name);
  return result;
}

std::string StepWriter::free_domain(std::string_view name, std::string_view wanted, std::string_view besides) const {
  const TensorId t = graph_[tensor(name)].tensor;
  std::string result(wanted);
  for (int i = 1; result == besides || find_domain(graph_, t, result); ++i)
    result = std::string(wanted) + "_" + std::to_string(i);
  return result;
}

std::pair<std::string, std::string> StepWriter::split(std::string_view tensor, std::string_view domain, int64_t factor,
                                                      std::string_view outer, std::string_view inner) {
  const std::string o = free_domain(tensor, outer), i = free_domain(tensor, inner, o);
  add({StepKind::kSplit, {StepOperand::domain_of(tensor, domain), StepOperand::number(factor)}, {o, i}, {}});
  return {o, i};
}

std::string StepWriter::merge(std::string_view tensor, std::string_view outer, std::string_view inner,
                              std::string_view name) {
  const std::string result = free_domain(tensor, name);
  add({StepKind::kMerge, {StepOperand::domain_of(tensor, outer), StepOperand::domain_of(tensor, inner)}, {result}, {}});
  return result;
}

std::string StepWriter::merge(std::string_view tensor, std::span<const std::string> domains, std::string_view name) {
  if (domains.empty()) throw Error(ErrorCode::kInternal, "a schedule merges no domains", std::string(tensor));
  std::string all = domains[0];
  for (const std::string& d : domains.subspan(1)) all = merge(tensor, all, d, name);
  return all;
}

std::pair<std::string, std::string> StepWriter::swizzle(std::string_view tensor, std::string_view first,
                                                        std::string_view second, std::string_view first_name,
                                                        std::string_view second_name) {
  const std::string a = free_domain(tensor, first_name), b = free_domain(tensor, second_name, a);
  add({StepKind::kSwizzle,
       {StepOperand::domain_of(tensor, first), StepOperand::domain_of(tensor, second)},
       {a, b},
       {}});
  return {a, b};
}

void StepWriter::reorder(std::string_view tensor, std::span<const std::string> domains) {
  const auto now = loops(tensor);
  size_t found = 0;
  for (const std::string& d : now)
    if (found < domains.size() && d == domains[found]) ++found;
  if (found == domains.size()) return;
  Step step{StepKind::kReorder, {StepOperand::of(tensor)}, {}, {}};
  for (const std::string& d : domains) step.operands.push_back(StepOperand::domain_of(tensor, d));
  add(std::move(step));
}

void StepWriter::parallelize(std::string_view tensor, std::string_view domain, ParallelType type) {
  Step step{StepKind::kParallelize, {StepOperand::domain_of(tensor, domain)}, {}, {}};
  step.attrs.set_enum(AttrKey::kParallel, type);
  add(std::move(step));
}

std::string StepWriter::copy(StepKind kind, std::string_view tensor, std::string_view name, std::string_view reader) {
  Step step{kind, {StepOperand::of(tensor)}, {fresh_name(graph_, name)}, {}};
  if (!reader.empty()) step.operands.push_back(StepOperand::of(reader));
  std::string result = step.results[0];
  add(std::move(step));
  return result;
}

std::string StepWriter::cache_after(std::string_view tensor) {
  return copy(StepKind::kCacheAfter, tensor, std::string(tensor) + "_in");
}
std::string StepWriter::cache_before(std::string_view tensor) {
  return copy(StepKind::kCacheBefore, tensor, std::string(tensor) + "_made");
}
std::string StepWriter::cache_fork(std::string_view tensor) {
  return copy(StepKind::kCacheFork, tensor, std::string(tensor) + "_out");
}
std::string StepWriter::recompute(std::string_view tensor, std::string_view reader) {
  return copy(StepKind::kRecompute, tensor, tensor, reader);
}

void StepWriter::set_memory_type(std::string_view tensor, MemoryType memory) {
  Step step{StepKind::kSetMemoryType, {StepOperand::of(tensor)}, {}, {}};
  step.attrs.set_enum(AttrKey::kMemory, memory);
  add(std::move(step));
}

void StepWriter::set_loop_domain(std::string_view tensor, std::string_view like) {
  add({StepKind::kSetLoopDomain, {StepOperand::of(tensor), StepOperand::of(like)}, {}, {}});
}

void StepWriter::like(StepKind kind, std::string_view tensor, std::span<const std::string> others) {
  Step step{kind, {StepOperand::of(tensor)}, {}, {}};
  for (const std::string& other : others) step.operands.push_back(StepOperand::of(other));
  add(std::move(step));
}

void StepWriter::transform_like(std::string_view tensor, std::span<const std::string> others) {
  like(StepKind::kTransformLike, tensor, others);
}
void StepWriter::parallelize_like(std::string_view tensor, std::span<const std::string> others) {
  like(StepKind::kParallelizeLike, tensor, others);
}

void StepWriter::assume_multiple(std::string_view size, int64_t divisor) {
  // The other facts are absent.
  add({StepKind::kAssume, {StepOperand::of(size), StepOperand::number(divisor), {}, {}, {}}, {}, {}});
}

void StepWriter::inline_at(std::string_view tensor, std::string_view domain) {
  add({StepKind::kInlineAt, {StepOperand::domain_of(tensor, domain)}, {}, {}});
}

void StepWriter::inline_most(std::span<const std::string> tensors) {
  Step step{StepKind::kInlineMost, {}, {}, {}};
  for (const std::string& t : tensors) step.operands.push_back(StepOperand::of(t));
  add(std::move(step));
}

}  // namespace fusebox
