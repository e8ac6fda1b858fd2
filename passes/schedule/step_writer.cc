#include "passes/schedule/step_writer.h"

#include "ir/table/error.h"
#include "passes/schedule/fresh_names.h"

namespace fusebox {

ValueId StepWriter::tensor(Name name) const {
  const auto v = applier_.find(name);
  if (!v || !graph_.is_tensor(*v))
    throw Error(ErrorCode::kInternal, "a schedule names a tensor that is not there", "%" + std::string(name));
  return *v;
}

StepWriter::Names StepWriter::loops(Name name) const {
  Names result;
  for (DomainId d : loop_of(graph_.tensor_of(tensor(name)))) result.push_back(graph_[d].name);
  return result;
}

std::string StepWriter::free_value(Name wanted) const {
  const std::string plain = assignable_name(std::string(wanted));
  std::string result = plain;
  for (int i = 1; applier_.find(result); ++i) result = plain + "_" + std::to_string(i);
  return result;
}

std::string StepWriter::free_domain(Name name, Name wanted, Name besides) const {
  const TensorId t = graph_[tensor(name)].tensor;
  std::string result(wanted);
  for (int i = 1; result == besides || find_domain(graph_, t, result); ++i)
    result = std::string(wanted) + "_" + std::to_string(i);
  return result;
}

std::pair<std::string, std::string> StepWriter::free_domains(Name tensor, Name first, Name second) const {
  std::string a = free_domain(tensor, first), b = free_domain(tensor, second, a);
  return {std::move(a), std::move(b)};
}

std::pair<std::string, std::string> StepWriter::split(Name tensor, Name domain, int64_t factor, Name outer,
                                                      Name inner) {
  auto names = free_domains(tensor, outer, inner);
  write(&StepDraft::split, tensor, domain, factor, names.first, names.second);
  return names;
}

std::string StepWriter::merge(Name tensor, Name outer, Name inner, Name name) {
  std::string result = free_domain(tensor, name);
  write(&StepDraft::merge, tensor, outer, inner, result);
  return result;
}

std::string StepWriter::merge(Name tensor, std::span<const std::string> domains, Name name) {
  if (domains.empty()) throw Error(ErrorCode::kInternal, "a schedule merges no domains", std::string(tensor));
  std::string all = domains[0];
  for (const std::string& d : domains.subspan(1)) all = merge(tensor, all, d, name);
  return all;
}

std::pair<std::string, std::string> StepWriter::swizzle(Name tensor, Name first, Name second, Name first_name,
                                                        Name second_name) {
  auto names = free_domains(tensor, first_name, second_name);
  write(&StepDraft::swizzle, tensor, first, second, names.first, names.second);
  return names;
}

void StepWriter::reorder(Name tensor, const Names& domains) {
  const auto now = loops(tensor);
  size_t found = 0;
  for (const std::string& d : now)
    if (found < domains.size() && d == domains[found]) ++found;
  if (found < domains.size()) write(&StepDraft::reorder, tensor, domains);
}

std::string StepWriter::cache_after(Name tensor) {
  std::string copy = free_value(std::string(tensor) + "_in");
  write(&StepDraft::cache_after, tensor, copy);
  return copy;
}

std::string StepWriter::cache_before(Name tensor) {
  std::string copy = free_value(std::string(tensor) + "_made");
  write(&StepDraft::cache_before, tensor, copy);
  return copy;
}

std::string StepWriter::cache_fork(Name tensor) {
  std::string copy = free_value(std::string(tensor) + "_out");
  write(&StepDraft::cache_fork, tensor, copy);
  return copy;
}

std::string StepWriter::recompute(Name tensor, Name reader) {
  std::string copy = free_value(tensor);
  write(&StepDraft::recompute, tensor, reader, copy);
  return copy;
}

void StepWriter::parallelize(Name tensor, Name domain, ParallelType type) {
  write(&StepDraft::parallelize, tensor, domain, type);
}
void StepWriter::set_memory_type(Name tensor, MemoryType memory) { write(&StepDraft::set_memory_type, tensor, memory); }
void StepWriter::set_loop_domain(Name tensor, Name like) { write(&StepDraft::set_loop_domain, tensor, like); }
void StepWriter::transform_like(Name tensor, const Names& others) { write(&StepDraft::transform_like, tensor, others); }
void StepWriter::parallelize_like(Name tensor, const Names& others) {
  write(&StepDraft::parallelize_like, tensor, others);
}
void StepWriter::assume_multiple(Name size, int64_t divisor) { write(&StepDraft::assume_multiple, size, divisor); }
void StepWriter::assume_equal(Name size, int64_t value) { write(&StepDraft::assume_equal, size, value); }
void StepWriter::inline_at(Name tensor, Name domain) { write(&StepDraft::inline_at, tensor, domain); }

bool StepWriter::try_inline_at(Name tensor, Name domain) {
  try {
    inline_at(tensor, domain);
    return true;
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw;
    draft_.drop_last();
    return false;
  }
}

void StepWriter::dependent_launch() { write(&StepDraft::dependent_launch); }
void StepWriter::inline_most(const Names& tensors) { write(&StepDraft::inline_most, tensors); }

}  // namespace fusebox
