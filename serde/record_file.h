// The head of a file of one record: eight bytes of magic, the version of the format, four zero bytes, and the XXH3-128
// of all that follows. It comes before FlatBuffers looks at anything, so a torn or damaged record costs one hash.
//
//   record_payload(bytes_of(record_file(payload)))   // payload
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/table/defect.h"

namespace fusebox {

// Grows when records of an older version would be misread, or when the same key would mean another plan.
inline constexpr uint32_t kRecordVersion = 2;

std::string record_file(std::string_view payload);
// Throws kNotABundle, kNewerVersion, kInvalidField (an older version), kDamagedBundle (another checksum).
std::span<const uint8_t> record_payload(std::span<const uint8_t> bytes, const Defects& defects = {});

}  // namespace fusebox
