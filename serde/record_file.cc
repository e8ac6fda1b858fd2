#include "serde/record_file.h"

#include <algorithm>
#include <cstring>

#include "ir/canonical/digest.h"
#include "ir/table/error.h"
#include "serde/decode.h"

namespace fusebox {
namespace {

constexpr std::string_view kMagic = "FUSEREC\n";

// 32 bytes, so that the payload keeps FlatBuffers' alignment.
struct Head {
  char magic[8] = {};
  uint32_t version = kRecordVersion;
  uint32_t unused = 0;
  uint64_t low = 0, high = 0;
};
static_assert(sizeof(Head) == 32);

}  // namespace

bool is_record(std::span<const uint8_t> bytes) {
  return bytes.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), bytes.begin());
}

std::string record_file(std::string_view payload) {
  const Digest sum = digest_bytes(payload);
  Head head;
  std::copy(kMagic.begin(), kMagic.end(), head.magic);
  head.low = sum.low;
  head.high = sum.high;
  std::string file(sizeof head, '\0');
  std::memcpy(file.data(), &head, sizeof head);
  return file.append(payload);
}

std::span<const uint8_t> record_payload(std::span<const uint8_t> bytes, const Defects& defects) {
  if (!is_record(bytes))
    throw Error(ErrorCode::kNotABundle, "the bytes do not begin as a record of a cache does", "record");
  if (bytes.size() < sizeof(Head))
    throw Error(ErrorCode::kDamagedBundle, "the record is cut short; remove it", "record");
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.version != kRecordVersion && !defects.has(Defect::kRecordVersion))
    throw Error(head.version > kRecordVersion ? ErrorCode::kNewerVersion : ErrorCode::kInvalidField,
                "the record has format " + std::to_string(head.version) + ", and this version reads format " +
                    std::to_string(kRecordVersion) + "; remove it, or read it with its own version",
                "record.version");
  const auto payload = bytes.subspan(sizeof head);
  const Digest sum = digest_bytes(payload.data(), payload.size());
  if ((head.unused != 0 || sum != Digest{head.low, head.high}) && !defects.has(Defect::kRecordUnchecked))
    throw Error(ErrorCode::kDamagedBundle, "the record's checksum differs; remove it", "record");
  return payload;
}

}  // namespace fusebox
