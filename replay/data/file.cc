#include "replay/data/file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/table/error.h"

namespace fusebox {
namespace {

[[noreturn]] void fail(ErrorCode code, const std::string& path, const char* verb, int number) {
  throw Error(code, path + " cannot be " + verb + ": " + std::strerror(number) + "; check the path and its rights",
              path);
}

struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

// Returns 0 or errno.
int write_all(int to, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(to, bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return 0;
}

template <class Container>
Container read_into(const std::string& path, size_t limit_bytes) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.number < 0) fail(ErrorCode::kFileRead, path, "read", errno);
  struct stat status{};
  if (::fstat(file.number, &status) != 0) fail(ErrorCode::kFileRead, path, "read", errno);
  if (S_ISDIR(status.st_mode)) fail(ErrorCode::kFileRead, path, "read", EISDIR);
  Container contents;
  // A pipe has no size, so the buffer grows with its contents.
  size_t filled = 0;
  contents.resize(S_ISREG(status.st_mode) ? std::min(static_cast<size_t>(status.st_size) + 1, limit_bytes + 1) : 65536);
  for (;;) {
    if (filled == contents.size()) contents.resize(std::min(2 * contents.size(), limit_bytes + 1));
    const ssize_t n = ::read(file.number, contents.data() + filled, contents.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorCode::kFileRead, path, "read", errno);
    if (n == 0) break;
    filled += static_cast<size_t>(n);
    if (filled > limit_bytes)
      throw Error(ErrorCode::kTooLarge,
                  path + " is larger than the " + std::to_string(limit_bytes) + " bytes that are read; make it smaller",
                  path);
  }
  contents.resize(filled);
  return contents;
}

// The end of a chain of links. It need not exist. An open file of this process, such as /dev/stdout, is no link here: it
// is given as its number.
struct Target {
  std::string path;
  int open_file = -1;
};

Target target_of(const std::string& path) {
  constexpr int kMostLinks = 40;
  namespace fs = std::filesystem;
  const fs::path open_files = "/proc/" + std::to_string(::getpid()) + "/fd";
  Target target{path};
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code error;
    const fs::path at = target.path;
    const fs::path link = fs::read_symlink(at, error);
    if (error) break;
    if (fs::canonical(at.parent_path().empty() ? "." : at.parent_path(), error) == open_files && !error) {
      target.open_file = std::atoi(at.filename().c_str());
      break;
    }
    target.path = at.parent_path() / link;
  }
  return target;
}

}  // namespace

std::vector<std::byte> read_file(const std::string& path, size_t limit_bytes) {
  return read_into<std::vector<std::byte>>(path, limit_bytes);
}
std::string read_text_file(const std::string& path, size_t limit_bytes) {
  return read_into<std::string>(path, limit_bytes);
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  const Target target = target_of(path);
  struct stat status{};
  const bool is_open = target.open_file >= 0;
  if (is_open || (::stat(target.path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))) {
    // A second opening of a file would write over what the first has written.
    const Descriptor device{is_open ? ::fcntl(target.open_file, F_DUPFD_CLOEXEC, 0)
                                    : ::open(target.path.c_str(), O_WRONLY | O_CLOEXEC)};
    if (device.number < 0) fail(ErrorCode::kFileWrite, path, "written", errno);
    if (const int error = write_all(device.number, bytes)) fail(ErrorCode::kFileWrite, path, "written", error);
    return;
  }
  // The random number keeps it apart from a file that a process of the same number left behind when it was killed.
  static const uint64_t drawn = std::random_device()();
  static std::atomic<uint64_t> serial{0};
  const std::string own = target.path + "." + std::to_string(::getpid()) + "." + std::to_string(drawn) + "." +
                          std::to_string(serial.fetch_add(1)) + ".part";
  int error = 0;
  {
    Descriptor file{::open(own.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
    if (file.number < 0) fail(ErrorCode::kFileWrite, path, "written", errno);
    error = write_all(file.number, bytes);
    if (error == 0 && ::fsync(file.number) != 0) error = errno;
    // Some file systems report a full disk only here.
    if (::close(file.number) != 0 && error == 0) error = errno;
    file.number = -1;
  }
  if (error == 0 && ::rename(own.c_str(), target.path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(own.c_str());
    fail(ErrorCode::kFileWrite, path, "written", error);
  }
}

void write_file(const std::string& path, std::string_view text) { write_file(path, std::as_bytes(std::span(text))); }

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(ErrorCode::kFileWrite, path, "made", error.value());
}

}  // namespace fusebox
