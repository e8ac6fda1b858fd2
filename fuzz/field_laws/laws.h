// The laws for a change of one member: its effect on digests, equality, text and bytes. `match.h` tells whether the
// changed value differs in meaning.
//
// - equality: `==` sees every change that the text shows;
// - digest: digests are equal exactly if the programs are the same up to names, ids and orders;
// - text: texts are equal exactly if values are, and `parse(print(x))` is x;
// - bytes: `decode(encode(x))` is x, in every member.
// A graph must meet the laws of digest and equality if its references agree, the law of text if it verifies, and the law
// of bytes if its structure holds. Whatever belongs to a graph must meet them if it verifies with that graph.
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

// The laws that a change has tested: equality, the digest, the text or the bytes changed, or the digest stayed.
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
  // Checks equality and digest.
  Broken broken_in_digest(const Graph& changed, Asked& asked) const;
  Broken broken_in_text(const Graph& changed, Asked& asked) const;
  Broken broken_in_bytes(const Graph& changed, Asked& asked) const;

 private:
  const Graph& was_;
  const Defects& defects_;
  // Computed on first use.
  mutable std::optional<Digest> digest_;
  mutable std::optional<std::string> text_;
};

// The laws for a value that belongs to graph `g`.
Broken broken_by(const Graph& g, const StepList& was, const StepList& changed, const Defects& defects, Asked& asked);
Broken broken_by(const Graph& g, const Segmentation& was, const Segmentation& changed, const Defects& defects,
                 Asked& asked);
Broken broken_by(const Graph& g, const InputSpecs& was, const InputSpecs& changed, const Defects& defects,
                 Asked& asked);
Broken broken_by(const Bundle& was, const Bundle& changed, Asked& asked);

}  // namespace fusebox::fuzz
