// Keeps a campaign's folder for one process at a time, so that no campaign writes over the state of another one.
//
//   const FolderLock lock("found");    // throws kUsage if another campaign runs there
#pragma once

#include <string>

namespace fusebox::fuzz {

// The system gives the folder free when the object and the forked children of its process have ended, however they end.
// Where the file system has no locks, nothing is locked.
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
