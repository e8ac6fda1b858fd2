#include "fuzz/run/gpu_batch.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "ir/table/error.h"
#include "replay/device/cuda_loader.h"
#include "replay/run/aten_segment.h"

namespace fusebox::fuzz {
namespace {

using Clock = std::chrono::steady_clock;

// Memory of one process for the tensors of a batch.
constexpr int64_t kArenaBytes = int64_t{64} << 20;

// Keep the context open, because opening it takes longer than most batches.
std::unique_ptr<Device> cuda_device() {
  static const std::unique_ptr<CudaSession> context = cuda_backend().open(0);
  return make_cuda_device({.arena_bytes = kArenaBytes});
}

std::vector<const Graph*> kernels_of(std::span<const GpuCase> cases) {
  std::vector<const Graph*> kernels;
  for (const GpuCase& c : cases) {
    const Compiled& compiled = *c.subject.compiled;
    for (size_t k = 0; k < compiled.kernels.size(); ++k)
      if (compiled.segmentation.segments[k].executor == SegmentExecutor::kKernel)
        kernels.push_back(&compiled.kernels[k]);
  }
  return kernels;
}

class Stopwatch {
 public:
  double lap() {
    const auto now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  Clock::time_point last_ = Clock::now();
};

// Holds a turn as long as it lives.
class Turn {
 public:
  Turn(GpuTurns* turns, const std::function<bool()>& waits) : turns_(turns) {
    while (turns_ && !turns_->take()) {
      if (!waits()) {
        is_given_up_ = true;
        return;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (turns_ && !is_given_up_) turns_->give_back();
  }
  bool is_given_up() const { return is_given_up_; }

 private:
  GpuTurns* turns_;
  bool is_given_up_ = false;
};

}  // namespace

GpuTurns::GpuTurns(int at_once) : file_(::memfd_create("turns", MFD_CLOEXEC)), at_once_(at_once) {
  if (file_ < 0) throw Error(ErrorCode::kOutOfMemory, "no file in memory can be made; free some memory", "");
}
GpuTurns::~GpuTurns() { ::close(file_); }

bool GpuTurns::take() {
  for (int i = 0; i < at_once_ && taken_ < 0; ++i) {
    struct flock one{};
    one.l_type = F_WRLCK, one.l_whence = SEEK_SET, one.l_start = i, one.l_len = 1;
    if (::fcntl(file_, F_SETLK, &one) == 0) taken_ = i;
  }
  return taken_ >= 0;
}

void GpuTurns::give_back() {
  struct flock one{};
  one.l_type = F_UNLCK, one.l_whence = SEEK_SET, one.l_start = taken_, one.l_len = 1;
  ::fcntl(file_, F_SETLK, &one);
  taken_ = -1;
}

void compile_case(Case& c, const Defects& defects) {
  CompileOptions compiling{.inputs = bound_inputs(c.inputs()), .defects = defects, .infer = infer_by_aten()};
  if (c.steps()) compiling.steps = *c.steps();
  c.compiled = compile(c.fusion(), sizes_of(c.fusion(), c.inputs()), compiling);
}

std::vector<Finding> judge_on_gpu(Case c, const JudgeOptions& options, const GpuBatchOptions& how) {
  if (!c.compiled) compile_case(c, options.defects);
  const GpuCase one{0, std::move(c)};
  std::vector<Finding> findings;
  for (GpuVerdict& v : judge_on_gpu({&one, 1}, options, how).verdicts)
    findings.insert(findings.end(), v.findings.begin(), v.findings.end());
  return findings;
}

GpuBatch judge_on_gpu(std::span<const GpuCase> cases, const JudgeOptions& options, const GpuBatchOptions& how) {
  GpuBatch batch;
  const auto goes_on = [&] { return !how.stops || !how.stops(); };
  std::mutex one;  // compilations start on several threads
  const auto at = [&](bool compiles, uint64_t number) {
    const std::lock_guard lock(one);
    if (how.at) how.at(compiles, number);
  };
  if (cases.empty() || !goes_on()) return batch;
  Stopwatch watch;
  at(true, cases[0].number);
  const auto device = how.device ? how.device() : cuda_device();
  batch.kernels = device->prepare_all(kernels_of(cases), {.threads = how.threads, .go_on = [&] {
                                                            at(true, cases[0].number);
                                                            return goes_on();
                                                          }});
  // Run the host executor and the reference before taking the turn.
  JudgeOptions own = options;
  own.gpu = device.get();
  std::deque<OracleRun> runs;
  for (const GpuCase& c : cases) {
    if (!goes_on()) return batch;
    at(true, c.number);
    if (runs.emplace_back(c.subject, own).scheduled().ok()) runs.back().reference();
  }
  batch.compile_s = watch.lap();
  const Turn turn(how.turns, [&] {
    at(true, cases[0].number);
    return goes_on();
  });
  batch.wait_s = watch.lap();
  if (turn.is_given_up()) return batch;
  for (size_t i = 0; i < cases.size(); ++i) {
    const GpuCase& c = cases[i];
    OracleRun& run = runs[i];
    if (!goes_on()) return batch;
    at(false, c.number);
    device->begin_program();
    try {
      gpu(run);
    } catch (const Error& e) {
      run.report("gpu", e, "the oracle itself");
    }
    ++batch.judged;
    batch.run_s += watch.lap();
    if (run.findings.empty()) continue;
    const std::string lost = code_text(ErrorCode::kDeviceFailure);
    batch.is_device_lost = std::any_of(run.findings.begin(), run.findings.end(),
                                       [&](const Finding& f) { return f.signature.check == lost; });
    batch.verdicts.push_back({c.number, std::move(run.findings)});
    if (batch.is_device_lost) return batch;
  }
  batch.is_complete = true;
  return batch;
}

}  // namespace fusebox::fuzz
