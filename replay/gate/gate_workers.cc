#include "replay/gate/gate_workers.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <list>
#include <new>
#include <optional>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "ir/table/error.h"

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

// A message is its length and its bytes. The length's top bit says that another message follows.
constexpr uint64_t kPart = uint64_t{1} << 63;

bool send_text(int to, const std::string& text, uint64_t flags = 0) {
  const uint64_t size = text.size() | flags;
  return send_all(to, &size, sizeof size) && send_all(to, text.data(), text.size());
}

bool receive_text(int from, std::string& text) {
  uint64_t size = 0;
  if (!receive_all(from, &size, sizeof size)) return false;
  text.resize(size);
  return receive_all(from, text.data(), size);
}

// The longest wait for the end of a worker that was killed or closed its socket.
constexpr auto kBurial = std::chrono::seconds(5);
constexpr auto kLongestPause = std::chrono::microseconds(10'000);

// The exit status of a worker whose memory ran out.
constexpr int kMemoryExit = 77;

// Takes tasks until the other end is closed, and answers each with one or several messages.
[[noreturn]] void serve(int socket, const WorkerCalls& calls, WorkerNote& note) noexcept {
  const WorkerTell tell = [&](const std::string& part) {
    if (!send_text(socket, part, kPart)) ::_exit(0);
  };
  const auto work = [&](const std::string& request) {
    return calls.work_in_parts ? calls.work_in_parts(request, note, tell) : calls.work(request, note);
  };
  try {
    for (std::string request; receive_text(socket, request);)
      if (!send_text(socket, work(request))) break;
  } catch (const std::bad_alloc&) {
    ::_exit(kMemoryExit);
  }
  // Not exit(): it would write buffers that were copied from the parent.
  ::_exit(0);
}

struct Task {
  uint64_t number = 0;
  std::string request;
};

struct Worker {
  pid_t process = -1;
  int socket = -1;
  int output = -1;  // a file in memory for the worker's printed text
  WorkerNote* note = nullptr;
  int64_t served = 0;
  bool is_fresh = false;
  std::optional<Task> task;
  Clock::time_point began;   // the task
  Clock::time_point beaten;  // the last beat seen, or the beginning
  uint64_t beats = 0;
  std::string received;
};

// A sanitizer's own memory would use up a limit on memory.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kLimitsMemory = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kLimitsMemory = false;
#else
constexpr bool kLimitsMemory = true;
#endif
#else
constexpr bool kLimitsMemory = true;
#endif

std::string cause_of_death(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kMemoryExit) return "ran out of memory";
  if (!WIFSIGNALED(status)) return fmt::format("exited with code {}", WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const char* name = ::sigabbrev_np(number);
  return name ? fmt::format("killed by SIG{}", name) : fmt::format("killed by signal {}", number);
}

class Pool {
 public:
  Pool(const WorkerOptions& options, const WorkerCalls& calls) : options_(options), calls_(calls) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    std::string ignored;
    for (Worker& w : workers_) bury(w, true, ignored);
  }

  void run() {
    for (;;) {
      hand_out();
      const bool busy =
          std::any_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.task.has_value(); });
      if (!busy || order_ == WorkerOrder::kGiveUp) return;
      wait();
      if (calls_.tick) obey(calls_.tick());
    }
  }

 private:
  void hand_out() {
    const auto fresh = static_cast<size_t>(
        std::count_if(workers_.begin(), workers_.end(), [](const Worker& w) { return w.is_fresh; }));
    if (calls_.next_fresh && fresh == 0)
      if (std::optional<std::string> request = calls_.next_fresh()) {
        Worker& w = start();
        w.is_fresh = true;
        give(w, {given_++, *std::move(request)});
        return hand_out();
      }
    const size_t jobs = static_cast<size_t>(std::max(options_.jobs, 1)) + fresh;
    for (;;) {
      auto idle = std::find_if(workers_.begin(), workers_.end(), [](const Worker& w) { return !w.task; });
      if (idle == workers_.end() && workers_.size() >= jobs) return;
      std::optional<std::string> request = calls_.next();
      if (!request) return;
      Worker& w = idle == workers_.end() ? start() : *idle;
      give(w, {given_++, *std::move(request)});
    }
  }

  void obey(WorkerOrder order) {
    if (order == WorkerOrder::kFinish && order_ == WorkerOrder::kGoOn) {
      for (Worker& w : workers_) w.note->stop = true;
      ordered_ = Clock::now();
    }
    order_ = std::max(order_, order);
  }

  Worker& start() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) refuse(errno);
    const int output = ::memfd_create("output", MFD_CLOEXEC);
    void* page = ::mmap(nullptr, sizeof(WorkerNote), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const pid_t parent = ::getpid();
    // A worker would print the unwritten text of this process again.
    std::fflush(stdout);
    const pid_t process = output < 0 || page == MAP_FAILED ? -1 : ::fork();
    if (process < 0) {
      const int number = errno;
      for (int end : ends) ::close(end);
      if (output >= 0) ::close(output);
      if (page != MAP_FAILED) ::munmap(page, sizeof(WorkerNote));
      refuse(number);
    }
    auto* note = new (page) WorkerNote;
    note->stop = order_ != WorkerOrder::kGoOn;
    if (process == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(0);
      // A key that stops the parent reaches its children too; the parent decides about them.
      ::signal(SIGINT, SIG_IGN);
      const rlimit none{0, 0};
      ::setrlimit(RLIMIT_CORE, &none);
      if (kLimitsMemory && options_.memory_bytes > 0) {
        const rlimit memory{static_cast<rlim_t>(options_.memory_bytes), static_cast<rlim_t>(options_.memory_bytes)};
        ::setrlimit(RLIMIT_DATA, &memory);
      }
      // An open copy of another worker's end would hide that worker's death.
      for (const Worker& w : workers_) ::close(w.socket);
      ::close(ends[0]);
      ::dup2(output, STDOUT_FILENO);
      ::dup2(output, STDERR_FILENO);
      serve(ends[1], calls_, *note);
    }
    ::close(ends[1]);
    Worker w;
    w.process = process, w.socket = ends[0], w.output = output, w.note = note;
    return workers_.emplace_back(std::move(w));
  }

  [[noreturn]] static void refuse(int number) {
    throw Error(ErrorCode::kOutOfMemory,
                std::string("a worker process cannot be started: ") + std::strerror(number) + "; use fewer jobs", "");
  }

  // If the worker is dead already, its closed end will show it.
  static void give(Worker& w, Task task) {
    w.began = w.beaten = Clock::now();
    w.beats = w.note->beats;
    send_text(w.socket, task.request);
    w.task = std::move(task);
  }

  void wait() {
    std::vector<pollfd> ends;
    std::vector<Worker*> waiting;
    auto deadline = Clock::time_point::max();
    for (Worker& w : workers_) {
      if (!w.task) continue;
      ends.push_back({w.socket, POLLIN, 0});
      waiting.push_back(&w);
      deadline = std::min({deadline, w.beaten + timeout(w), end_of_grace(w)});
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    const auto patience = static_cast<int>(std::clamp<int64_t>(left, 0, calls_.tick ? 100 : 60'000));
    const int ready = ::poll(ends.data(), ends.size(), patience);
    if (ready < 0 && errno != EINTR) refuse(errno);
    for (size_t i = 0; i < waiting.size(); ++i) {
      Worker& w = *waiting[i];
      if (ready > 0 && ends[i].revents != 0)
        read(w);
      else if (Clock::now() >= end_of_grace(w))
        lose(w, Loss::kStopped);
      else if (Clock::now() >= w.beaten + timeout(w))
        look_at(w);
    }
  }

  static Clock::duration duration_of(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::clamp(seconds, 0.001, 1e6)));
  }
  double timeout_s(const Worker& w) const { return options_.timeout_s * static_cast<double>(w.note->patience.load()); }
  Clock::duration timeout(const Worker& w) const { return duration_of(timeout_s(w)); }
  // A task that began after the order has the whole grace for itself.
  Clock::time_point end_of_grace(const Worker& w) const {
    if (order_ == WorkerOrder::kGoOn || options_.grace_s <= 0) return Clock::time_point::max();
    return std::max(ordered_, w.began) + duration_of(options_.grace_s);
  }

  // Looks for a new beat of a worker that has shown none for its time.
  void look_at(Worker& w) {
    const uint64_t beats = w.note->beats;
    if (beats == w.beats) return lose(w, Loss::kTooSlow);
    w.beats = beats;
    w.beaten = Clock::now();
  }

  void read(Worker& w) {
    char buffer[65536];
    const ssize_t n = ::recv(w.socket, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) return lose(w, Loss::kDied);
    w.received.append(buffer, static_cast<size_t>(n));
    for (uint64_t size = 0; w.received.size() >= sizeof size;) {
      std::memcpy(&size, w.received.data(), sizeof size);
      const bool is_part = (size & kPart) != 0;
      size &= ~kPart;
      if (w.received.size() - sizeof size < size) return;
      WorkerAnswer a = answer_of(w);
      a.answer = w.received.substr(sizeof size, size);
      w.received.erase(0, sizeof size + size);
      if (is_part) {
        calls_.told(std::move(a));
        continue;
      }
      w.task.reset();
      ++w.served;
      if (w.is_fresh) remove(w);
      return calls_.done(std::move(a));
    }
  }

  static WorkerAnswer answer_of(Worker& w) {
    WorkerAnswer a;
    a.task = w.task->number;
    a.request = w.task->request;
    a.seconds = std::chrono::duration<double>(Clock::now() - w.began).count();
    return a;
  }

  void remove(Worker& w) {
    std::string ignored;
    bury(w, true, ignored);
    workers_.remove_if([&](const Worker& other) { return &other == &w; });
  }

  enum class Loss { kDied, kTooSlow, kStopped };

  // Ends a worker that died or has to die, and reports its task.
  void lose(Worker& w, Loss loss) {
    WorkerAnswer a = answer_of(w);
    a.item = w.note->item;
    a.part = w.note->part;
    const int64_t served = w.served;  // 0 in a fresh one
    const double limit = timeout_s(w);
    const int status = bury(w, loss != Loss::kDied, a.output);
    a.was_stopped = loss == Loss::kStopped;
    a.death = loss == Loss::kTooSlow ? fmt::format("took longer than {} s", limit)
              : a.was_stopped        ? "did not stop in time"
                                     : cause_of_death(status);
    workers_.remove_if([&](const Worker& other) { return &other == &w; });
    if (options_.retry && loss == Loss::kDied && served > 0)
      give(start(), {a.task, std::move(a.request)});
    else
      calls_.done(std::move(a));
  }

  // Waits for the end of a worker, after killing it if asked to. Gives its status and the end of its printed text.
  static int bury(Worker& w, bool kill, std::string& output) {
    if (kill) ::kill(w.process, SIGKILL);
    ::close(w.socket);
    int status = 0;
    // A driver may hold a killed process until its device answers, which may be never.
    const auto latest = Clock::now() + kBurial;
    for (auto pause = std::chrono::microseconds(50); Clock::now() < latest;
         pause = std::min(pause * 2, kLongestPause)) {
      const pid_t ended = ::waitpid(w.process, &status, WNOHANG);
      if (ended == w.process || (ended < 0 && errno != EINTR)) break;
      if (ended == 0) std::this_thread::sleep_for(pause);
    }
    ::munmap(w.note, sizeof(WorkerNote));
    const off_t size = ::lseek(w.output, 0, SEEK_END);
    output.resize(static_cast<size_t>(std::clamp<off_t>(size, 0, kOutputBytes)));
    const ssize_t n = ::pread(w.output, output.data(), output.size(), size - static_cast<off_t>(output.size()));
    output.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    ::close(w.output);
    return status;
  }

  const WorkerOptions& options_;
  const WorkerCalls& calls_;
  std::list<Worker> workers_;
  uint64_t given_ = 0;
  WorkerOrder order_ = WorkerOrder::kGoOn;
  Clock::time_point ordered_;
};

}  // namespace

void run_workers(const WorkerOptions& options, const WorkerCalls& calls) { Pool(options, calls).run(); }

void run_in_workers(size_t tasks, const WorkerOptions& options, const std::function<std::string(size_t)>& work,
                    const std::function<void(WorkerAnswer)>& done) {
  size_t next = 0;
  WorkerCalls calls;
  calls.next = [&]() -> std::optional<std::string> {
    if (next == tasks) return std::nullopt;
    return std::to_string(next++);
  };
  calls.work = [&](const std::string& request, WorkerNote&) { return work(std::stoull(request)); };
  calls.done = done;
  run_workers(options, calls);
}

}  // namespace fusebox
