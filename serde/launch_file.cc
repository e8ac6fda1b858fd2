#include "serde/launch_file.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "serde/features.h"
#include "serde/launch_parts.h"

namespace fusebox {
namespace {

std::string finish(Writer& w, flatbuffers::Offset<wire::Header> header, flatbuffers::Offset<wire::LaunchRecord> record,
                   flatbuffers::Offset<wire::InputSignature> signature) {
  return w.finish(wire::CreateLaunchFile(w.b, header, record, signature), wire::LaunchFileIdentifier());
}

// The bytes with the alignment that they were written with, verified, with a header that this version reads.
class File {
 public:
  File(std::span<const uint8_t> bytes, const Place& place) : words_((bytes.size() + 7) / 8) {
    const char* const identifier = wire::LaunchFileIdentifier();
    if (bytes.size() < 8 || !std::equal(identifier, identifier + 4, bytes.begin() + 4))
      throw Error(ErrorCode::kNotABundle,
                  std::string("the bytes do not begin as a file of kind ") + identifier + " does", place.text());
    Reader::at_most(bytes.size(), limits::kFileBytes, place);
    std::memcpy(words_.data(), bytes.data(), bytes.size());
    const auto* data = reinterpret_cast<const uint8_t*>(words_.data());
    flatbuffers::Verifier::Options options;
    options.max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / 8 + 1);
    flatbuffers::Verifier verifier(data, bytes.size(), options);
    if (!verifier.VerifyBuffer<wire::LaunchFile>(identifier))
      throw Error(ErrorCode::kDamagedBundle, "the bytes do not verify; the file is damaged or cut short", place.text());
    root_ = flatbuffers::GetRoot<wire::LaunchFile>(data);
    check_header(*root_->header(), Place(place, "header"));
  }
  const wire::LaunchFile& root() const { return *root_; }

 private:
  std::vector<uint64_t> words_;
  const wire::LaunchFile* root_ = nullptr;
};

// The value that `read` reads from a file's root. Its structure is checked.
template <class Read>
auto decoded(std::span<const uint8_t> bytes, const Place& at, Read&& read) {
  const File file(bytes, at);
  Reader reader(bytes.size());
  auto value = read(reader, file.root(), at);
  check_structure(value, at);
  return value;
}

}  // namespace

std::string encode(const LaunchRecord& record) {
  const Place root("launch");
  check_structure(record, root);
  Writer w;
  const auto header = write_header(w, 0);
  return finish(w, header, write_launch(w, record, root), 0);
}

std::string encode(const InputSignature& signature) {
  const Place root("signature");
  check_structure(signature, root);
  Writer w;
  const auto header = write_header(w, 0);
  return finish(w, header, 0, write_signature(w, signature, root));
}

LaunchRecord decode_launch_record(std::span<const uint8_t> bytes) {
  return decoded(bytes, Place("launch"), [](Reader& reader, const wire::LaunchFile& file, const Place& at) {
    return read_launch(reader, Reader::present(file.record(), at), at);
  });
}

InputSignature decode_signature(std::span<const uint8_t> bytes) {
  return decoded(bytes, Place("signature"), [](Reader& reader, const wire::LaunchFile& file, const Place& at) {
    return read_signature(reader, Reader::present(file.signature(), at), at);
  });
}

Digest digest(const LaunchRecord& record) { return digest_bytes(encode(record)); }
Digest digest(const InputSignature& signature) { return digest_bytes(encode(signature)); }

}  // namespace fusebox
