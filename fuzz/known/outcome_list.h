// The outcomes of many calls as a short text: how many gave each error, and checksums that notice when a single outcome
// changes. Sentences are kept whole, but for the names and numbers in them.
//
//   OutcomeList all;
//   for (…) all.add("split by 0", [&] { return print(…); });
//   all.text();   // accepted: 12 of 40, checksum 3f2a9c01
//                 // E0301: 28, checksum 90c1d4e7, first `split by 0` at %s.i#
//                 //   the factor of a split is 0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox::fuzz {

// FNV-1a of 64 bits, folded to 32.
class Checksum {
 public:
  void add(std::string_view bytes);
  std::string text() const;

 private:
  uint64_t state_ = 0xcbf29ce484222325u;
};

class OutcomeList {
 public:
  // Makes the call. Its result is a text, or an Error. kInternal is thrown on. Sentences that begin with the subject, such as
  // an op's name, count as the same for all subjects. True if the call was accepted.
  bool add(std::string_view what, const std::function<std::string()>& call, std::string_view subject = {});
  std::string text() const;

 private:
  struct Group {
    size_t count = 0;
    std::string first;
    Checksum checksum;
  };

  size_t count_ = 0, accepted_ = 0;
  Checksum accepted_checksum_;
  std::map<std::string, Group> refused_;  // by code and sentence
};

// `ok` and what the call gives, or `error E0203 at %y: its sentence`.
std::string outcome_text(const std::function<std::string()>& call);

}  // namespace fusebox::fuzz
