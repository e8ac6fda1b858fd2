#include "replay/cli/bench_against.h"

#include <algorithm>

#include "ir/table/error.h"
#include "replay/cli/json.h"
#include "replay/data/json_value.h"

namespace fusebox::cli {
namespace {

BenchHead head_of(const JsonValue& v) {
  const auto executor = parse_executor(v.at("executor").string());
  if (!executor) throw Error(ErrorCode::kInvalidField, "no executor has this name", v.at("executor").string());
  BenchHead head;
  head.executor = *executor;
  head.gpu = v.at("gpu").string();
  head.where = v.at("where").string();
  head.threads = static_cast<int>(v.at("threads").count());
  head.unfused = v.at("unfused").text == "true";
  return head;
}

}  // namespace

std::string BenchHead::json() const {
  return JsonObject()
      .add("executor", text(executor))
      .add("gpu", gpu)
      .add("where", where)
      .add("threads", int64_t{threads})
      .add("unfused", unfused)
      .text();
}

EarlierBench parse_bench(const std::string& text, const std::string& path) {
  EarlierBench earlier;
  int number = 0;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    const std::string line = text.substr(from, end - from);
    from = end + 1;
    ++number;
    if (line.empty()) continue;
    try {
      const JsonValue v = parse_json(line);
      if (const JsonValue* head = v.find("bench"))
        earlier.head = head_of(*head).json();
      else if (const JsonValue* timing = v.find("timing"))
        earlier.median_us[v.at("file").string()] = timing->at("whole_us").at("median").number();
      else
        v.at("error");
    } catch (const Error& e) {
      throw Error(e.code, std::string(e.what()) + "; give the output of `fusebox bench --json`",
                  path + ":" + std::to_string(number) + (e.place.empty() ? "" : ": " + e.place));
    }
  }
  if (earlier.head.empty())
    throw Error(ErrorCode::kInvalidField, "no line says what was measured; give the output of `fusebox bench --json`",
                path);
  return earlier;
}

void require_comparable(const EarlierBench& earlier, const BenchHead& now, const std::string& path) {
  if (earlier.head != now.json())
    throw Error(ErrorCode::kUsage,
                "the earlier times are of " + earlier.head + ", and this run is of " + now.json() +
                    "; compare runs of one kind",
                path);
}

BenchChange change_of(const std::string& file, double before_us, double now_us, double tolerance) {
  return {file, before_us, now_us, now_us > before_us * (1 + tolerance), before_us > now_us * (1 + tolerance)};
}

}  // namespace fusebox::cli
