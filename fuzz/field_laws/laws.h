// What a change of one member must do to digests, equality, text and bytes. `match.h` says whether the changed value is
// another one.
//
// - equality: `==` sees every change of what the text shows;
// - digest: digests are equal exactly where the programs are the same one, under other names, ids and orders;
// - text: texts are equal exactly where values are, and `parse(print(x))` is x;
// - bytes: `decode(encode(x))` is x, in every member.
// A graph is asked for digest and equality where its references agree, for its text where it verifies, for its bytes
// where its structure holds; what stands beside a graph where it verifies with it.
//
//   GraphLaws laws(g, defects);
//   Asked asked;
//   if (const auto broken = laws.broken_by(changed, asked)) report(broken->law, broken->message);
#pragma once

#include <optional>
#include <string>

#include "ir/canonical/digest.h"
#include "ir/module/module.h"
#include "ir/table/defect.h"
#include "serde/bundle.h"

namespace fusebox::fuzz {

// Which laws had something to say of a change: that equality, the digest, the text and the bytes differ, or that the
// digest does not.
struct Asked {
  bool equality = false, digest = false, same_digest = false, text = false, bytes = false;
};

struct BrokenLaw {
  std::string law;  // `digest`, `equality`, `text`, `bytes`
  std::string message;
};
using Broken = std::optional<BrokenLaw>;

// The graph and the defects must outlive it.
class GraphLaws {
 public:
  GraphLaws(const Graph& was, const Defects& defects) : was_(was), defects_(defects) {}
  Broken broken_by(const Graph& changed, Asked& asked) const;
  // Equality and digest.
  Broken broken_in_digest(const Graph& changed, Asked& asked) const;
  Broken broken_in_text(const Graph& changed, Asked& asked) const;
  Broken broken_in_bytes(const Graph& changed, Asked& asked) const;

 private:
  const Graph& was_;
  const Defects& defects_;
  // Made when they are first asked for.
  mutable std::optional<Digest> digest_;
  mutable std::optional<std::string> text_;
};

// Of the graph that they stand beside.
Broken broken_by(const Graph& g, const StepList& was, const StepList& changed, const Defects& defects, Asked& asked);
Broken broken_by(const Graph& g, const Segmentation& was, const Segmentation& changed, const Defects& defects,
                 Asked& asked);
Broken broken_by(const Graph& g, const InputSpecs& was, const InputSpecs& changed, const Defects& defects,
                 Asked& asked);
Broken broken_by(const Bundle& was, const Bundle& changed, Asked& asked);

}  // namespace fusebox::fuzz
