#include "replay/cache/folder_store.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/table/error.h"
#include "replay/data/file.h"

namespace fusebox {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// A file that is being written is younger.
constexpr int64_t kAbandonedAfter = 600 * kSecond;
constexpr std::string_view kPart = ".part";

int64_t nanoseconds(const timespec& t) { return t.tv_sec * kSecond + t.tv_nsec; }

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return nanoseconds(t);
}

// Nobody else can have written it.
bool is_own(const struct stat& s) { return s.st_uid == geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0; }

bool is_record_name(std::string_view name) { return name.ends_with(".fusion") || name.ends_with(".kernel"); }

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

std::optional<std::string> read_own(const std::string& path, bool sets_time) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  struct stat s{};
  if (file.number < 0 || ::fstat(file.number, &s) != 0 || !S_ISREG(s.st_mode) || !is_own(s)) return std::nullopt;
  std::string bytes(static_cast<size_t>(s.st_size), '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t n = ::read(file.number, bytes.data() + filled, bytes.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    filled += static_cast<size_t>(n);
  }
  // A disk that is read-only keeps its times.
  if (sets_time) (void)::futimens(file.number, nullptr);
  return bytes;
}

}  // namespace

void check_folder(const std::string& folder) {
  struct stat s{};
  if (::stat(folder.c_str(), &s) != 0)
    throw Error(ErrorCode::kFileRead,
                folder + " cannot be read: " + std::strerror(errno) + "; set FUSEBOX_CACHE_DIR to another folder",
                folder);
  if (!S_ISDIR(s.st_mode))
    throw Error(ErrorCode::kUnsafeFolder, "the cache is no folder; set FUSEBOX_CACHE_DIR to one", folder);
  if (s.st_uid != geteuid())
    throw Error(ErrorCode::kUnsafeFolder,
                "the cache folder belongs to another user, who could put code there; set FUSEBOX_CACHE_DIR to a folder "
                "of your own",
                folder);
  if (!is_own(s))
    throw Error(ErrorCode::kUnsafeFolder,
                "other users may write to the cache folder and could put code there; run `chmod go-w` on it", folder);
}

FolderStore::FolderStore(FolderStoreOptions options) : options_(std::move(options)) {
  std::error_code failed;
  const std::filesystem::path folder(options_.folder);
  if (!std::filesystem::exists(folder, failed)) {
    if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), failed);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      throw Error(
          ErrorCode::kFileWrite,
          options_.folder + " cannot be made: " + std::strerror(errno) + "; set FUSEBOX_CACHE_DIR to another folder",
          options_.folder);
  }
  check_folder(options_.folder);
}

std::optional<std::string> FolderStore::read(const std::string& name) { return read_own(path(name), true); }
std::optional<std::string> FolderStore::look(const std::string& name) const { return read_own(path(name), false); }

bool FolderStore::write(const std::string& name, std::string_view bytes) {
  bool is_written = static_cast<int64_t>(bytes.size()) <= options_.limit_bytes;
  try {
    if (is_written) write_file(path(name), bytes);
  } catch (const Error&) {
    is_written = false;
  }
  // The new record is used now, so another one goes first.
  collect(options_.limit_bytes);
  return is_written;
}

std::vector<StoredFile> FolderStore::list() const {
  std::vector<StoredFile> files;
  DIR* const folder = ::opendir(options_.folder.c_str());
  if (folder == nullptr) return files;
  while (const dirent* entry = ::readdir(folder)) {
    struct stat s{};
    if (!is_record_name(entry->d_name) || ::fstatat(::dirfd(folder), entry->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(s.st_mode))
      continue;
    files.push_back({entry->d_name, s.st_size, nanoseconds(s.st_mtim)});
  }
  ::closedir(folder);
  std::ranges::sort(files, [](const StoredFile& a, const StoredFile& b) {
    return a.used_ns != b.used_ns ? a.used_ns > b.used_ns : a.name < b.name;
  });
  return files;
}

bool FolderStore::remove(const std::string& name) { return ::unlink(path(name).c_str()) == 0; }

Collected FolderStore::collect(int64_t limit_bytes) {
  Collected result;
  for (const StoredFile& f : list()) {
    // Once the limit is reached, all that was used less recently goes, whatever its size.
    if (result.removed == 0 && result.kept_bytes + f.bytes <= limit_bytes) {
      ++result.kept;
      result.kept_bytes += f.bytes;
    } else if (remove(f.name)) {
      ++result.removed;
      result.removed_bytes += f.bytes;
    }
  }
  if (DIR* const folder = ::opendir(options_.folder.c_str())) {
    const int64_t now = now_ns();
    while (const dirent* entry = ::readdir(folder)) {
      struct stat s{};
      if (std::string_view(entry->d_name).ends_with(kPart) &&
          ::fstatat(::dirfd(folder), entry->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 &&
          now - nanoseconds(s.st_mtim) > kAbandonedAfter)
        (void)::unlinkat(::dirfd(folder), entry->d_name, 0);
    }
    ::closedir(folder);
  }
  return result;
}

}  // namespace fusebox
