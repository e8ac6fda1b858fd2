// Launch records and input signatures as bytes, and their digests. The same value gives the same bytes everywhere.
//
// `encode` throws kInvalidField or kTooLarge where `decode_…` would refuse the value. `decode_…` throws those, kNotABundle for
// other bytes, kDamagedBundle for damaged ones. A decoded record keeps the invariants of launch_record.h, so the machine can run
// it.
//
//   decode_launch_record(bytes_of(encode(record))) == record
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ir/canonical/digest.h"
#include "ir/module/input_signature.h"
#include "ir/module/launch_record.h"

namespace fusebox {

std::string encode(const LaunchRecord& record);
std::string encode(const InputSignature& signature);
LaunchRecord decode_launch_record(std::span<const uint8_t> bytes);
InputSignature decode_signature(std::span<const uint8_t> bytes);

// The digest of the encoded bytes.
Digest digest(const LaunchRecord& record);
Digest digest(const InputSignature& signature);

}  // namespace fusebox
