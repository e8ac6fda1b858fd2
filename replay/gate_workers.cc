#include "replay/gate_workers.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <list>
#include <optional>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ir/error.h"

namespace fusebox {
namespace {

using Clock = std::chrono::steady_clock;
constexpr off_t kOutputBytes = 4096;

bool receive_all(int from, void* to, size_t bytes) {
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    const ssize_t n = ::recv(from, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, bytes -= static_cast<size_t>(n);
  }
  return true;
}

bool send_all(int to, const void* from, size_t bytes) {
  for (const auto* at = static_cast<const char*>(from); bytes > 0;) {
    const ssize_t n = ::send(to, at, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n, bytes -= static_cast<size_t>(n);
  }
  return true;
}

// Takes numbers of tasks until the other end is closed; answers a length and bytes.
[[noreturn]] void serve(int socket, const std::function<std::string(size_t)>& work) noexcept {
  for (uint64_t task = 0; receive_all(socket, &task, sizeof task);) {
    const std::string answer = work(task);
    const uint64_t size = answer.size();
    if (!send_all(socket, &size, sizeof size) || !send_all(socket, answer.data(), answer.size())) break;
  }
  // Not exit: buffers that were copied from the parent are the parent's to write.
  ::_exit(0);
}

struct Worker {
  pid_t process = -1;
  int socket = -1;
  int output = -1;  // a file in memory that takes what the worker prints
  int64_t served = 0;
  std::optional<size_t> task;
  Clock::time_point began;
  std::string received;
};

std::string cause_of_death(int status) {
  if (!WIFSIGNALED(status)) return fmt::format("exited with code {}", WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const char* name = ::sigabbrev_np(number);
  return name ? fmt::format("killed by SIG{}", name) : fmt::format("killed by signal {}", number);
}

class Pool {
 public:
  Pool(size_t tasks, const WorkerOptions& options, const std::function<std::string(size_t)>& work,
       const std::function<void(WorkerAnswer)>& done)
      : tasks_(tasks), options_(options), work_(work), done_(done) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    std::string ignored;
    for (Worker& w : workers_) bury(w, true, ignored);
  }

  void run() {
    const size_t jobs = std::min(tasks_, static_cast<size_t>(std::max(options_.jobs, 1)));
    while (workers_.size() < jobs) start();
    for (Worker& w : workers_) give(w);
    while (finished_ < tasks_) wait();
  }

 private:
  void start() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) refuse(errno);
    const int output = ::memfd_create("output", MFD_CLOEXEC);
    const pid_t parent = ::getpid();
    const pid_t process = output < 0 ? -1 : ::fork();
    if (process < 0) {
      const int number = errno;
      for (int end : ends) ::close(end);
      if (output >= 0) ::close(output);
      refuse(number);
    }
    if (process == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(0);
      const rlimit none{0, 0};
      ::setrlimit(RLIMIT_CORE, &none);
      // Another's end held here would hide that the other died.
      for (const Worker& w : workers_) ::close(w.socket);
      ::close(ends[0]);
      ::dup2(output, STDOUT_FILENO);
      ::dup2(output, STDERR_FILENO);
      serve(ends[1], work_);
    }
    ::close(ends[1]);
    workers_.push_back({process, ends[0], output, 0, {}, {}, {}});
  }

  [[noreturn]] static void refuse(int number) {
    throw Error(ErrorCode::kOutOfMemory,
                std::string("a worker process cannot be started: ") + std::strerror(number) + "; use fewer jobs", "");
  }

  // The next task, if there is one. A worker that is dead by now is found out by its closed end.
  void give(Worker& w) {
    if (next_ < tasks_) give(w, next_++);
  }
  void give(Worker& w, uint64_t task) {
    w.task = task;
    w.began = Clock::now();
    send_all(w.socket, &task, sizeof task);
  }

  void wait() {
    std::vector<pollfd> ends;
    std::vector<Worker*> waiting;
    auto deadline = Clock::time_point::max();
    for (Worker& w : workers_) {
      if (!w.task) continue;
      ends.push_back({w.socket, POLLIN, 0});
      waiting.push_back(&w);
      deadline = std::min(deadline, w.began + timeout());
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const auto patience = static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
    if (::poll(ends.data(), ends.size(), patience) < 0 && errno != EINTR) refuse(errno);
    for (size_t i = 0; i < waiting.size(); ++i) {
      Worker& w = *waiting[i];
      if (ends[i].revents != 0)
        read(w);
      else if (Clock::now() >= w.began + timeout())
        lose(w, true);
    }
  }

  Clock::duration timeout() const {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(std::clamp(options_.timeout_s, 0.001, 1e6)));
  }

  void read(Worker& w) {
    char buffer[65536];
    const ssize_t n = ::recv(w.socket, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) return lose(w, false);
    w.received.append(buffer, static_cast<size_t>(n));
    uint64_t size = 0;
    if (w.received.size() < sizeof size) return;
    std::memcpy(&size, w.received.data(), sizeof size);
    if (w.received.size() - sizeof size < size) return;
    WorkerAnswer a{*w.task, w.received.substr(sizeof size), {}, {}, seconds(w)};
    w.received.clear();
    w.task.reset();
    ++w.served;
    give(w);
    finish(std::move(a));
  }

  // A worker that died, or has to, and its task.
  void lose(Worker& w, bool too_slow) {
    WorkerAnswer a{*w.task, {}, {}, {}, seconds(w)};
    const int64_t served = w.served;
    const int status = bury(w, too_slow, a.output);
    a.death = too_slow ? fmt::format("took longer than {} s", options_.timeout_s) : cause_of_death(status);
    workers_.remove_if([&](const Worker& other) { return &other == &w; });
    const bool again = !too_slow && served > 0;
    if (again || next_ < tasks_) {
      start();
      again ? give(workers_.back(), a.task) : give(workers_.back());
    }
    if (!again) finish(std::move(a));
  }

  static double seconds(const Worker& w) { return std::chrono::duration<double>(Clock::now() - w.began).count(); }

  void finish(WorkerAnswer a) {
    ++finished_;
    done_(std::move(a));
  }

  // How it ended, by itself unless it is killed, and the end of what it printed.
  static int bury(Worker& w, bool kill, std::string& output) {
    if (kill) ::kill(w.process, SIGKILL);
    ::close(w.socket);
    int status = 0;
    while (::waitpid(w.process, &status, 0) < 0 && errno == EINTR) {
    }
    const off_t size = ::lseek(w.output, 0, SEEK_END);
    output.resize(static_cast<size_t>(std::clamp<off_t>(size, 0, kOutputBytes)));
    const ssize_t n = ::pread(w.output, output.data(), output.size(), size - static_cast<off_t>(output.size()));
    output.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    ::close(w.output);
    return status;
  }

  const size_t tasks_;
  const WorkerOptions& options_;
  const std::function<std::string(size_t)>& work_;
  const std::function<void(WorkerAnswer)>& done_;
  std::list<Worker> workers_;
  size_t next_ = 0;
  size_t finished_ = 0;
};

}  // namespace

void run_in_workers(size_t tasks, const WorkerOptions& options, const std::function<std::string(size_t)>& work,
                    const std::function<void(WorkerAnswer)>& done) {
  Pool(tasks, options, work, done).run();
}

}  // namespace fusebox
