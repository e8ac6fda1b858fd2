#include "fuzz/field_laws/laws.h"

#include <algorithm>
#include <utility>

#include "fuzz/field_laws/match.h"
#include "ir/canonical/canonical.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify/verify.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "serde/semantics.h"
#include "serde/structure.h"

namespace fusebox::fuzz {
namespace {

std::optional<Error> structure_error(const Graph& g) {
  try {
    check_structure(g, Place("graph"));
  } catch (const Error& e) {
    return e;
  }
  return std::nullopt;
}

template <class T>
bool holds(const std::vector<T>& list, const T& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// True if references agree in both directions in everything that the body reaches.
bool is_sound(const Graph& g) {
  if (structure_error(g)) return false;
  std::vector<bool> is_placed(g.ops.size()), is_owned(g.regions.size());
  is_owned[Graph::body().index] = true;
  for (const Region& r : g.regions)
    for (OpId op : r.ops) {
      is_placed[op.index] = true;
      for (RegionId inner : g[op].regions) is_owned[inner.index] = true;
    }
  for (size_t r = 0; r < g.regions.size(); ++r) {
    if (!is_owned[r] && !g.regions[r].ops.empty()) return false;
    if (const ValueId index = g.regions[r].index; index && g[index].index_of != RegionId(r)) return false;
    for (OpId op : g.regions[r].ops)
      for (ValueId v : g[op].results)
        if (g[v].def != op || std::count(g[op].results.begin(), g[op].results.end(), v) != 1) return false;
  }
  for (size_t i = 0; i < g.values.size(); ++i) {
    const Value& v = g.values[i];
    if (v.def && (!is_placed[v.def.index] || !holds(g[v.def].results, ValueId(i)))) return false;
    if (v.index_of && g[v.index_of].index != ValueId(i)) return false;
    if (v.constant.has_value() + bool(v.def) + bool(v.index_of) > 1) return false;
    if (v.constant && v.kind != ValueKind::kScalar) return false;
  }
  for (size_t i = 0; i < g.domains.size(); ++i)
    if (const TransformId def = g.domains[i].def; def && !holds(g[def].outputs, DomainId(i))) return false;
  return true;
}

Broken broken(const char* law, std::string message) { return BrokenLaw{law, std::move(message)}; }
std::string refusal(const Error& e) { return code_text(e.code) + " " + e.place + ": " + e.what(); }

// Bytes that are written must read back as the same value. Only an invalid value may be refused.
template <class T, class Read, class IsValid>
Broken bytes_law(const T& changed, Asked& asked, Read read, IsValid is_valid) {
  try {
    const T back = read();
    asked.bytes = true;
    if (const auto where = difference(back, changed))
      return broken("bytes", "read back from its bytes, it differs in " + *where);
  } catch (const Error& e) {
    if (is_valid()) return broken("bytes", "it verifies, and its bytes are refused: " + refusal(e));
  }
  return std::nullopt;
}

template <class T, class Read>
Broken text_law(const T& was, const T& changed, Asked& asked, const std::string& before, const std::string& text,
                Read read) {
  try {
    const T back = read(text);
    if (!(back == changed)) return broken("text", "read back from its text, it is another one");
    if constexpr (std::is_same_v<T, Graph>) {
      if (!programs_match(back, changed, {.names = true}))
        return broken("text", "read back from its text, it is another program");
    } else {
      if (const auto where = difference(back, changed))
        return broken("text", "read back from its text, it differs in " + *where);
    }
  } catch (const Error& e) {
    return broken("text", "it verifies, and its text is refused: " + refusal(e));
  }
  asked.text = before != text;
  if (!asked.text && !(was == changed)) return broken("equality", "the same text, and not equal");
  // A list that is written out prints differently although it equals its default, so compare compact forms.
  if constexpr (std::is_same_v<T, Graph>)
    if (asked.text && was == changed && print(compact(was)) != print(compact(changed)))
      return broken("equality", "equal, with another text");
  return std::nullopt;
}

Module module_of(const Graph& g) {
  Module m;
  m.graphs.push_back(g);
  return m;
}
// The graph under the given name.
Module module_of(const Graph& g, const std::string& name) {
  Module m = module_of(g);
  m.graphs[0].name = name;
  return m;
}
bool has_meaning(const Module& m) {
  try {
    check_meaning(m, Place("module"));
  } catch (const Error&) {
    return false;
  }
  return true;
}

template <class T>
Broken equality_law(const T& was, const T& changed, bool differs, Asked& asked) {
  if (!differs) return std::nullopt;
  asked.equality = true;
  if (was == changed) return broken("equality", "it is another one, and equal");
  return std::nullopt;
}

Broken digest_law(bool same, bool same_digest, Asked& asked) {
  (same ? asked.same_digest : asked.digest) = true;
  if (same == same_digest) return std::nullopt;
  return broken("digest", same ? "the same program, and another digest" : "another program, and the same digest");
}

}  // namespace

Broken GraphLaws::broken_in_digest(const Graph& changed, Asked& asked) const {
  if (!is_sound(changed)) return std::nullopt;
  if (auto b = equality_law(was_, changed, !programs_match(was_, changed, {.names = true}), asked)) return b;
  if (!digest_) digest_ = digest(was_, defects_);
  return digest_law(programs_match(was_, changed), digest(changed, defects_) == *digest_, asked);
}

Broken GraphLaws::broken_in_text(const Graph& changed, Asked& asked) const {
  if (structure_error(changed) || find_error(changed)) return std::nullopt;
  if (!text_) text_ = print(was_, defects_);
  return text_law(was_, changed, asked, *text_, print(changed, defects_),
                  [](const std::string& text) { return parse_graph(text); });
}

Broken GraphLaws::broken_in_bytes(const Graph& changed, Asked& asked) const {
  return bytes_law(
      changed, asked,
      [&] {
        const std::string bytes = encode(module_of(changed), defects_);
        return decode_module_structure(bytes_of(bytes), defects_).graphs.at(0);
      },
      [&] { return !find_error(changed); });
}

Broken GraphLaws::broken_by(const Graph& changed, Asked& asked) const {
  if (auto b = broken_in_bytes(changed, asked)) return b;
  if (auto b = broken_in_digest(changed, asked)) return b;
  return broken_in_text(changed, asked);
}

namespace {

// The laws of bytes and text for a value that a module keeps in a list of its own.
template <class T, class Parse>
Broken broken_in_module(const Graph& g, std::vector<T> Module::* list, const T& was, const T& changed,
                        const Defects& defects, Asked& asked, const Parse& parse) {
  const auto is_valid = [&] {
    Module m = module_of(g, changed.graph);
    (m.*list).push_back(changed);
    return has_meaning(m);
  };
  const auto from_bytes = [&] {
    Module m;
    (m.*list).push_back(changed);
    const std::string bytes = encode(m, defects);
    return (decode_module_structure(bytes_of(bytes), defects).*list).at(0);
  };
  if (auto b = bytes_law(changed, asked, from_bytes, is_valid)) return b;
  if (!is_valid()) return std::nullopt;
  return text_law(was, changed, asked, print(was, defects), print(changed, defects), parse);
}

}  // namespace

Broken broken_by(const Graph& g, const StepList& was, const StepList& changed, const Defects& defects, Asked& asked) {
  if (auto b = equality_law(was, changed, difference(was, changed).has_value(), asked)) return b;
  const auto steps_differ = [&] {
    StepList a = was, b = changed;
    a.name = b.name = a.graph = b.graph = {};
    return difference(a, b).has_value();
  };
  const bool same = !steps_differ();
  if (auto b = digest_law(same, digest(was.steps, defects) == digest(changed.steps, defects), asked)) return b;
  if (auto b = digest_law(same, digest(g, was.steps, defects) == digest(g, changed.steps, defects), asked)) return b;
  return broken_in_module(g, &Module::step_lists, was, changed, defects, asked,
                          [](const std::string& text) { return parse_module(text).step_lists.at(0); });
}

Broken broken_by(const Graph& g, const Segmentation& was, const Segmentation& changed, const Defects& defects,
                 Asked& asked) {
  if (auto b = equality_law(was, changed, difference(was, changed).has_value(), asked)) return b;
  if (auto b = digest_law(segmentations_match(g, was, changed), digest(g, was, defects) == digest(g, changed, defects),
                          asked))
    return b;
  return broken_in_module(g, &Module::segmentations, was, changed, defects, asked,
                          [](const std::string& text) { return parse_segmentation(text); });
}

Broken broken_by(const Graph& g, const InputSpecs& was, const InputSpecs& changed, const Defects& defects,
                 Asked& asked) {
  if (auto b = equality_law(was, changed, difference(was, changed).has_value(), asked)) return b;
  return broken_in_module(g, &Module::input_specs, was, changed, defects, asked,
                          [](const std::string& text) { return parse_input_specs(text); });
}

Broken broken_by(const Bundle& was, const Bundle& changed, Asked& asked) {
  // Graphs of a stage that differ only in dead nodes are equal.
  const bool has_graphs = !was.stages.empty() || !was.records.empty();
  if (auto b = equality_law(was, changed, difference(was, changed).has_value() && !has_graphs, asked)) return b;
  return bytes_law(
      changed, asked,
      [&] {
        const std::string bytes = encode(changed);
        return decode_bundle_structure(bytes_of(bytes));
      },
      [] { return false; });
}

}  // namespace fusebox::fuzz
