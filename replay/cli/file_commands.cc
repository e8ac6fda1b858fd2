// verify, fmt, diff and convert: the commands without an executor.
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/canonical/canonical.h"
#include "ir/text/print.h"
#include "replay/cli/commands.h"
#include "replay/cli/json.h"
#include "replay/cli/load.h"
#include "replay/cli/report.h"
#include "replay/data/file.h"
#include "replay/record/record.h"
#include "replay/record/text_diff.h"
#include "serde/encode.h"

namespace fusebox::cli {
namespace {

// The number of a graph's input, for its name. Sorts like a number.
std::string place_of_input(const Graph& g, const std::string& name) {
  const std::vector<ValueId> all = inputs(g);
  const auto at = std::find_if(all.begin(), all.end(), [&](ValueId v) { return g[v].name == name; });
  return fmt::format("{:06}", at - all.begin());
}

// The default inputs with places instead of names, in the order of the places.
std::vector<InputSpecs> without_names(const Module& m) {
  std::vector<InputSpecs> lists = m.input_specs;
  for (InputSpecs& list : lists) {
    const Graph* const g = find_graph(m, list.graph);
    if (!g) continue;
    list.graph = fmt::format("{:06}", g - m.graphs.data());
    for (InputSpec& s : list.specs) s.name = place_of_input(*g, s.name);
    std::ranges::stable_sort(list.specs, {}, &InputSpec::name);
  }
  std::ranges::stable_sort(lists, {}, [](const InputSpecs& list) { return std::pair(list.graph, list.where); });
  return lists;
}

// Whether the modules differ only in names and the order of creation.
bool same_modules(const Module& a, const Module& b) {
  if (a.graphs.size() != b.graphs.size()) return false;
  for (size_t i = 0; i < a.graphs.size(); ++i)
    if (!same_program(a.graphs[i], b.graphs[i])) return false;
  const auto decisions = [](const Module& m) {
    std::string all;
    for (const StepList& l : m.step_lists) {
      const Graph* g = find_graph(m, l.graph);
      all += l.name + ":" + (g ? canonical_bytes(*g, l.steps) : canonical_bytes(l.steps)) + "\n";
    }
    for (const Segmentation& s : m.segmentations)
      if (const Graph* g = find_graph(m, s.graph)) all += canonical_bytes(*g, s) + "\n";
    return all;
  };
  return decisions(a) == decisions(b) && without_names(a) == without_names(b);
}

// A part of a bundle beside its stages and digests.
struct Part {
  std::string name;
  std::string key;   // without names
  std::string text;  // one fact a line
};

Part inputs_of(const Bundle& b, const Graph& fusion) {
  Part part{"inputs", "", ""};
  for (const Rank& r : b.ranks)
    for (const InputRecord& i : r.inputs) {
      InputSpec unnamed = i.spec;
      unnamed.name = "x" + place_of_input(fusion, i.spec.name);
      std::string bytes;
      if (i.bytes)
        bytes =
            " bytes " + text(digest(std::string_view(reinterpret_cast<const char*>(i.bytes->data()), i.bytes->size())));
      part.key += print(unnamed) + bytes + "\n";
      part.text += print(i.spec) + bytes + "\n";
    }
  return part;
}

Part steps_of(const Bundle& b, const Graph& fusion) {
  Part part{"steps", "", ""};
  for (const StepList& l : b.steps) {
    part.key += l.name + ":" + canonical_bytes(fusion, l.steps) + "\n";
    part.text += l.name + "\n" + print_steps(l.steps);
  }
  return part;
}

Part options_of(const Bundle& b) {
  Part part{"options", "", ""};
  for (const KeyValue& o : b.options) part.text += o.key + ": " + o.value + "\n";
  part.key = part.text;
  return part;
}

// The layouts of outputs and of what crosses between segments.
Part layouts_of(const Bundle& b) {
  Part part{"layouts", "", ""};
  const auto add = [&](const std::string& name, Dtype dtype, const auto& shape, const auto& strides,
                       const std::string& rest) {
    const std::string line =
        fmt::format(" = {}[{}] strides [{}]{}\n", text(dtype), fmt::join(shape, ", "), fmt::join(strides, ", "), rest);
    part.key += line;
    part.text += "%" + name + line;
  };
  for (const Rank& r : b.ranks) {
    part.key += r.executor + "\n";
    part.text += "on " + r.executor + "\n";
    for (const OutputRecord& o : r.outputs) add(o.name, o.dtype, o.shape, o.strides, " digest " + text(o.digest));
    for (const CrossingLayout& c : r.crossings) add(c.value, c.dtype, c.shape, c.strides, " in @" + c.segment);
  }
  return part;
}

Part artifacts_of(const Bundle& b) {
  Part part{"artifacts", "", ""};
  for (const Artifact& a : b.artifacts)
    part.text +=
        fmt::format("{} {} text {} binary {}\n", a.kernel, a.architecture, text(digest(a.cuda)),
                    text(digest(std::string_view(reinterpret_cast<const char*>(a.binary.data()), a.binary.size()))));
  part.key = part.text;
  return part;
}

// What a bundle says of its run, in the order in which one part may explain the next.
std::vector<Part> parts_of(const Bundle& b, const Graph& fusion) {
  return {inputs_of(b, fusion), steps_of(b, fusion), options_of(b), layouts_of(b), artifacts_of(b)};
}

struct Difference {
  std::string stage;  // empty: none
  std::string text;
};

Difference difference(const LoadedFile& a, const LoadedFile& b) {
  if (!a.bundle || !b.bundle) {
    if (same_modules(a.module, b.module)) return {};
    return {"fusion", text_diff(print(a.module), print(b.module))};
  }
  for (size_t i = 0; i < stage_texts().size(); ++i) {
    const Module* was = find_stage(*a.bundle, static_cast<Stage>(i));
    const Module* is = find_stage(*b.bundle, static_cast<Stage>(i));
    if (!was && !is) continue;
    if (was && is && same_modules(*was, *is)) continue;
    return {std::string(stage_texts()[i]), text_diff(was ? print(*was) : "", is ? print(*is) : "")};
  }
  const auto digests = [](const Bundle& bundle) {
    std::string all;
    for (const StageDigest& d : bundle.digests) all += d.name + " " + text(d.digest) + "\n";
    for (const Rank& r : bundle.ranks)
      if (r.failure) all += "outcome " + code_text(r.failure->code) + " " + r.failure->place + "\n";
    return all;
  };
  const std::string was = digests(*a.bundle), is = digests(*b.bundle);
  if (was != is) {
    for (const StageDigest& d : a.bundle->digests)
      if (const Digest* other = find_digest(*b.bundle, d.name); !other || *other != d.digest)
        return {d.name, text_diff(was, is, 0)};
    return {"outcome", text_diff(was, is, 0)};
  }
  const std::vector<Part> before = parts_of(*a.bundle, main_graph(a.module));
  const std::vector<Part> after = parts_of(*b.bundle, main_graph(b.module));
  for (size_t i = 0; i < before.size(); ++i)
    if (before[i].key != after[i].key) return {before[i].name, text_diff(before[i].text, after[i].text, 0)};
  return {};
}

}  // namespace

int verify_command(const std::vector<std::string>& files, Common& common) {
  int worst = 0;
  for (const std::string& path : files) {
    try {
      const LoadedFile file = load_file(path);
      const std::string name = main_graph(file.module).name;
      print_line(common.json ? JsonObject().add("file", path).add("program", name).add("ok", true).text()
                             : path + ": ok, @" + name);
    } catch (const Error& e) {
      if (e.code == ErrorCode::kFileWrite) throw;
      worst = std::max(worst, exit_code(e.code));
      if (common.json) {
        print_line(JsonObject()
                       .add("file", path)
                       .add("ok", false)
                       .raw("error", error_object(e.code, e.what(), e.place))
                       .text());
      } else {
        const bool has_path = e.place.starts_with(path);
        report_error(Error(e.code, e.what(), has_path ? e.place : path + (e.place.empty() ? "" : " " + e.place)),
                     common);
      }
    }
  }
  return worst;
}

int fmt_command(const std::string& path, Common& common) {
  const LoadedFile file = load_file(path);
  const std::string text = file.head_comment + print(file.module);
  common.json ? print_line(JsonObject().add("file", path).add("text", text).text()) : print_text(text);
  return 0;
}

int diff_command(const std::string& a, const std::string& b, Common& common) {
  const Difference d = difference(load_file(a), load_file(b));
  if (common.json) {
    JsonObject all;
    all.add("a", a).add("b", b).add("identical", d.stage.empty());
    all.raw("first_difference", d.stage.empty() ? "null" : json_string(d.stage));
    if (!d.stage.empty()) all.add("difference", d.text);
    print_line(all.text());
  } else if (!d.stage.empty()) {
    print_text("differ at " + d.stage + " (- " + a + ", + " + b + ")\n" + d.text);
  }
  return d.stage.empty() ? 0 : 1;
}

int convert_command(const std::string& in, const std::string& out, Common& common) {
  const std::string to = std::filesystem::path(out).extension();
  if (to != ".fir" && to != ".fuse")
    throw Error(ErrorCode::kUsage, "the file to write must end in .fir or .fuse; rename it", out);
  LoadedFile file = load_file(in);
  if (to == ".fuse") {
    write_file(out, encode(subject_of(file)));
  } else {
    if (file.bundle && !file.bundle->ranks.empty()) {
      // The recorded inputs replace the default ones, as far as text can hold them.
      InputSpecs specs{main_graph(file.module).name, "host", {}};
      bool has_bytes = false;
      for (const InputRecord& r : file.bundle->ranks[0].inputs) {
        has_bytes = has_bytes || r.bytes;
        specs.specs.push_back(r.spec);
      }
      if (has_bytes) {
        note("the bundle holds inputs as bytes, which text does not; the program keeps its own defaults");
      } else {
        std::erase_if(file.module.input_specs,
                      [&](const InputSpecs& s) { return s.graph == specs.graph && s.where == specs.where; });
        file.module.input_specs.push_back(std::move(specs));
      }
      take_recorded_schedule(*file.bundle, file.module);
      assign_recorded_segments(*file.bundle, file.module);
    }
    write_file(out, print(file.module));
  }
  if (common.json) print_line(JsonObject().add("in", in).add("out", out).add("ok", true).text());
  return 0;
}

}  // namespace fusebox::cli
