#include "replay/cli/timing_report.h"

#include <algorithm>
#include <cmath>

#include "replay/cli/json.h"

namespace fusebox::cli {
namespace {

std::string spread_text(const Spread& s) {
  return fmt::format("{} ({} – {})", time_text(s.median), time_text(s.p10), time_text(s.p90));
}

std::string spread_json(const Spread& s) {
  return JsonObject().add("median", s.median).add("p10", s.p10).add("p90", s.p90).text();
}

}  // namespace

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 999.95 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1000;
  return unit == 0 ? fmt::format("{:.0f} bytes", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string time_text(double us) {
  if (us >= 999950) return fmt::format("{:.3f} s", us / 1e6);
  return us >= 9999.5 ? fmt::format("{:.2f} ms", us / 1e3) : fmt::format("{:.1f} µs", us);
}

std::string bar(double part, size_t cells) {
  constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double clamped = std::isnan(part) ? 0 : std::clamp(part, 0.0, 1.0);
  const auto eighths = static_cast<size_t>(std::lround(clamped * 8 * static_cast<double>(cells)));
  std::string text;
  for (size_t i = 0; i < eighths / 8; ++i) text += "█";
  text += kEighths[eighths % 8];
  const size_t used = eighths / 8 + (eighths % 8 != 0 ? 1 : 0);
  return text + std::string(cells - used, ' ');
}

std::string timing_text(const Timing& t) {
  const bool on_gpu = t.measured.has_value();
  std::string out = fmt::format("timed over {} run{}", t.runs, t.runs == 1 ? "" : "s");
  out += on_gpu ? " on " + t.measured->gpu + ", by events, the L2 cache flushed by reading before each\n"
                : ", by the wall clock of the host executor, which checks every access; no GPU was measured\n";
  out += fmt::format("  {:<12} {}\n", "whole", spread_text(t.whole_us));
  out += fmt::format("  {:<12} {}, {} launch{}\n", "kernels", spread_text(t.kernels_us), t.launches,
                     t.launches == 1 ? "" : "es");
  out += fmt::format("  {:<12} {}, {}\n", "host", spread_text(t.host_us),
                     on_gpu ? "to enqueue the run" : "the whole without the kernels");
  for (const KernelTiming& k : t.kernels)
    out += fmt::format("    {:<20} {}{}\n", k.name, spread_text(k.us),
                       k.launches == 1 ? "" : fmt::format(", {} launches", k.launches));
  out +=
      fmt::format("  {:<12} {}: {} read, {} written\n", "must move", bytes_text(static_cast<double>(t.bytes.total())),
                  bytes_text(static_cast<double>(t.bytes.read)), bytes_text(static_cast<double>(t.bytes.written)));
  if (on_gpu)
    out += fmt::format(
        "  {:<12} {} at the rate of a copy, {:.0f} GB/s; the whole reaches {:.2f} of it; two events alone "
        "measure {}\n",
        "floor", time_text(*t.floor_us()), t.measured->copy_rate / 1000,
        std::floor(100 * t.fraction().value_or(0) + 1e-6) / 100, time_text(t.measured->empty_us));
  else
    out += fmt::format("  {:<12} not known: it is measured on a GPU\n", "floor");
  return out;
}

std::string timing_json(const Timing& t) {
  std::vector<std::string> kernels;
  for (const KernelTiming& k : t.kernels)
    kernels.push_back(JsonObject().add("name", k.name).add("launches", k.launches).raw("us", spread_json(k.us)).text());
  const auto number = [](std::optional<double> v) { return v ? fmt::format("{}", *v) : std::string("null"); };
  const auto of_gpu = [&](double v) { return number(t.measured ? std::optional(v) : std::nullopt); };
  JsonObject all;
  all.add("executor", text(t.executor)).add("clock", t.measured ? "events" : "wall").add("runs", int64_t{t.runs});
  all.raw("gpu", t.measured ? json_string(t.measured->gpu) : "null");
  all.raw("whole_us", spread_json(t.whole_us)).raw("kernels_us", spread_json(t.kernels_us));
  all.raw("host_us", spread_json(t.host_us)).add("launches", t.launches).raw("kernels", json_list(kernels));
  all.add("read_bytes", t.bytes.read).add("written_bytes", t.bytes.written);
  all.raw("copy_gb_s", of_gpu(t.measured ? t.measured->copy_rate / 1000 : 0));
  all.raw("empty_us", of_gpu(t.measured ? t.measured->empty_us : 0));
  all.raw("floor_us", number(t.floor_us())).raw("fraction", number(t.fraction()));
  return all.text();
}

std::string tuned_text(const Tuned& t) {
  std::string out = "tuned by times on the GPU\n";
  for (const TunedSegment& s : t.segments) {
    out += fmt::format("  {}: {} to {}, {} schedule{} timed\n", s.segment, time_text(s.before), time_text(s.after),
                       s.tries, s.tries == 1 ? "" : "s");
    out += "    chosen   " + text(s.chosen) + "\n";
    out += s.best == s.chosen ? "    no other is faster\n" : "    fastest  " + text(s.best) + "\n";
  }
  return out;
}

std::string tuned_json(const Tuned& t) {
  std::vector<std::string> segments;
  for (const TunedSegment& s : t.segments)
    segments.push_back(JsonObject()
                           .add("segment", s.segment)
                           .add("chosen", text(s.chosen))
                           .add("fastest", text(s.best))
                           .add("before_us", s.before)
                           .add("after_us", s.after)
                           .add("tries", int64_t{s.tries})
                           .text());
  return json_list(segments);
}

}  // namespace fusebox::cli
