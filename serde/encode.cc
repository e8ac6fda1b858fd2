#include "serde/encode.h"

#include "serde/bundle_generated.h"
#include "serde/features.h"
#include "serde/launch_parts.h"
#include "serde/record_file.h"
#include "serde/structure.h"
#include "serde/writer.h"

namespace fusebox {
namespace {

void check_graphs(const Module& m, const Place& place) {
  const Place graphs(place, "graphs");
  for (size_t i = 0; i < m.graphs.size(); ++i) check_structure(m.graphs[i], Place(graphs, i));
  const Place lists(place, "input_specs");
  for (size_t i = 0; i < m.input_specs.size(); ++i) {
    const Place list(lists, i), specs(list, "specs");
    for (size_t k = 0; k < m.input_specs[i].specs.size(); ++k)
      check_layout(m.input_specs[i].specs[k].shape, m.input_specs[i].specs[k].strides, Place(specs, k));
  }
}

void check_graphs(const CacheRecord& r, const Place& place) {
  if (!r.compiled) return;
  const Place at(place, "compiled");
  check_graphs(r.compiled->program, Place(at, "program"));
  check_graphs(r.compiled->scheduled, Place(at, "scheduled"));
  check_graphs(r.compiled->code, Place(at, "code"));
}

wire::Digest write_digest(const Digest& digest) { return wire::Digest(digest.low, digest.high); }

class BundleWriter {
 public:
  explicit BundleWriter(Writer& w) : writer_(w) {}

  template <class T>
  auto list(const std::vector<T>& from, const Place& place, size_t limit) {
    return writer_.list(from, place, limit, [&](const T& item, const Place& at) { return write(item, at); });
  }

  flatbuffers::Offset<wire::KeyValue> write(const KeyValue& entry, const Place& at) {
    const auto key = writer_.required(entry.key, Place(at, "key"));
    const auto value = writer_.string(entry.value, Place(at, "value"), limits::kTextBytes);
    return wire::CreateKeyValue(writer_.b, key, value);
  }

  flatbuffers::Offset<wire::StageRecord> write(const StageRecord& record, const Place& at) {
    const auto module = write_module(writer_, record.module, Place(at, "module"));
    return wire::CreateStageRecord(writer_.b, static_cast<uint16_t>(record.stage), module);
  }

  flatbuffers::Offset<wire::StageDigest> write(const StageDigest& entry, const Place& at) {
    const auto name = writer_.required(entry.name, Place(at, "name"));
    const wire::Digest digest = write_digest(entry.digest);
    return wire::CreateStageDigest(writer_.b, name, &digest);
  }

  flatbuffers::Offset<wire::InputRecord> write(const InputRecord& input, const Place& at) {
    const auto spec = write_input_spec(writer_, input.spec, Place(at, "spec"));
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> bytes;
    if (input.bytes) {
      writer_.room(input.bytes->size() + 64, Place(at, "bytes"));
      bytes = writer_.b.CreateVector(input.bytes->data(), input.bytes->size());
    }
    return wire::CreateInputRecord(writer_.b, spec, bytes);
  }

  flatbuffers::Offset<wire::OutputRecord> write(const OutputRecord& output, const Place& at) {
    const auto name = writer_.required(output.name, Place(at, "name"));
    const auto shape = writer_.integers(output.shape, Place(at, "shape"), limits::kAxes);
    const auto strides = writer_.integers(output.strides, Place(at, "strides"), limits::kAxes);
    const wire::Digest digest = write_digest(output.digest);
    return wire::CreateOutputRecord(writer_.b, name, static_cast<uint16_t>(output.dtype), shape, strides, &digest);
  }

  flatbuffers::Offset<wire::Failure> write(const Failure& failure, const Place& at) {
    const auto message = writer_.string(failure.message, Place(at, "message"), limits::kTextBytes);
    const auto place = writer_.string(failure.place, Place(at, "place"), limits::kTextBytes);
    return wire::CreateFailure(writer_.b, static_cast<uint16_t>(failure.code), message, place);
  }

  flatbuffers::Offset<wire::CrossingLayout> write(const CrossingLayout& layout, const Place& at) {
    const auto segment = writer_.string(layout.segment, Place(at, "segment"));
    const auto value = writer_.required(layout.value, Place(at, "value"));
    const auto shape = writer_.integers(layout.shape, Place(at, "shape"), limits::kAxes);
    const auto strides = writer_.integers(layout.strides, Place(at, "strides"), limits::kAxes);
    return wire::CreateCrossingLayout(writer_.b, segment, value, static_cast<uint16_t>(layout.dtype), shape, strides);
  }

  flatbuffers::Offset<wire::Rank> write(const Rank& rank, const Place& at) {
    const auto executor = writer_.string(rank.executor, Place(at, "executor"));
    const auto inputs = list(rank.inputs, Place(at, "inputs"), limits::kRecords);
    const auto outputs = list(rank.outputs, Place(at, "outputs"), limits::kRecords);
    flatbuffers::Offset<wire::Failure> failure;
    if (rank.failure) failure = write(*rank.failure, Place(at, "failure"));
    const auto crossings = list(rank.crossings, Place(at, "crossings"), limits::kNodes);
    const auto environment = list(rank.environment, Place(at, "environment"), limits::kRecords);
    return wire::CreateRank(writer_.b, executor, inputs, outputs, failure, crossings, environment);
  }

  flatbuffers::Offset<wire::Artifact> write(const Artifact& artifact, const Place& at) {
    const auto kernel = writer_.required(artifact.kernel, Place(at, "kernel"));
    const auto architecture = writer_.string(artifact.architecture, Place(at, "architecture"));
    const auto cuda = writer_.string(artifact.cuda, Place(at, "cuda"), limits::kFileBytes);
    const auto binary = bytes(artifact.binary, Place(at, "binary"));
    return wire::CreateArtifact(writer_.b, kernel, architecture, cuda, binary);
  }

  flatbuffers::Offset<wire::KeyPart> write(const KeyPart& part, const Place& at) {
    const auto name = writer_.required(part.name, Place(at, "name"));
    return wire::CreateKeyPart(writer_.b, name, bytes(part.bytes, Place(at, "bytes")));
  }

  flatbuffers::Offset<wire::DigestEntry> write(const Digest& digest, const Place&) {
    const wire::Digest entry = write_digest(digest);
    return wire::CreateDigestEntry(writer_.b, &entry);
  }

  flatbuffers::Offset<wire::KernelImage> write(const KernelImage& image, const Place& at) {
    const wire::Digest kernel = write_digest(image.kernel), source = write_digest(image.source);
    const auto entry = writer_.string(image.entry, Place(at, "entry"));
    const auto architecture = writer_.string(image.architecture, Place(at, "architecture"));
    const auto options = writer_.string(image.options, Place(at, "options"), limits::kTextBytes);
    const auto compiler = writer_.string(image.compiler, Place(at, "compiler"));
    const auto binary = bytes(image.binary, Place(at, "binary"));
    return wire::CreateKernelImage(writer_.b, &kernel, &source, entry, architecture, options, compiler, image.numerics,
                                   image.registers, image.local_bytes, image.shared_bytes, binary, image.is_cooperative,
                                   image.opts_in_shared, image.is_dependent);
  }

  flatbuffers::Offset<wire::CompiledFusion> write(const CompiledFusion& compiled, const Place& at) {
    const auto program = write_module(writer_, compiled.program, Place(at, "program"));
    const auto scheduled = write_module(writer_, compiled.scheduled, Place(at, "scheduled"));
    const auto code = write_module(writer_, compiled.code, Place(at, "code"));
    const auto plans = list(compiled.plans, Place(at, "plans"), limits::kNodes);
    const auto images = list(compiled.images, Place(at, "images"), limits::kRecords);
    const auto signature = write_signature(writer_, compiled.signature, Place(at, "signature"));
    flatbuffers::Offset<wire::LaunchRecord> launch;
    if (compiled.launch) launch = write_launch(writer_, *compiled.launch, Place(at, "launch"));
    return wire::CreateCompiledFusion(writer_.b, program, scheduled, code, plans,
                                      static_cast<uint8_t>(compiled.index_bits), images, signature, launch);
  }

  flatbuffers::Offset<wire::CacheRecord> write(const CacheRecord& record, const Place& at) {
    const auto key = list(record.key, Place(at, "key"), limits::kRecords);
    flatbuffers::Offset<wire::CompiledFusion> compiled;
    flatbuffers::Offset<wire::KernelImage> image;
    if (record.compiled) compiled = write(*record.compiled, Place(at, "compiled"));
    if (record.image) image = write(*record.image, Place(at, "image"));
    return wire::CreateCacheRecord(writer_.b, key, compiled, image);
  }

 private:
  flatbuffers::Offset<flatbuffers::Vector<uint8_t>> bytes(const std::vector<uint8_t>& from, const Place& at) {
    if (from.empty()) return 0;
    writer_.room(from.size() + 64, at);
    return writer_.b.CreateVector(from);
  }

  Writer& writer_;
};

}  // namespace

std::string encode(const Module& m, const Defects& defects) {
  check_graphs(m, Place("module"));
  return encode_unchecked(m, defects);
}

std::string encode(const Bundle& b) {
  const Place root("bundle"), stages(root, "stages");
  check_structure(b, root);
  for (size_t i = 0; i < b.stages.size(); ++i) check_graphs(b.stages[i].module, Place(Place(stages, i), "module"));
  const Place records(root, "records");
  for (size_t i = 0; i < b.records.size(); ++i) check_graphs(b.records[i], Place(records, i));
  return encode_unchecked(b);
}

std::string encode(const CacheRecord& r) {
  const Place root("record");
  check_structure(r, root);
  check_graphs(r, root);
  return encode_unchecked(r);
}

std::string encode_unchecked(const Module& m, const Defects& defects) {
  Writer w;
  w.defects = defects;
  const auto header = write_header(w, features_of(m));
  const auto module = write_module(w, m, Place("module"));
  return w.finish(wire::CreateModuleFile(w.b, header, module), wire::ModuleFileIdentifier());
}

std::string encode_unchecked(const Bundle& b) {
  const Place root("bundle");
  Writer w;
  BundleWriter parts(w);
  const auto header = write_header(w, features_of(b));
  const auto program = w.string(b.program, Place(root, "program"));
  const auto stages = parts.list(b.stages, Place(root, "stages"), stage_texts().size());
  const auto steps = w.list(b.steps, Place(root, "steps"), limits::kGraphs,
                            [&](const StepList& list, const Place& at) { return write_step_list(w, list, at); });
  const auto options = parts.list(b.options, Place(root, "options"), limits::kRecords);
  const auto digests = parts.list(b.digests, Place(root, "digests"), limits::kRecords);
  const auto ranks = parts.list(b.ranks, Place(root, "ranks"), limits::kRanks);
  const auto artifacts = parts.list(b.artifacts, Place(root, "artifacts"), limits::kRecords);
  const auto records = parts.list(b.records, Place(root, "records"), limits::kRecords);
  return w.finish(wire::CreateBundle(w.b, header, program, stages, steps, options, digests, ranks, artifacts, records),
                  wire::BundleIdentifier());
}

std::string encode_unchecked(const CacheRecord& r) {
  Writer w;
  BundleWriter parts(w);
  const auto header = write_header(w, features_of(r));
  const auto record = parts.write(r, Place("record"));
  return record_file(w.finish(wire::CreateRecordFile(w.b, header, record), wire::RecordFileIdentifier()));
}

}  // namespace fusebox
