// Bytes to values: the one gate for bytes that anyone may have made. It takes any bytes. It returns a value that all
// code may use, or throws an Error whose place is the field (`module.graphs[0].ops[3].kind`):
//
//   kNotABundle     another kind of file
//   kNewerVersion   the file needs a feature that this library lacks; the message names it
//   kDamagedBundle  FlatBuffers' Verifier refused
//   kTooLarge       a limit of limits.h
//   kInvalidField   a field is missing, out of range, or contradicts another
//   any error of ir/verify/verify.h, for a program in the file, with a place such as `module.graphs[0] %x`
//
// Memory stays within 64 times the input and 1 MiB. Time is linear in the input, up to the verifier of programs.
//
//   Module m = decode_module(bytes_of(encode(m0)));   // m == m0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/module/module.h"
#include "ir/table/defect.h"
#include "serde/bundle.h"

namespace fusebox {

inline std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Module decode_module(std::span<const uint8_t> bytes, const Defects& defects = {});
Bundle decode_bundle(std::span<const uint8_t> bytes);
// Also throws kDamagedBundle if the checksum differs, and kNewerVersion or kInvalidField for another version's file.
CacheRecord decode_record(std::span<const uint8_t> bytes, const Defects& defects = {});

// Whether the bytes claim to be what encode writes of a module, a bundle or a record. Looks at eight bytes.
bool is_module(std::span<const uint8_t> bytes);
bool is_bundle(std::span<const uint8_t> bytes);
bool is_record(std::span<const uint8_t> bytes);

// The same without the meaning of programs and steps, for tests and for tools that look at broken programs.
Module decode_module_structure(std::span<const uint8_t> bytes, const Defects& defects = {});
Bundle decode_bundle_structure(std::span<const uint8_t> bytes);
CacheRecord decode_record_structure(std::span<const uint8_t> bytes, const Defects& defects = {});

}  // namespace fusebox
