// Keeps a campaign's folder for one process at a time, so that no campaign writes over the state of another one.
//
//   const FolderLock lock("found");    // throws kUsage if another campaign runs there
#pragma once

#include <string>

namespace fusebox::fuzz {

// The lock lasts until the object and the process's forked children have ended. The system releases it even if they were
// killed. Nothing is locked where the file system has no locks.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace fusebox::fuzz
