// Five phases, each on what passed the one before: FlatBuffers' Verifier, header, fields, structure, meaning.
#include "serde/decode.h"

#include <algorithm>

#include "serde/bundle_generated.h"
#include "serde/features.h"
#include "serde/launch_parts.h"
#include "serde/reader.h"
#include "serde/record_file.h"
#include "serde/semantics.h"
#include "serde/structure.h"

namespace fusebox {
namespace {

constexpr size_t kSmallestFile = 8;  // the root's offset and the identifier

bool has_identifier(std::span<const uint8_t> bytes, const char* identifier) {
  return bytes.size() >= kSmallestFile && std::equal(identifier, identifier + 4, bytes.begin() + 4);
}

// FlatBuffers reads numbers where they lie, so the bytes need the alignment that they were written with.
class Aligned {
 public:
  explicit Aligned(std::span<const uint8_t> bytes) : bytes_(bytes) {
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t) == 0) return;
    words_.resize((bytes.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t));
    std::memcpy(words_.data(), bytes.data(), bytes.size());
    bytes_ = {reinterpret_cast<const uint8_t*>(words_.data()), bytes.size()};
  }
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::span<const uint8_t> bytes_;
  std::vector<uint64_t> words_;
};

template <class Root>
const Root& verified_root(std::span<const uint8_t> bytes, const char* identifier, const Place& place) {
  if (!has_identifier(bytes, identifier))
    throw Error(ErrorCode::kNotABundle, std::string("the bytes do not begin as a file of kind ") + identifier + " does",
                place.text());
  Reader::at_most(bytes.size(), limits::kFileBytes, place);
  flatbuffers::Verifier::Options options;
  // A table and the offset to it take at least 8 bytes where nothing is shared.
  options.max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / 8 + 1);
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), options);
  if (!verifier.VerifyBuffer<Root>(identifier))
    throw Error(ErrorCode::kDamagedBundle, "the bytes do not verify; the file is damaged or cut short", place.text());
  return *flatbuffers::GetRoot<Root>(bytes.data());
}

void check_features(uint64_t used, uint64_t declared, const Place& place) {
  if (used & ~declared)
    invalid_field(Place(Place(place, "header"), "features"), "the file uses a feature that its header does not name");
}

Digest read_digest(const wire::Digest& from) { return {from.low(), from.high()}; }

class BundleReader {
 public:
  explicit BundleReader(Reader& reader) : reader_(reader) {}

  Bundle read(const wire::Bundle& from, const Place& at) {
    Bundle b;
    b.program = reader_.string(from.program(), Place(at, "program"));
    b.stages = list<StageRecord>(from.stages(), Place(at, "stages"), stage_texts().size());
    b.steps = reader_.list<StepList>(
        from.steps(), Place(at, "steps"), limits::kGraphs,
        [&](const wire::StepList& steps, const Place& there) { return read_step_list(reader_, steps, there); });
    b.options = list<KeyValue>(from.options(), Place(at, "options"), limits::kRecords);
    b.digests = list<StageDigest>(from.digests(), Place(at, "digests"), limits::kRecords);
    b.ranks = list<Rank>(from.ranks(), Place(at, "ranks"), limits::kRanks);
    b.artifacts = list<Artifact>(from.artifacts(), Place(at, "artifacts"), limits::kRecords);
    b.records = list<CacheRecord>(from.records(), Place(at, "records"), limits::kRecords);
    return b;
  }

  void read(const wire::CacheRecord& from, CacheRecord& to, const Place& at) {
    to.key = list<KeyPart>(from.key(), Place(at, "key"), limits::kRecords);
    if (from.compiled()) read(*from.compiled(), to.compiled.emplace(), Place(at, "compiled"));
    if (from.image()) read(*from.image(), to.image.emplace(), Place(at, "image"));
  }

 private:
  template <class T, class Table>
  std::vector<T> list(const flatbuffers::Vector<flatbuffers::Offset<Table>>* from, const Place& place, size_t limit) {
    return reader_.list<T>(from, place, limit, [&](const Table& table, const Place& at) {
      T item;
      read(table, item, at);
      return item;
    });
  }

  std::vector<uint8_t> bytes(const flatbuffers::Vector<uint8_t>& from, const Place& place) {
    reader_.take(from.size(), 1, place);
    return {from.begin(), from.end()};
  }

  void read(const wire::StageRecord& from, StageRecord& to, const Place& at) {
    const Place stage(at, "stage");
    const uint16_t number = Reader::present(from.stage(), stage);
    if (number >= stage_texts().size()) invalid_field(stage, std::to_string(number) + " is no stage");
    to.stage = static_cast<Stage>(number);
    to.module = read_module(reader_, *from.module_(), Place(at, "module"));
  }

  void read(const wire::KeyValue& from, KeyValue& to, const Place& at) {
    to.key = reader_.string(from.key(), Place(at, "key"));
    to.value = reader_.string(from.value(), Place(at, "value"), limits::kTextBytes);
  }

  void read(const wire::StageDigest& from, StageDigest& to, const Place& at) {
    to.name = reader_.string(from.name(), Place(at, "name"));
    to.digest = read_digest(*from.digest());
  }

  void read(const wire::InputRecord& from, InputRecord& to, const Place& at) {
    to.spec = read_input_spec(reader_, *from.spec(), Place(at, "spec"));
    if (from.bytes()) to.bytes = bytes(*from.bytes(), Place(at, "bytes"));
  }

  void read(const wire::OutputRecord& from, OutputRecord& to, const Place& at) {
    to.name = reader_.string(from.name(), Place(at, "name"));
    to.dtype = reader_.row<Dtype>(from.dtype(), Place(at, "dtype"));
    to.shape = reader_.integers(from.shape(), Place(at, "shape"), limits::kAxes);
    to.strides = reader_.integers(from.strides(), Place(at, "strides"), limits::kAxes);
    to.digest = read_digest(*from.digest());
  }

  void read(const wire::Failure& from, Failure& to, const Place& at) {
    to.code = static_cast<ErrorCode>(Reader::present(from.code(), Place(at, "code")));
    to.message = reader_.string(from.message(), Place(at, "message"), limits::kTextBytes);
    to.place = reader_.string(from.place(), Place(at, "place"), limits::kTextBytes);
  }

  void read(const wire::CrossingLayout& from, CrossingLayout& to, const Place& at) {
    to.segment = reader_.string(from.segment(), Place(at, "segment"));
    to.value = reader_.string(from.value(), Place(at, "value"));
    to.dtype = reader_.row<Dtype>(from.dtype(), Place(at, "dtype"));
    to.shape = reader_.integers(from.shape(), Place(at, "shape"), limits::kAxes);
    to.strides = reader_.integers(from.strides(), Place(at, "strides"), limits::kAxes);
  }

  void read(const wire::Rank& from, Rank& to, const Place& at) {
    to.executor = reader_.string(from.executor(), Place(at, "executor"));
    to.inputs = list<InputRecord>(from.inputs(), Place(at, "inputs"), limits::kRecords);
    to.outputs = list<OutputRecord>(from.outputs(), Place(at, "outputs"), limits::kRecords);
    if (from.failure()) read(*from.failure(), to.failure.emplace(), Place(at, "failure"));
    to.crossings = list<CrossingLayout>(from.crossings(), Place(at, "crossings"), limits::kNodes);
    to.environment = list<KeyValue>(from.environment(), Place(at, "environment"), limits::kRecords);
  }

  void read(const wire::Artifact& from, Artifact& to, const Place& at) {
    to.kernel = reader_.string(from.kernel(), Place(at, "kernel"));
    to.architecture = reader_.string(from.architecture(), Place(at, "architecture"));
    to.cuda = reader_.string(from.cuda(), Place(at, "cuda"), limits::kFileBytes);
    if (from.binary()) to.binary = bytes(*from.binary(), Place(at, "binary"));
  }

  void read(const wire::KeyPart& from, KeyPart& to, const Place& at) {
    to.name = reader_.string(from.name(), Place(at, "name"));
    if (from.bytes()) to.bytes = bytes(*from.bytes(), Place(at, "bytes"));
  }

  void read(const wire::DigestEntry& from, Digest& to, const Place&) { to = read_digest(*from.digest()); }

  void read(const wire::KernelImage& from, KernelImage& to, const Place& at) {
    to.kernel = read_digest(*from.kernel());
    to.source = read_digest(*from.source());
    to.entry = reader_.string(from.entry(), Place(at, "entry"));
    to.architecture = reader_.string(from.architecture(), Place(at, "architecture"));
    to.options = reader_.string(from.options(), Place(at, "options"), limits::kTextBytes);
    to.compiler = reader_.string(from.compiler(), Place(at, "compiler"));
    to.numerics = from.numerics();
    to.registers = from.registers();
    to.local_bytes = from.local_bytes();
    to.shared_bytes = from.shared_bytes();
    if (from.binary()) to.binary = bytes(*from.binary(), Place(at, "binary"));
    to.is_cooperative = from.is_cooperative();
    to.opts_in_shared = from.opts_in_shared();
    to.is_dependent = from.is_dependent();
  }

  void read(const wire::CompiledFusion& from, CompiledFusion& to, const Place& at) {
    to.program = read_module(reader_, *from.program(), Place(at, "program"));
    to.scheduled = read_module(reader_, *from.scheduled(), Place(at, "scheduled"));
    to.code = read_module(reader_, *from.code(), Place(at, "code"));
    to.plans = list<Digest>(from.plans(), Place(at, "plans"), limits::kNodes);
    to.index_bits = Reader::present(from.index_bits(), Place(at, "index_bits"));
    to.images = list<KernelImage>(from.images(), Place(at, "images"), limits::kRecords);
    if (from.signature()) to.signature = read_signature(reader_, *from.signature(), Place(at, "signature"));
    if (from.launch()) to.launch = read_launch(reader_, *from.launch(), Place(at, "launch"));
  }

  Reader& reader_;
};

}  // namespace

bool is_module(std::span<const uint8_t> bytes) { return has_identifier(bytes, wire::ModuleFileIdentifier()); }
bool is_bundle(std::span<const uint8_t> bytes) { return has_identifier(bytes, wire::BundleIdentifier()); }

Module decode_module_structure(std::span<const uint8_t> bytes, const Defects& defects) {
  const Place root("module");
  const Aligned aligned(bytes);
  const auto& file = verified_root<wire::ModuleFile>(aligned.bytes(), wire::ModuleFileIdentifier(), root);
  const uint64_t features = check_header(*file.header(), Place(root, "header"));
  Reader reader(bytes.size(), defects);
  Module m = read_module(reader, *file.module_(), root);
  check_features(features_of(m), features, root);
  return m;
}

Bundle decode_bundle_structure(std::span<const uint8_t> bytes) {
  const Place root("bundle");
  const Aligned aligned(bytes);
  const auto& file = verified_root<wire::Bundle>(aligned.bytes(), wire::BundleIdentifier(), root);
  const uint64_t features = check_header(*file.header(), Place(root, "header"));
  Reader reader(bytes.size());
  Bundle b = BundleReader(reader).read(file, root);
  check_structure(b, root);
  check_features(features_of(b), features, root);
  return b;
}

CacheRecord decode_record_structure(std::span<const uint8_t> bytes, const Defects& defects) {
  const Place root("record");
  const Aligned aligned(record_payload(bytes, defects));
  const auto& file = verified_root<wire::RecordFile>(aligned.bytes(), wire::RecordFileIdentifier(), root);
  const uint64_t features = check_header(*file.header(), Place(root, "header"));
  Reader reader(bytes.size());
  CacheRecord r;
  BundleReader(reader).read(*file.record(), r, root);
  check_structure(r, root);
  check_features(features_of(r), features, root);
  return r;
}

Module decode_module(std::span<const uint8_t> bytes, const Defects& defects) {
  Module m = decode_module_structure(bytes, defects);
  check_meaning(m, Place("module"));
  return m;
}

Bundle decode_bundle(std::span<const uint8_t> bytes) {
  Bundle b = decode_bundle_structure(bytes);
  check_meaning(b, Place("bundle"));
  return b;
}

CacheRecord decode_record(std::span<const uint8_t> bytes, const Defects& defects) {
  CacheRecord r = decode_record_structure(bytes, defects);
  check_meaning(r, Place("record"));
  return r;
}

}  // namespace fusebox
