// Compiled fusions in a bundle: what an application ships with, so that its users compile nothing.
//
// Invariants: an import lowers each schedule again, and refuses a record whose kernels or host program are not what its
// schedule gives. So foreign bytes bring in no kernel that this version would not make. It refuses a record whose program
// is not made of its key's fusion, if the key has no schedule. The binaries of a bundle are not loaded: they are compiled
// again from the kernels, unless the caller trusts them.
//
//   write_file("app.fuse", encode(pack(records)));
//   for (const Unpacked& u : unpack(decode_bundle(bytes), store)) …
#pragma once

#include <string>
#include <vector>

#include "replay/cache/record_store.h"
#include "serde/bundle.h"

namespace fusebox {

// The records of fusions, and the fusions themselves, one of each name. Records of kernels are left out: a fusion's record
// has the binaries of its kernels.
Bundle pack(std::vector<CacheRecord> records);

struct UnpackOptions {
  bool trust_binaries = false;  // load them as they are
};
struct Unpacked {
  std::string program, target;
  std::string skipped;  // why; empty: it is in the store now
  int64_t kernels = 0;
  int64_t compiled = 0;  // binaries that were compiled again
};
// Throws kInvalidField for a record that contradicts itself; kCompileFailure, kModuleMissing if a kernel cannot be
// compiled; kFileWrite if the store takes no record.
std::vector<Unpacked> unpack(const Bundle& bundle, RecordStore& store, const UnpackOptions& options = {});

}  // namespace fusebox
