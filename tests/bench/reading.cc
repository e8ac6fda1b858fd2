// How many generated cases can be read per second on one core, as bundles and as texts.
// `per_second` counts files, `bytes_per_second` their bytes.
#include <benchmark/benchmark.h>

#include "fuzz/case_bytes/target.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "serde/decode.h"
#include "serde/encode.h"

namespace fusebox::fuzz {
namespace {

std::vector<Case> cases(size_t most_ops) {
  std::vector<Case> all;
  for (uint64_t seed = 1; seed <= 64; ++seed)
    all.push_back(generate_case(seed, {.fusion = {.max_ops = most_ops}, .steps = {.max_transforms = 5}}).value);
  return all;
}

template <class File, class Read>
void read_all(benchmark::State& state, const std::vector<File>& files, Read read) {
  size_t i = 0, bytes = 0;
  for (auto _ : state) {
    const File& file = files[i++ % files.size()];
    benchmark::DoNotOptimize(read(file));
    bytes += file.size();
  }
  state.counters["per_second"] = benchmark::Counter(static_cast<double>(i), benchmark::Counter::kIsRate);
  state.counters["bytes_each"] = static_cast<double>(bytes) / static_cast<double>(std::max<size_t>(i, 1));
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

void decode_bundles(benchmark::State& state) {
  std::vector<Bytes> files;
  for (const Case& c : cases(static_cast<size_t>(state.range(0)))) files.push_back(bytes_of_case(c));
  read_all(state, files, [](const Bytes& file) { return decode_bundle(file); });
}
BENCHMARK(decode_bundles)->Arg(5)->Arg(40);

// The usual input of a fuzzer: files that are refused.
void decode_damaged(benchmark::State& state) {
  std::vector<Bytes> files;
  RandomSource random(1);
  for (const Case& c : cases(static_cast<size_t>(state.range(0))))
    for (int i = 0; i < 16; ++i) files.push_back(mutate_wire(random, bytes_of_case(c)));
  read_all(state, files, [](const Bytes& file) {
    try {
      return is_bundle(file) ? decode_bundle(file).stages.size() : decode_module(file).graphs.size();
    } catch (const Error&) {
      return size_t{0};
    }
  });
}
BENCHMARK(decode_damaged)->Arg(5);

void parse_texts(benchmark::State& state) {
  std::vector<std::string> files;
  for (const Case& c : cases(static_cast<size_t>(state.range(0)))) files.push_back(print(c.module));
  read_all(state, files, [](const std::string& file) { return parse_module(file); });
}
BENCHMARK(parse_texts)->Arg(5)->Arg(40);

}  // namespace
}  // namespace fusebox::fuzz
