#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "fuzz/cli/commands.h"
#include "fuzz/generate/case.h"
#include "fuzz/oracle/oracle.h"
#include "ir/table/defect.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "replay/cli/json.h"
#include "replay/cli/report.h"
#include "replay/device/cuda_loader.h"
#include "replay/gate/gate_workers.h"

namespace fusebox::cli {
namespace {

using fuzz::OracleRow;

int list_oracles(const Common& common) {
  for (const OracleRow& row : fuzz::oracle_rows())
    print_line(
        common.json
            ? JsonObject().add("oracle", row.text).add("one_in", int64_t{row.every}).add("summary", row.summary).text()
            : fmt::format("{:<14} {}", row.text, row.summary));
  return 0;
}

int list_defects(const Common& common) {
  for (const DefectRow& row : defect_rows())
    print_line(common.json
                   ? JsonObject().add("defect", row.text).add("breaks", row.breaks).add("restates", row.restates).text()
                   : fmt::format("{:<28} {}", row.text, row.breaks));
  return 0;
}

int print_case(uint64_t seed, const Common& common) {
  const fuzz::DrawnCase drawn = fuzz::generate_case(seed, fuzz::campaign_cases());
  const std::string text = print(drawn.value.module);
  if (!common.json) {
    print_text(text);
    if (drawn.refusal) report_error(*drawn.refusal, common);
  } else {
    JsonObject o;
    o.raw("seed", std::to_string(seed)).add("text", text).add("valid", !drawn.refusal);
    if (drawn.refusal) o.raw("error", error_object(drawn.refusal->code, drawn.refusal->what(), drawn.refusal->place));
    print_line(o.text());
  }
  return drawn.refusal ? 1 : 0;
}

void check_usage(const FuzzArguments& a) {
  const auto refuse = [](const char* message, const char* option) { throw Error(ErrorCode::kUsage, message, option); };
  if (a.score && !a.case_file.empty())
    refuse("one file is judged, or the score is taken; leave out the other", "--case");
  if (!a.case_file.empty() && (a.runs > 0 || !a.time.empty() || !a.out.empty()))
    refuse("one file is judged once; leave out --runs, --time and --out", "--case");
  if (a.on != "cuda" && std::count(a.oracles.begin(), a.oracles.end(), "gpu") > 0)
    refuse("the oracle `gpu` needs --on cuda", "--oracle");
  if (a.score && a.on != "host") refuse("the score is taken on the host; leave out --on", "--score");
  if (a.score && a.stop_after > 0) refuse("each defect's campaign stops at its first finding", "--stop-after");
}

volatile std::sig_atomic_t interrupt_count = 0;

double now_s() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

constexpr double kLogPause_s = 30, kDrawPause_s = 0.1;

}  // namespace

double seconds_of(const std::string& text, const char* option) {
  if (text.empty()) return 0;
  char* end = nullptr;
  const double count = std::strtod(text.c_str(), &end);
  const std::string_view unit = end;
  const double scale = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (end == text.c_str() || scale == 0 || !(count > 0) || count > 1e9)
    throw Error(ErrorCode::kUsage, fmt::format("`{}` is no length of time; write 60s, 5m or 1h", text), option);
  return count * scale;
}

std::vector<size_t> oracle_rows_of(const std::vector<std::string>& names) {
  return fuzz::parse_oracles(fmt::format("{}", fmt::join(names, ",")));
}

void prepare_compiler(const std::vector<size_t>& oracles, uint64_t runs) {
  const auto rows = fuzz::oracle_rows();
  const auto row = std::find_if(rows.begin(), rows.end(), [](const OracleRow& r) { return r.judge == fuzz::compiles; });
  const bool is_asked =
      std::find(oracles.begin(), oracles.end(), static_cast<size_t>(row - rows.begin())) != oracles.end();
  const bool is_due = oracles.empty() && (runs == 0 || runs >= row->every);
  if ((!is_asked && !is_due) || find_cuda_compiler()) return;
  const std::string advice = "NVRTC is not there; `pip install nvidia-cuda-nvrtc` brings it";
  if (is_asked) throw Error(ErrorCode::kModuleMissing, advice, "--oracle compiles");
  note("the oracle compiles is off, as " + advice);
}

int64_t check_device(const std::string& on) {
  if (on != "cuda") return 0;
  // Runs in a child, because a process that has opened the driver must not fork.
  std::string missing;
  int64_t memory_bytes = 0;
  run_in_workers(
      1, {},
      [](size_t) -> std::string {
        try {
          const std::vector<CudaDevice> devices = cuda_backend().devices();
          return devices.empty() ? "none" : "memory " + std::to_string(devices[0].memory_bytes);
        } catch (const Error& e) {
          return e.what();
        }
      },
      [&](const WorkerAnswer& a) {
        missing = a.answer + a.death;
        if (!missing.starts_with("memory ")) return;
        memory_bytes = std::stoll(missing.substr(7));
        missing.clear();
      });
  if (missing == "none")
    throw Error(ErrorCode::kNoDevice, "this machine has no GPU that Fusebox can use; leave out --on cuda", "--on");
  if (!missing.empty()) throw Error(ErrorCode::kModuleMissing, missing, "--on");
  return memory_bytes;
}

void count_interrupts() {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupt_count = interrupt_count + 1; };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int interrupts() { return interrupt_count; }

ProgressLine::ProgressLine(bool quiet)
    : is_terminal_(::isatty(STDERR_FILENO) == 1), quiet_(quiet), next_(now_s() + (is_terminal_ ? 0 : kLogPause_s)) {}

void ProgressLine::show(const std::string& line) {
  const double now = now_s();
  if (quiet_ || now < next_) return;
  next_ = now + (is_terminal_ ? kDrawPause_s : kLogPause_s);
  std::fputs(fmt::format("{}{}{}", is_terminal_ ? "\r" : "fuzz: ", line, is_terminal_ ? "\x1b[K" : "\n").c_str(),
             stderr);
  std::fflush(stderr);
  drawn_ = is_terminal_;
}

void ProgressLine::clear() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

int fuzz_command(const FuzzArguments& a, Common& common) {
  if (a.list_oracles) return list_oracles(common);
  if (a.list_defects) return list_defects(common);
  if (a.has_print_case) return print_case(a.print_case, common);
  check_usage(a);
  // A case is far too small for ATen's threads. They would spin between cases.
  ::setenv("OMP_NUM_THREADS", "1", 0);
  const int64_t gpu_bytes = check_device(a.on);
  if (a.score) return fuzz_score(a, common);
  if (!a.case_file.empty()) return fuzz_case(a, common);
  return fuzz_campaign(a, gpu_bytes, common);
}

}  // namespace fusebox::cli
