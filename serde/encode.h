// Values to bytes. The same value gives the same bytes everywhere. decode.h gives it back exactly, ids and order
// included.
//
// Throws kInvalidField, kTooLarge or kBadAttribute, with the field as place, where decode would refuse the structure
// (structure.h, bundle.h, limits.h). It does not look at a program's meaning.
//
//   decode_module(bytes_of(encode(m))) == m
#pragma once

#include <string>

#include "ir/module/module.h"
#include "ir/table/defect.h"
#include "serde/bundle.h"

namespace fusebox {

std::string encode(const Module& m, const Defects& defects = {});
std::string encode(const Bundle& b);
// A file of one record: record_file.h's head, then the record.
std::string encode(const CacheRecord& r);

// Without the checks of structure, to make broken files on purpose.
std::string encode_unchecked(const Module& m, const Defects& defects = {});
std::string encode_unchecked(const Bundle& b);
std::string encode_unchecked(const CacheRecord& r);

}  // namespace fusebox
