// Mutations of files and of text: the same choices give the same result, and many results pass the first check.
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "fuzz/bytes/mutate_text.h"
#include "fuzz/bytes/mutate_wire.h"
#include "fuzz/generate/case.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "serde/decode.h"
#include "serde/encode.h"

namespace fusebox::fuzz {
namespace {

std::vector<std::string> files() {
  std::vector<std::string> all;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const Module m = generate_case(seed, {}).value.module;
    all.push_back(encode(m));
    Bundle b;
    b.stages.push_back({Stage::kFusion, m});
    all.push_back(encode(b));
  }
  return all;
}

// Nothing if reading succeeds, otherwise the error's code.
template <class Read>
std::string answer(Read read) {
  try {
    read();
    return "read";
  } catch (const Error& e) {
    EXPECT_NE(row_of(e.code).outcome, Outcome::kInternal) << e.what();
    return code_text(e.code);
  }
}

TEST(MutateWire, ReachesEveryCheckOfDecode) {
  const auto all = files();
  std::map<std::string, int> answers;
  std::set<std::string> messages;
  for (uint64_t seed = 1; seed <= 6000; ++seed) {
    RandomSource random(seed), again(seed);
    const auto from = bytes_of(all[seed % all.size()]), other = bytes_of(all[seed / 3 % all.size()]);
    const bool cross = seed % 5 == 0;
    const Bytes made = cross ? cross_wire(random, from, other) : mutate_wire(random, from, other);
    ASSERT_EQ(made, cross ? cross_wire(again, from, other) : mutate_wire(again, from, other));
    ++answers[answer([&] {
      try {
        is_bundle(made) ? void(decode_bundle(made)) : void(decode_module(made));
      } catch (const Error& e) {
        messages.insert(e.what());
        throw;
      }
    })];
  }
  EXPECT_GT(answers["read"], 600);
  EXPECT_GT(answers[code_text(ErrorCode::kDamagedBundle)], 200);
  EXPECT_GT(answers[code_text(ErrorCode::kInvalidField)], 300);
  EXPECT_GT(answers[code_text(ErrorCode::kNotABundle)], 0);
  // Errors of the verifier come only after all other checks.
  EXPECT_GT(answers.size(), 8u);
  EXPECT_GT(messages.size(), 60u);
}

TEST(MutateWire, AnyBytesMayBeMutated) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    RandomSource random(seed);
    Bytes a(random.below(40)), b(random.below(40));
    for (Bytes* bytes : {&a, &b})
      for (uint8_t& x : *bytes) x = static_cast<uint8_t>(random.next());
    EXPECT_LE(mutate_wire(random, a, b).size(), 40u + 3 * 512);
    EXPECT_LE(cross_wire(random, a, b).size(), 40u + 3 * 512);
  }
}

TEST(MutateText, ReachesTheParserAndWhatIsBehindIt) {
  std::map<std::string, int> answers;
  std::vector<std::string> texts;
  for (uint64_t seed = 1; seed <= 8; ++seed) texts.push_back(print(generate_case(seed, {}).value.module));
  for (uint64_t seed = 1; seed <= 6000; ++seed) {
    RandomSource random(seed), again(seed);
    const std::string &from = texts[seed % texts.size()], &other = texts[seed / 3 % texts.size()];
    const bool cross = seed % 5 == 0;
    const std::string made = cross ? cross_text(random, from, other) : mutate_text(random, from, other);
    ASSERT_EQ(made, cross ? cross_text(again, from, other) : mutate_text(again, from, other));
    ++answers[answer([&] { parse_module(made); })];
  }
  EXPECT_GT(answers["read"], 600);
  EXPECT_GT(answers[code_text(ErrorCode::kSyntax)], 300);
  EXPECT_GT(answers.size(), 10u);
}

TEST(MutateText, AnyBytesMayBeMutated) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    RandomSource random(seed);
    std::string a(random.below(40), ' '), b(random.below(40), '\n');
    for (std::string* text : {&a, &b})
      for (char& c : *text)
        if (random.one_in(2)) c = static_cast<char>(random.next());
    mutate_text(random, a, b);
    cross_text(random, a, b);
  }
}

TEST(MutateText, WordsAreThoseOfTheTables) {
  const auto& words = table_words();
  for (const char* word : {"add", "welford", "f32", "parallelize", "grid.x", "axis", "shared"})
    EXPECT_TRUE(std::binary_search(words.begin(), words.end(), word)) << word;
  for (const std::string& word : words) EXPECT_FALSE(word.empty());
}

}  // namespace
}  // namespace fusebox::fuzz
