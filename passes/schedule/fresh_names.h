// Names for the tensors and domains that a schedule makes. No name is that of a value or a domain of the fusion, so a
// domain keeps its name in every tensor to which a step copies it.
//
//   FreshNames names(fusion);
//   names.tensor("x")   // "x_1", or "x_2" if a value is called %x_1
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ir/graph/graph.h"
#include "ir/token/lex.h"

namespace fusebox {

// A name that a step may give to what it makes: that of a tensor may be any text, and gets `_` for each character that is no
// letter, digit or `_`.
inline std::string assignable_name(std::string name) {
  for (char& c : name)
    if (!is_plain_name(std::string_view(&c, 1))) c = '_';
  return name.empty() ? "_" : name;
}

class FreshNames {
 public:
  explicit FreshNames(const Graph& g) {
    for (const Value& v : g.values) values_.insert(v.name);
    for (const IterDomain& d : g.domains) domains_.insert(d.name);
  }

  // A name for a copy of this tensor.
  std::string tensor(std::string of) {
    of = assignable_name(std::move(of));
    for (int& i = next_.try_emplace(of, 1).first->second;; ++i)
      if (std::string name = of + "_" + std::to_string(i); values_.insert(name).second) return name;
  }
  // The wanted name, or the wanted name with a letter appended.
  std::string domain(std::string wanted) {
    while (!domains_.insert(wanted).second) wanted += 'x';
    return wanted;
  }

 private:
  std::set<std::string> values_, domains_;
  std::map<std::string, int> next_;  // by tensor: no smaller number is free
};

}  // namespace fusebox
