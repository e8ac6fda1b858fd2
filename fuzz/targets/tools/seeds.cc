// fuzz-seeds TARGET FOLDER [FILE…]: makes initial inputs for a target from programs (the files, in text form) and from
// generated cases. `./dev seeds` keeps those that reach something new.
//
// fuzz-seeds digests FOLDER: makes file tests of the kind `digests` (tests/filetests/README.md) from generated cases, each of
// which fills a new row of the coverage table, and from schedules that are refused with a sentence of their own.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
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

// A name of its own for the program, so that several can stand in one module.
void rename(Module& m, const std::string& name) {
  m.graphs[0].name = name;
  for (StepList& list : m.step_lists) list.graph = name;
  for (InputSpecs& specs : m.input_specs) specs.graph = name;
}

// A generated case and the rows of the coverage table that it fills; a refused schedule fills none.
struct Drawn {
  Module module;
  std::vector<size_t> rows;
};

// Cases until every row that one of them fills is filled, or so many; each time one that fills the most new rows.
std::vector<Module> cover(std::vector<Drawn> drawn, size_t most) {
  std::vector<Module> chosen;
  std::set<size_t> filled;
  const auto gain = [&](const Drawn& d) {
    return std::count_if(d.rows.begin(), d.rows.end(), [&](size_t row) { return !filled.contains(row); });
  };
  while (true) {
    const auto best =
        std::max_element(drawn.begin(), drawn.end(), [&](const Drawn& a, const Drawn& b) { return gain(a) < gain(b); });
    if (best == drawn.end() || gain(*best) == 0 || chosen.size() == most) return chosen;
    filled.insert(best->rows.begin(), best->rows.end());
    chosen.push_back(std::move(best->module));
    drawn.erase(best);
  }
}

int add_digests(const std::string& folder) {
  constexpr uint64_t kDrawn = 12000;
  constexpr size_t kPerFile = 16, kMostOps = 40, kMostText = 4000, kMostRefused = 64, kMostCovering = 320;
  std::filesystem::create_directories(folder);
  std::set<std::string> sentences;
  std::vector<Module> refused;
  std::vector<Drawn> drawn;
  for (uint64_t number = 0; number < kDrawn; ++number) {
    fuzz::DrawnCase d = fuzz::generate_case(number + 1, fuzz::campaign_cases());
    if (d.surprise || d.value.fusion().ops.size() > kMostOps || print(d.value.module).size() > kMostText) continue;
    if (d.refusal) {
      if (refused.size() < kMostRefused && sentences.insert(d.refusal->what()).second)
        refused.push_back(std::move(d.value.module));
      continue;
    }
    fuzz::Coverage own;
    own.count(d.value);
    Drawn& kept = drawn.emplace_back();
    const std::vector<fuzz::CoverageRow> rows = own.rows();
    for (size_t i = 0; i < rows.size(); ++i)
      if (rows[i].count > 0) kept.rows.push_back(i);
    kept.module = std::move(d.value.module);
  }
  std::vector<Module> chosen = cover(std::move(drawn), kMostCovering);
  const size_t covering = chosen.size();
  chosen.insert(chosen.end(), refused.begin(), refused.end());
  for (size_t i = 0; i < chosen.size(); i += kPerFile) {
    char name[32];
    std::snprintf(name, sizeof name, "/drawn_%02zu.fir", i / kPerFile);
    std::ofstream out(folder + name, std::ios::binary);
    out << "// test: digests\n";
    for (size_t k = i; k < std::min(i + kPerFile, chosen.size()); ++k) {
      rename(chosen[k], "f" + std::to_string(k));
      out << (k > i ? "\n" : "") << print(chosen[k]);
    }
  }
  std::printf("%zu programs that cover what %zu do, and %zu that are refused\n", covering, size_t{kDrawn},
              refused.size());
  return chosen.empty() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: fuzz-seeds TARGET FOLDER [FILE…]\n"), 2;
  const std::string target = argv[1];
  if (target == "digests") return add_digests(argv[2]);
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
