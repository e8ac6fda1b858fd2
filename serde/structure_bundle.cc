// The invariants of bundle.h.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "ir/table/error.h"
#include "serde/launch_parts.h"
#include "serde/structure.h"

namespace fusebox {
namespace {

[[noreturn]] void invalid(const Place& place, const std::string& message) {
  throw Error(ErrorCode::kInvalidField, message, place.text());
}

template <class T, class Name>
void unique(const std::vector<T>& list, const Place& place, Name name) {
  std::vector<std::string_view> names;
  names.reserve(list.size());
  for (const T& item : list) names.push_back(name(item));
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    invalid(place, "'" + std::string(twice->substr(0, 64)) + "' is there twice");
}

void check_input(const InputRecord& input, const Place& place) {
  const Place spec(place, "spec");
  check_layout(input.spec.shape, input.spec.strides, spec);
  if (!input.bytes) return;
  const Place bytes(place, "bytes");
  if (input.spec.is_scalar) invalid(bytes, "a scalar has its value in the spec, and no bytes");
  int64_t wanted = size_bytes(input.spec.dtype);
  for (int64_t extent : input.spec.shape)
    if (__builtin_mul_overflow(wanted, extent, &wanted)) wanted = -1;
  if (wanted < 0 || static_cast<uint64_t>(wanted) != input.bytes->size())
    invalid(bytes, "there are " + std::to_string(input.bytes->size()) + " bytes; shape and dtype ask for " +
                       (wanted < 0 ? "more than any file has" : std::to_string(wanted)));
}

void check_rank(const Rank& rank, const Place& place) {
  const Place inputs(place, "inputs"), outputs(place, "outputs"), crossings(place, "crossings");
  for (size_t i = 0; i < rank.inputs.size(); ++i) check_input(rank.inputs[i], Place(inputs, i));
  for (size_t i = 0; i < rank.outputs.size(); ++i)
    check_layout(rank.outputs[i].shape, rank.outputs[i].strides, Place(outputs, i));
  for (size_t i = 0; i < rank.crossings.size(); ++i)
    check_layout(rank.crossings[i].shape, rank.crossings[i].strides, Place(crossings, i));
  if (rank.failure) {
    const ErrorCode code = rank.failure->code;
    if (row_of(code).code != code)
      invalid(Place(Place(place, "failure"), "code"),
              std::to_string(static_cast<unsigned>(code)) + " is no error's number");
  }
  unique(rank.environment, Place(place, "environment"), [](const KeyValue& e) { return std::string_view(e.key); });
}

}  // namespace

void check_structure(const Bundle& b, const Place& place) {
  const Place stages(place, "stages"), ranks(place, "ranks");
  for (size_t i = 1; i < b.stages.size(); ++i)
    if (b.stages[i].stage <= b.stages[i - 1].stage)
      invalid(Place(Place(stages, i), "stage"), "stages have to ascend, each at most once");
  unique(b.options, Place(place, "options"), [](const KeyValue& e) { return std::string_view(e.key); });
  unique(b.digests, Place(place, "digests"), [](const StageDigest& d) { return std::string_view(d.name); });
  for (size_t i = 0; i < b.ranks.size(); ++i) check_rank(b.ranks[i], Place(ranks, i));
  const Place records(place, "records");
  for (size_t i = 0; i < b.records.size(); ++i) check_structure(b.records[i], Place(records, i));
}

void check_structure(const CacheRecord& r, const Place& place) {
  const Place key(place, "key");
  unique(r.key, key, [](const KeyPart& p) { return std::string_view(p.name); });
  if (r.compiled.has_value() == r.image.has_value())
    invalid(place, "a record holds a compiled fusion or the image of a kernel, one of the two");
  if (!r.compiled) return;
  const CompiledFusion& c = *r.compiled;
  const Place compiled(place, "compiled");
  if (c.index_bits != 32 && c.index_bits != 64) invalid(Place(compiled, "index_bits"), "an index has 32 or 64 bits");
  if (c.program.graphs.size() != 1 || c.program.segmentations.size() != 1 || c.program.step_lists.empty() ||
      c.program.step_lists.size() > 2)
    invalid(Place(compiled, "program"), "there is one fusion, one segmentation of it, and one list of steps");
  const auto& segments = c.program.segmentations[0].segments;
  if (c.scheduled.graphs.size() != segments.size())
    invalid(Place(compiled, "scheduled"), "there is one graph for each segment");
  const auto kernels = static_cast<size_t>(
      std::ranges::count_if(segments, [](const Segment& s) { return s.executor == SegmentExecutor::kKernel; }));
  if (c.code.graphs.size() != 1 + 2 * kernels)
    invalid(Place(compiled, "code"), "there is a host program, and a kernel and its launch for each such segment");
  if (!c.plans.empty() && c.plans.size() != kernels)
    invalid(Place(compiled, "plans"), "there is one digest for each kernel, or none");
  check_structure(c.signature, Place(compiled, "signature"));
  if (!c.launch) return;
  const Place launch(compiled, "launch");
  check_structure(*c.launch, launch);
  if (c.launch->kernels != segments.size())
    invalid(Place(launch, "kernels"), "the launch record numbers its kernels by segment");
}

}  // namespace fusebox
