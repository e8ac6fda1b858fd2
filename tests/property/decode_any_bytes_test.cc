// Law: decode answers any bytes, within its memory bounds, with a usable value or a coded error. Some inputs are
// damaged files (flipped bits, moved numbers, cuts, splices), some are damaged graphs (ids that point anywhere), some
// are random bytes.
//
// FUSEBOX_DAMAGED_CASES sets how many (default 100,000), FUSEBOX_FIRST_CASE where they begin.
#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <malloc.h>
#include <map>
#include <new>

#include "fuzz/base/boundary_number.h"
#include "ir/canonical/canonical.h"
#include "ir/text/print.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "tests/support/random_bundle.h"
#include "tests/support/real_programs.h"
#include "tests/support/setting.h"

namespace {

// Counts every allocation of this program.
size_t live_bytes = 0, peak_bytes = 0;

void* counted(size_t size) {
  void* p = std::malloc(size ? size : 1);
  if (!p) throw std::bad_alloc();
  live_bytes += malloc_usable_size(p);
  peak_bytes = std::max(peak_bytes, live_bytes);
  return p;
}
void uncounted(void* p) {
  if (!p) return;
  live_bytes -= malloc_usable_size(p);
  std::free(p);
}

}  // namespace

void* operator new(size_t size) { return counted(size); }
void* operator new[](size_t size) { return counted(size); }
void operator delete(void* p) noexcept { uncounted(p); }
void operator delete[](void* p) noexcept { uncounted(p); }
void operator delete(void* p, size_t) noexcept { uncounted(p); }
void operator delete[](void* p, size_t) noexcept { uncounted(p); }

namespace fusebox {
namespace {

using testing::Random;
using testing::setting;

std::vector<std::string> good_files(const std::vector<testing::RealProgram>& programs) {
  std::vector<std::string> files;
  for (const testing::RealProgram& program : programs) {
    files.push_back(encode(program.module));
    Bundle b;
    b.stages.push_back({Stage::kFusion, program.module});
    files.push_back(encode(b));
  }
  const testing::RandomModuleOptions small{.graphs = 1, .ops = 5};
  for (uint64_t seed = 0; seed < 24; ++seed) {
    files.push_back(encode(testing::random_module(seed)));
    files.push_back(encode(testing::random_bundle(seed)));
    files.push_back(encode(testing::random_module(seed, small)));
    files.push_back(encode(testing::random_bundle(seed, small)));
  }
  files.push_back(encode(Module{}));
  files.push_back(encode(Bundle{}));
  return files;
}

void put(std::string& bytes, size_t at, uint64_t number, size_t width) {
  if (at + width <= bytes.size()) std::memcpy(bytes.data() + at, &number, width);
}

void damage(Random& random, std::string& bytes, const std::vector<std::string>& files) {
  if (bytes.empty()) return;
  switch (random.below(7)) {
    case 0:
      for (size_t n = random.one_in(4) ? 1 + random.below(8) : 1; n > 0; --n)
        bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
      break;
    case 1:
      bytes.resize(random.below(bytes.size()));
      break;
    case 2:
      for (size_t n = random.one_in(4) ? 3 : 1; n > 0; --n) {
        const size_t width = size_t{1} << random.below(4);
        put(bytes, random.below(bytes.size()) / width * width, fuzz::boundary_number(random, bytes.size()), width);
      }
      break;
    case 3: {  // a piece of a file over a piece of this one
      const std::string& from = random.pick(files);
      const size_t begin = random.below(from.size()), length = random.below(from.size() - begin);
      const size_t at = random.below(bytes.size());
      std::memcpy(bytes.data() + at, from.data() + begin, std::min(length, bytes.size() - at));
      break;
    }
    case 4: {  // a piece put in or taken out
      const size_t at = random.below(bytes.size()), length = random.below(32);
      if (random.one_in(2))
        bytes.erase(at, length);
      else
        bytes.insert(at, random.pick(files).substr(0, length));
      break;
    }
    case 5: {  // an offset moved to another object, so that objects are shared
      const size_t at = random.below(bytes.size()) & ~size_t{3};
      put(bytes, at, (random.below(bytes.size()) & ~size_t{3}) - at, 4);
      break;
    }
    default: {
      const size_t begin = 8 + random.below(bytes.size());
      for (size_t i = begin; i < bytes.size() && i < begin + random.below(200); ++i)
        bytes[i] = static_cast<char>(random.next());
    }
  }
}

std::string random_file(Random& random) {
  std::string bytes(random.below(400), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.one_in(2) ? random.below(16) : random.next());
  if (bytes.size() >= 8 && !random.one_in(8)) {
    std::memcpy(bytes.data() + 4, random.one_in(2) ? "FUSM" : "FUSE", 4);
    put(bytes, 0, random.below(bytes.size()) & ~size_t{3}, 4);
  }
  return bytes;
}

template <class T>
void damage(Random& random, Id<T>& id, size_t count) {
  id = random.one_in(4) ? Id<T>() : Id<T>(random.below(count + 2));
}
template <class T>
void damage(Random& random, std::vector<Id<T>>& ids, size_t count) {
  if (ids.empty() || random.one_in(4))
    ids.emplace_back(random.below(count + 1));
  else if (random.one_in(4))
    ids.pop_back();
  else
    damage(random, ids[random.below(ids.size())], count);
}

// Points one id of the graph to somewhere else, usually in range.
void damage(Random& random, Graph& g) {
  const size_t values = g.values.size(), domains = g.domains.size(), tensors = g.tensors.size();
  const auto any = [&](auto& list) -> auto& { return list[random.below(list.size())]; };
  switch (random.below(7)) {
    case 0: {
      Value& v = any(g.values);
      if (random.one_in(3)) v.kind = random.pick<ValueKind>();
      return damage(random, v.tensor, tensors);
    }
    case 1: {
      if (g.tensors.empty()) return;
      Tensor& t = any(g.tensors);
      if (random.one_in(4)) return damage(random, t.transforms, g.transforms.size());
      std::vector<DomainId>* lists[] = {&t.root, &t.logical, &t.allocation, &t.loop, &t.loop_broadcasts};
      return damage(random, *lists[random.below(5)], domains);
    }
    case 2: {
      if (g.domains.empty()) return;
      IterDomain& d = any(g.domains);
      damage(random, random.one_in(2) ? d.extent : d.expanded, values);
      if (random.one_in(2)) return damage(random, d.def, g.transforms.size());
      return random.one_in(2) ? damage(random, d.stands_for, domains) : damage(random, d.tensor, tensors);
    }
    case 3: {
      if (g.transforms.empty()) return;
      Transform& t = any(g.transforms);
      return damage(random, random.one_in(2) ? t.inputs : t.outputs, domains);
    }
    case 4:
      return damage(random, random.one_in(2) ? any(g.ops).operands : any(g.ops).results, values);
    case 5:
      return damage(random, any(g.ops).regions, g.regions.size());
    default:
      damage(random, any(g.regions).ops, g.ops.size());
  }
}

// Well-formed bytes of a module whose nodes may refer to anything.
std::string damaged_module(Random& random, const std::vector<testing::RealProgram>& programs) {
  Module m = random.one_in(2) ? testing::random_module(random.below(64)) : random.pick(programs).module;
  for (size_t n = random.below(3); n > 0 && !m.graphs.empty(); --n)
    damage(random, m.graphs[random.below(m.graphs.size())]);
  return encode_unchecked(m);
}

bool is_coded(ErrorCode code) { return code != ErrorCode::kInternal && row_of(code).code == code; }

std::vector<const Graph*> graphs_of(const Module& m) {
  std::vector<const Graph*> graphs;
  for (const Graph& g : m.graphs) graphs.push_back(&g);
  return graphs;
}
std::vector<const Graph*> graphs_of(const Bundle& b) {
  std::vector<const Graph*> graphs;
  for (const StageRecord& stage : b.stages)
    for (const Graph& g : stage.module.graphs) graphs.push_back(&g);
  for (const CacheRecord& r : b.records)
    if (r.compiled)
      for (const Module* m : {&r.compiled->program, &r.compiled->scheduled, &r.compiled->code})
        for (const Graph& g : m->graphs) graphs.push_back(&g);
  return graphs;
}

struct Tally {
  size_t values = 0;
  std::map<std::string, size_t> refused;
};

// An accepted value must be writable and comparable.
template <class T, class Decode, class DecodeStructure>
void check(std::string_view bytes, Decode decode, DecodeStructure decode_structure, Tally& tally) {
  const size_t before = live_bytes;
  peak_bytes = live_bytes;
  std::optional<T> value;
  std::string code;
  try {
    value = decode(bytes_of(bytes));
  } catch (const Error& error) {
    code = code_text(error.code);
    ASSERT_TRUE(is_coded(error.code)) << error.what();
    ASSERT_FALSE(error.place.empty()) << error.what();
  }
  ASSERT_LE(peak_bytes - before, 64 * bytes.size() + (size_t{1} << 20));
  if (!value) {
    ++tally.refused[code];
    // The structure may still hold; then it can be walked.
    try {
      value = decode_structure(bytes_of(bytes));
    } catch (const Error&) {
      return;
    }
  } else {
    ++tally.values;
    // It verifies, so no code that takes a program may fail on it.
    for (const Graph* g : graphs_of(*value)) {
      ASSERT_FALSE(print(*g).empty());
      ASSERT_EQ(digest(*g), digest(canonicalize(*g)));
    }
  }
  const std::string again = encode(*value);
  const T back = decode_structure(bytes_of(again));
  ASSERT_TRUE(testing::identical(back, *value) || encode(back) == again);  // NaNs differ from themselves
  for (const Graph* g : graphs_of(*value)) {
    const Graph small = compact(*g);
    ASSERT_TRUE(small == *g);
  }
}

TEST(DecodeAnyBytes, GivesAValueOrACodedError) {
  const std::vector<testing::RealProgram> programs = testing::real_programs();
  const std::vector<std::string> files = good_files(programs);
  Tally tally;
  const uint64_t first = setting("FUSEBOX_FIRST_CASE", 0), count = setting("FUSEBOX_DAMAGED_CASES", 100'000);
  for (uint64_t seed = first; seed < first + count && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::string bytes;
    if (random.one_in(10)) {
      bytes = random_file(random);
    } else if (random.one_in(3)) {
      bytes = damaged_module(random, programs);
    } else {
      bytes = random.pick(files);
      for (size_t n = random.one_in(4) ? 1 + random.below(4) : 1; n > 0; --n) damage(random, bytes, files);
    }
    if (is_bundle(bytes_of(bytes)))
      check<Bundle>(
          bytes, [](auto b) { return decode_bundle(b); }, [](auto b) { return decode_bundle_structure(b); }, tally);
    else
      check<Module>(
          bytes, [](auto b) { return decode_module(b); }, [](auto b) { return decode_module_structure(b); }, tally);
  }
  std::string summary = std::to_string(count) + " cases: " + std::to_string(tally.values) + " values";
  for (const auto& [code, n] : tally.refused) summary += ", " + std::to_string(n) + " " + code;
  RecordProperty("summary", summary);
  std::printf("%s\n", summary.c_str());
  // The damage reaches every check.
  EXPECT_GT(tally.values, count / 100);
  for (ErrorCode code : {ErrorCode::kNotABundle, ErrorCode::kDamagedBundle, ErrorCode::kInvalidField})
    EXPECT_GT(tally.refused[code_text(code)], count / 100) << code_text(code);
}

}  // namespace
}  // namespace fusebox
