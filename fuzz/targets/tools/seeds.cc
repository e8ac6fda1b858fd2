// fuzz-seeds TARGET FOLDER [FILE…]: makes initial inputs for a target from programs (the files, in text form) and from
// generated cases. `./dev seeds` keeps those that reach something new.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/case_bytes/target.h"
#include "fuzz/coverage/coverage.h"
#include "fuzz/index_laws/records.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "serde/encode.h"

namespace {

using namespace fusebox;

constexpr uint64_t kCases = 160;

class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) { std::filesystem::create_directories(path_); }
  template <class Bytes>
  void add(const Bytes& bytes) {
    std::ofstream out(path_ + "/seed_" + std::to_string(count_++), std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  size_t count() const { return count_; }

 private:
  std::string path_;
  size_t count_ = 0;
};

std::string read(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

fuzz::DrawnCase a_case(uint64_t seed) {
  return fuzz::generate_case(seed, {.fusion = {.max_ops = 5}, .steps = {.max_transforms = 6}});
}

// Modules of every level: the case itself, its scheduled graphs and its kernels.
std::vector<Module> modules_of(uint64_t seed) {
  fuzz::DrawnCase drawn = a_case(seed);
  std::vector<Module> all;
  if (drawn.value.compiled && !drawn.value.compiled->kernels.empty())
    for (Graph* g : {&drawn.value.compiled->scheduled[0], &drawn.value.compiled->kernels[0]}) {
      if (g->ops.empty()) continue;
      all.emplace_back().graphs.push_back(std::move(*g));
    }
  all.push_back(std::move(drawn.value.module));
  return all;
}

void add_decode(Folder& out, const std::vector<std::string>& programs) {
  for (const std::string& text : programs) {
    const Module m = parse_module(text);
    out.add(encode(m));
    Bundle b;
    b.stages.push_back({Stage::kFusion, m});
    b.options.push_back({"seed", "1"});
    out.add(encode(b));
  }
  for (uint64_t seed = 1; seed <= kCases; ++seed)
    for (const Module& m : modules_of(seed)) out.add(encode(m));
}

void add_parse(Folder& out, const std::vector<std::string>& programs) {
  for (const std::string& text : programs) out.add(text);
  for (uint64_t seed = 1; seed <= kCases; ++seed)
    for (const Module& m : modules_of(seed)) out.add(print(m));
}

// Adds each case that fills a new row of the coverage table.
void add_cases(Folder& out) {
  fuzz::Coverage coverage;
  for (uint64_t seed = 1; seed <= 8 * kCases; ++seed) {
    const fuzz::DrawnCase drawn = a_case(seed);
    const size_t before = coverage.covered();
    if (!drawn.refusal) coverage.count(drawn.value);
    if (coverage.covered() > before) out.add(fuzz::bytes_of_case(drawn.value));
  }
}

void add_steps(Folder& out) {
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    const auto number = static_cast<uint8_t>(seed);
    fuzz::RandomSource random(uint64_t{number});
    const fuzz::GeneratedFusion f = fuzz::generate_fusion(random, {.symbolic = false});
    std::string text(1, static_cast<char>(number));
    for (const Step& step : fuzz::generate_steps(random, f.graph, f.sizes).steps) text += print(step) + "\n";
    out.add(text);
  }
}

void add_records(Folder& out) {
  fuzz::RandomSource random(1);
  for (uint64_t i = 0; i < 4 * kCases; ++i) {
    index_laws::Records r = index_laws::read_records(std::vector<uint8_t>{static_cast<uint8_t>(i), 0, 16, 7});
    for (size_t n = 4 + random.below(16); n > 0; --n) index_laws::mutate_records(random, r);
    out.add(index_laws::write_records(r));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: fuzz-seeds TARGET FOLDER [FILE…]\n"), 2;
  const std::string target = argv[1];
  Folder out(argv[2]);
  std::vector<std::string> programs;
  for (int i = 3; i < argc; ++i) programs.push_back(read(argv[i]));
  if (target == "decode") add_decode(out, programs);
  if (target == "parse") add_parse(out, programs);
  if (target == "schedule" || target == "fusion") add_cases(out);
  if (target == "steps") add_steps(out);
  if (target == "indexing") add_records(out);
  std::printf("%zu inputs for fuzz_%s\n", out.count(), target.c_str());
  return out.count() == 0 ? 1 : 0;
}
