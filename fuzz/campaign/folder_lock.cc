#include "fuzz/campaign/folder_lock.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

#include "ir/table/error.h"

namespace fusebox::fuzz {

FolderLock::FolderLock(const std::string& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  // The workers of a campaign that was killed may need a moment to end.
  constexpr int kTries = 20;
  constexpr auto kPause = std::chrono::milliseconds(50);
  for (int i = 0; descriptor_ >= 0 && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; ++i) {
    if (i == kTries) {
      ::close(descriptor_);
      throw Error(ErrorCode::kUsage,
                  "another process runs a campaign in this folder; wait for its end, or give another folder", folder);
    }
    std::this_thread::sleep_for(kPause);
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace fusebox::fuzz
