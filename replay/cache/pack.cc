#include "replay/cache/pack.h"

#include <algorithm>
#include <optional>

#include "codegen/cuda.h"
#include "ir/canonical/canonical.h"
#include "ir/step/apply.h"
#include "ir/table/error.h"
#include "passes/host/host_program.h"
#include "passes/schedule/apply_steps.h"
#include "replay/cache/build_digest.h"
#include "replay/cache/cache_key.h"
#include "replay/cache/compiled_record.h"
#include "replay/device/kernel_images.h"
#include "serde/decode.h"
#include "serde/encode.h"

namespace fusebox {
namespace {

[[noreturn]] void contradicts(const std::string& what, const std::string& place) {
  throw Error(ErrorCode::kInvalidField, what + "; the record was changed, or made by another build", place);
}

// Makes the concretized fusion again from the key's. A key of a schedule does not tell its rewrites.
void check_fusion(const CacheKey& key, const Compiled& c, const std::string& place) {
  const Module m = decode_module(bytes_of(part_of(key, "fusion")));
  if (m.graphs.size() != 1) contradicts("its key names no fusion", place);
  if (!part_of(key, "steps").empty()) return;
  Graph again = m.graphs[0];
  try {
    if (c.automatic) apply_steps(again, std::span(c.automatic->steps).first(leading_rewrites(c.automatic->steps)));
    again = canonical_order(again);
    apply(again, c.concretize);
  } catch (const Error& e) {
    if (e.code == ErrorCode::kInternal) throw;
    contradicts("the steps of its program do not apply to its key's fusion", place);
  }
  if (digest(again) != digest(c.concretized)) contradicts("the program is not made of its key's fusion", place);
}

// Makes the kernels and the host program again from the schedules.
void check_lowering(const Compiled& c, const std::string& place) {
  Compiled again = c;
  lower_segments(again, {});
  for (size_t i = 0; i < c.kernels.size(); ++i)
    if (digest(again.kernels[i]) != digest(c.kernels[i]) || digest(again.launches[i]) != digest(c.launches[i]))
      contradicts("a kernel is not what its schedule is lowered to", place);
  if (digest(build_host_program(c.concretized, c.segmentation, again.launches)) != digest(c.host))
    contradicts("the host program is not the one of these kernels", place);
}

// The request whose text the image was compiled from.
std::optional<ImageRequest> request_of(const Compiled& c, const KernelImage& image) {
  for (const Graph& kernel : c.kernels) {
    if (kernel.ops.empty() || digest(kernel) != image.kernel) continue;
    for (const bool reads_apart : {true, false}) {
      const CudaSource source = emit_cuda(kernel, {.reads_apart = reads_apart});
      if (digest_bytes(source.text) == image.source) return image_request(kernel, source, image.architecture);
    }
  }
  return std::nullopt;
}

}  // namespace

Bundle pack(std::vector<CacheRecord> records) {
  std::erase_if(records, [](const CacheRecord& r) { return !r.compiled; });
  Bundle b;
  Module fusions;
  for (const CacheRecord& r : records)
    for (Graph& g : decode_module(bytes_of(part_of(r.key, "fusion"))).graphs)
      if (!find_graph(fusions, g.name)) fusions.graphs.push_back(std::move(g));
  if (!records.empty()) {
    b.program = part_of(records[0].key, "program");
    b.stages.push_back({Stage::kFusion, std::move(fusions)});
  }
  b.records = std::move(records);
  return b;
}

std::vector<Unpacked> unpack(const Bundle& bundle, RecordStore& store, const UnpackOptions& options) {
  std::vector<Unpacked> result;
  for (size_t i = 0; i < bundle.records.size(); ++i) {
    CacheRecord record = bundle.records[i];
    const std::string place = "records[" + std::to_string(i) + "]";
    Unpacked& one = result.emplace_back();
    one.program = part_of(record.key, "program");
    one.target = part_of(record.key, "target");
    if (!record.compiled) {
      one.skipped = "it is no compiled fusion";
      continue;
    }
    if (part_of(record.key, "build") != build_digest()) {
      one.skipped = "another build of Fusebox made it; export it with this one";
      continue;
    }
    const Compiled c = compiled_of(*record.compiled);
    check_fusion(record.key, c, place);
    check_lowering(c, place);
    if (record.compiled->launch != launch_record(c))
      contradicts("the launch record is not the one of the host program", place);
    one.kernels = static_cast<int64_t>(record.compiled->code.graphs.size() / 2);
    for (KernelImage& image : record.compiled->images) {
      const auto request = request_of(c, image);
      if (!request) contradicts("a binary belongs to no kernel of its program", place);
      if (launch_needs(image) != request->needs)
        contradicts("a binary is launched in another way than its kernel", place);
      if (options.trust_binaries) continue;
      KernelImage made = compile_image(*request);
      made.registers = image.registers;
      made.local_bytes = image.local_bytes;
      made.shared_bytes = image.shared_bytes;
      image = std::move(made);
      ++one.compiled;
    }
    if (!store.write(record_name(record.key, kFusionSuffix), encode(record)))
      throw Error(ErrorCode::kFileWrite, "the cache takes no record; check the folder's rights and room", place);
  }
  return result;
}

}  // namespace fusebox
