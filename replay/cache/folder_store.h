// The store of a folder: one file for each record. Any number of processes use one folder at a time.
//
// Invariants: a file is written whole under a private name, flushed and renamed, so a reader never sees half of it. The
// folder belongs to this user, and nobody else may write to it; a file in it that does not is not read. Reading a record
// sets its time of use. Beyond the limit of bytes, writing removes the records that were used least recently; a process
// that reads one of them keeps its contents.
//
//   FolderStore store({.folder = "/home/me/.cache/fusebox"});   // throws kUnsafeFolder
//   for (const StoredFile& f : store.list()) …
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/cache/record_store.h"

namespace fusebox {

inline constexpr int64_t kCacheBytes = int64_t{1} << 30;  // by default

struct FolderStoreOptions {
  std::string folder;
  int64_t limit_bytes = kCacheBytes;
};

struct StoredFile {
  std::string name;
  int64_t bytes = 0;
  int64_t used_ns = 0;  // since the epoch
};

struct Collected {
  int64_t removed = 0, removed_bytes = 0;
  int64_t kept = 0, kept_bytes = 0;
};

class FolderStore : public RecordStore {
 public:
  // Makes the folder if it is missing. Throws kUnsafeFolder; kFileWrite if it cannot be made.
  explicit FolderStore(FolderStoreOptions options);

  std::optional<std::string> read(const std::string& name) override;
  bool write(const std::string& name, std::string_view bytes) override;

  // The records, the one used last first. Other files are left out.
  std::vector<StoredFile> list() const;
  // The bytes, without setting the time of use.
  std::optional<std::string> look(const std::string& name) const;
  bool remove(const std::string& name);
  // Removes records, the least recently used first, until no more than `limit_bytes` remain; and files that a process
  // left behind when it was killed while it wrote.
  Collected collect(int64_t limit_bytes);

  const std::string& folder() const { return options_.folder; }

 private:
  std::string path(const std::string& name) const { return options_.folder + "/" + name; }

  FolderStoreOptions options_;
};

// Throws kUnsafeFolder if another user owns the folder or may write to it.
void check_folder(const std::string& folder);

}  // namespace fusebox
