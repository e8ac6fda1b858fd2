// `fusebox cache`: what the cache holds, and compiled fusions to ship with an application.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <sstream>

#include "ir/canonical/canonical.h"
#include "replay/cache/cache_key.h"
#include "replay/cache/compiled_record.h"
#include "replay/cache/pack.h"
#include "replay/cache/user_cache.h"
#include "replay/cli/command_line.h"
#include "replay/cli/json.h"
#include "replay/cli/load.h"
#include "replay/cli/numbers.h"
#include "replay/cli/report.h"
#include "replay/data/file.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "serde/launch_file.h"
#include "serde/limits.h"

namespace fusebox::cli {
namespace {

FolderStore open_store(const CacheArguments& a) {
  const CacheSettings settings = cache_settings();
  const std::string folder = a.folder.empty() ? settings.folder : a.folder;
  if (folder.empty())
    throw Error(ErrorCode::kUsage, "there is no cache folder, because HOME is not set; give one with --folder");
  // A folder that is named and not there is a mistake; only an import may make it.
  if (!a.folder.empty() && a.action != "import") check_folder(folder);
  return FolderStore({.folder = folder, .limit_bytes = settings.limit_bytes});
}

struct Entry {
  StoredFile file;
  std::optional<CacheRecord> record;
  std::string error;  // why there is no record
};

Entry look_at(const FolderStore& store, const StoredFile& file) {
  Entry e{file, std::nullopt, {}};
  const auto bytes = store.look(file.name);
  if (!bytes) {
    e.error = "it cannot be read, or other users may write to it";
    return e;
  }
  try {
    e.record = decode_record(bytes_of(*bytes));
    const std::string_view suffix = e.record->compiled ? kFusionSuffix : kKernelSuffix;
    if (record_name(e.record->key, suffix) != file.name) e.error = "its name is not that of its key";
  } catch (const Error& error) {
    e.error = code_text(error.code) + " " + error.what();
  }
  return e;
}

std::string kind_of(const StoredFile& f) { return f.name.ends_with(kFusionSuffix) ? "fusion" : "kernel"; }

std::string program_of(const CacheRecord& r) {
  return r.compiled ? "@" + std::string(part_of(r.key, "program")) : r.image->entry;
}
std::string target_of(const CacheRecord& r) {
  return r.compiled ? std::string(part_of(r.key, "target")) : "cuda " + r.image->architecture;
}

std::string time_text(int64_t ns) {
  const std::time_t seconds = ns / 1'000'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

int list(const CacheArguments& a, const Common& common) {
  const FolderStore store = open_store(a);
  int64_t bytes = 0, count = 0;
  std::string out;
  for (const StoredFile& f : store.list()) {
    const Entry e = look_at(store, f);
    ++count;
    bytes += f.bytes;
    const std::string what = e.error.empty() ? program_of(*e.record) : "unusable";
    const std::string target = e.error.empty() ? target_of(*e.record) : "";
    if (!common.json) {
      out += fmt::format("{}  {:<6}  {:>9}  {}  {} {}\n", f.name.substr(0, 16), kind_of(f), f.bytes,
                         time_text(f.used_ns), what, target);
      continue;
    }
    JsonObject o;
    o.add("name", f.name).add("kind", kind_of(f)).add("bytes", f.bytes).add("used", time_text(f.used_ns));
    if (e.error.empty())
      o.add("program", what).add("target", target);
    else
      o.add("error", e.error);
    print_line(o.text());
  }
  if (common.json) return 0;
  print_text(out + fmt::format("{} record{}, {} bytes in {}\n", count, count == 1 ? "" : "s", bytes, store.folder()));
  return 0;
}

std::string image_json(const KernelImage& i) {
  return JsonObject()
      .add("kernel", text(i.kernel))
      .add("source", text(i.source))
      .add("architecture", i.architecture)
      .add("compiler", i.compiler)
      .add("options", i.options)
      .add("registers", i.registers)
      .add("local_bytes", i.local_bytes)
      .add("shared_bytes", i.shared_bytes)
      .add("cooperative", i.is_cooperative)
      .add("opts_in_shared", i.opts_in_shared)
      .add("bytes", static_cast<int64_t>(i.binary.size()))
      .text();
}

std::string image_text(const KernelImage& i) {
  return fmt::format(
      "image of kernel {}\n  source       {}\n  for          {}, by {}, {}\n  needs        {} registers, {} bytes of "
      "stack, {} of static shared memory{}{}\n  binary       {} bytes\n",
      text(i.kernel), text(i.source), i.architecture, i.compiler, i.options, i.registers, i.local_bytes, i.shared_bytes,
      i.opts_in_shared ? ", shared memory by launch" : "", i.is_cooperative ? ", all blocks at once" : "",
      i.binary.size());
}

void show_text(const CacheRecord& r, const StoredFile& f) {
  std::string out = f.name + "\n";
  for (const KeyPart& part : r.key) {
    const std::string_view bytes(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
    const bool is_short =
        bytes.size() <= 64 && std::ranges::all_of(bytes, [](char c) { return c >= 0x20 && c < 0x7f; });
    out += is_short ? fmt::format("  key {:<12} {}\n", part.name, bytes)
                    : fmt::format("  key {:<12} {} bytes, {}\n", part.name, bytes.size(), text(digest_bytes(bytes)));
  }
  if (r.image) out += image_text(*r.image);
  if (r.compiled) {
    const Compiled c = compiled_of(*r.compiled);
    out +=
        fmt::format("compiled fusion {}\n  concretized  {}\n  segments     {}\n  host         {}\n  index bits   {}\n",
                    text(digest(*r.compiled)), text(digest(c.concretized)), text(digest(c.concretized, c.segmentation)),
                    text(digest(c.host)), c.index_bits);
    for (size_t i = 0; i < c.kernels.size(); ++i)
      if (!c.kernels[i].ops.empty())
        out += fmt::format("  kernel       {} @{}\n", text(digest(c.kernels[i])), c.kernels[i].name);
    out += r.compiled->launch ? fmt::format("  launch       {}, {} words of code\n", text(digest(*r.compiled->launch)),
                                            r.compiled->launch->code.size())
                              : "  launch       none: the host program is interpreted\n";
    out += fmt::format("signature {}\n", text(digest(r.compiled->signature)));
    std::istringstream lines(text(r.compiled->signature));
    for (std::string line; std::getline(lines, line);) out += "  " + line + "\n";
    for (const KernelImage& i : r.compiled->images) out += image_text(i);
  }
  print_text(out);
}

void show_json(const CacheRecord& r, const StoredFile& f) {
  JsonObject key, o;
  for (const KeyPart& part : r.key) key.add(part.name, text(digest_bytes(part.bytes.data(), part.bytes.size())));
  o.add("name", f.name).add("kind", kind_of(f)).add("program", program_of(r)).add("target", target_of(r));
  o.raw("key", key.text());
  std::vector<std::string> images, kernels;
  if (r.image) images.push_back(image_json(*r.image));
  if (r.compiled) {
    const Compiled c = compiled_of(*r.compiled);
    for (const Graph& k : c.kernels)
      if (!k.ops.empty()) kernels.push_back(json_string(text(digest(k))));
    for (const KernelImage& i : r.compiled->images) images.push_back(image_json(i));
    o.add("digest", text(digest(*r.compiled))).add("concretized", text(digest(c.concretized)));
    o.add("host", text(digest(c.host))).add("index_bits", int64_t{c.index_bits});
    if (r.compiled->launch) o.add("launch", text(digest(*r.compiled->launch)));
    o.add("signature", text(digest(r.compiled->signature)));
  }
  print_line(o.raw("kernels", json_list(kernels)).raw("images", json_list(images)).text());
}

int show(const CacheArguments& a, const Common& common) {
  const FolderStore store = open_store(a);
  bool is_found = false;
  for (const StoredFile& f : store.list()) {
    if (!f.name.starts_with(a.file)) continue;
    is_found = true;
    const Entry e = look_at(store, f);
    if (!e.error.empty())
      throw Error(ErrorCode::kDamagedBundle,
                  "the record cannot be used: " + e.error +
                      "; `fusebox cache gc` keeps it, "
                      "and the next run that needs it writes it anew",
                  f.name);
    common.json ? show_json(*e.record, f) : show_text(*e.record, f);
  }
  if (!is_found)
    throw Error(ErrorCode::kUnknownName, "the cache has no record whose name begins so; `fusebox cache ls` lists them",
                a.file);
  return 0;
}

int verify(const CacheArguments& a, const Common& common) {
  const FolderStore store = open_store(a);
  int64_t good = 0, bad = 0;
  for (const StoredFile& f : store.list()) {
    const Entry e = look_at(store, f);
    ++(e.error.empty() ? good : bad);
    if (e.error.empty()) continue;
    if (common.json)
      print_line(JsonObject().add("name", f.name).add("ok", false).add("error", e.error).text());
    else
      print_line(f.name + ": " + e.error);
    if (a.remove) FolderStore(store).remove(f.name);
  }
  if (common.json)
    print_line(JsonObject().add("good", good).add("unusable", bad).add("ok", bad == 0).text());
  else
    print_line(fmt::format("{} good, {} unusable{}", good, bad, bad > 0 && a.remove ? ", removed" : ""));
  return bad == 0 ? 0 : 1;
}

int collect(const CacheArguments& a, const Common& common) {
  FolderStore store = open_store(a);
  const Collected c = store.collect(a.bytes >= 0 ? a.bytes : cache_settings().limit_bytes);
  if (common.json)
    print_line(JsonObject()
                   .add("removed", c.removed)
                   .add("removed_bytes", c.removed_bytes)
                   .add("kept", c.kept)
                   .add("kept_bytes", c.kept_bytes)
                   .text());
  else
    print_line(fmt::format("removed {} records of {} bytes; {} of {} bytes remain", c.removed, c.removed_bytes, c.kept,
                           c.kept_bytes));
  return 0;
}

int export_records(const CacheArguments& a, const Common& common) {
  const FolderStore store = open_store(a);
  std::optional<Graph> wanted;
  if (!a.program.empty()) wanted = main_graph(load_file(a.program).module);
  std::vector<CacheRecord> records;
  for (const StoredFile& f : store.list()) {
    if (kind_of(f) != "fusion") continue;
    Entry e = look_at(store, f);
    if (!e.error.empty()) continue;
    if (wanted) {
      const std::string_view fusion = part_of(e.record->key, "fusion");
      const Module m = decode_module(bytes_of(fusion));
      if (m.graphs.size() != 1 || !same_program(m.graphs[0], *wanted)) continue;
    }
    records.push_back(*std::move(e.record));
  }
  if (records.empty())
    throw Error(ErrorCode::kNotCached,
                wanted ? "the cache has no compiled fusion of this program; run it first"
                       : "the cache has no compiled fusion; run a program first",
                wanted ? "@" + wanted->name : store.folder());
  // The order of use is no part of what is shipped.
  std::ranges::sort(records, {}, [](const CacheRecord& r) { return key_bytes(r.key); });
  const size_t count = records.size();
  const std::string bytes = encode(pack(std::move(records)));
  write_file(a.file, bytes);
  if (common.json)
    print_line(JsonObject()
                   .add("file", a.file)
                   .add("records", static_cast<int64_t>(count))
                   .add("bytes", static_cast<int64_t>(bytes.size()))
                   .text());
  else
    print_line(fmt::format("{} compiled fusion{} in {}, {} bytes", count, count == 1 ? "" : "s", a.file, bytes.size()));
  return 0;
}

// Reads the file once: it may be a pipe.
Bundle exported_bundle(const std::string& path) {
  const std::vector<std::byte> content = read_file(path, limits::kFileBytes);
  if (is_record({reinterpret_cast<const uint8_t*>(content.data()), content.size()}))
    throw Error(ErrorCode::kBadInput,
                "the file is one record of a cache; `fusebox cache export` packs records into a bundle", path);
  LoadedFile file = load_bytes(path, content);
  if (!file.bundle)
    throw Error(ErrorCode::kNotABundle, "the file is no bundle; make one with `fusebox cache export`", path);
  if (file.bundle->records.empty())
    throw Error(ErrorCode::kBadInput, "the bundle carries no compiled fusion; make one with `fusebox cache export`",
                path);
  return *std::move(file.bundle);
}

int import_records(const CacheArguments& a, const Common& common) {
  FolderStore store = open_store(a);
  const Bundle bundle = exported_bundle(a.file);
  bool is_complete = true;
  for (const Unpacked& u : unpack(bundle, store, {.trust_binaries = a.trust_binaries})) {
    is_complete &= u.skipped.empty();
    if (common.json) {
      JsonObject o;
      o.add("program", u.program).add("target", u.target).add("ok", u.skipped.empty()).add("kernels", u.kernels);
      o.add("compiled", u.compiled);
      if (!u.skipped.empty()) o.add("skipped", u.skipped);
      print_line(o.text());
    } else {
      print_line(u.skipped.empty() ? fmt::format("@{} for {}: {} kernel{}, {} compiled again", u.program, u.target,
                                                 u.kernels, u.kernels == 1 ? "" : "s", u.compiled)
                                   : fmt::format("@{} for {}: skipped: {}", u.program, u.target, u.skipped));
    }
  }
  return is_complete ? 0 : 1;
}

}  // namespace

int cache_command(const CacheArguments& a, Common& common) {
  if (a.action == "ls") return list(a, common);
  if (a.action == "show") return show(a, common);
  if (a.action == "verify") return verify(a, common);
  if (a.action == "gc") return collect(a, common);
  if (a.action == "export") return export_records(a, common);
  check_internal(a.action == "import", "the command line takes no other action");
  return import_records(a, common);
}

void add_cache(CLI::App& app, Common& common, Chosen& chosen) {
  static CacheArguments a;
  CLI::App* const cache = add_subcommand(
      app, "cache", "Shows, checks and ships the compiled fusions that are kept on disk.",
      R"(A run on a GPU keeps its plan and the binaries of its kernels in a folder: FUSEBOX_CACHE_DIR, by default fusebox in the user's
cache folder. A later process that runs the same fusion takes them from there. On the host executor this happens only
where FUSEBOX_CACHE_DIR is set. FUSEBOX_CACHE_BYTES bounds the folder's size (0: no cache), FUSEBOX_LOG=cache shows each hit
and miss. A record that is damaged, or of another build, counts as missing. The folder must belong to the user alone.

  fusebox cache ls
  fusebox cache export app.fuse --program softmax.fir
  fusebox cache import app.fuse && fusebox run softmax.fir --cache-only)");
  cache->require_subcommand(1);
  const auto add = [&](const char* name, const char* about, const char* footer) {
    CLI::App* const c = add_subcommand(*cache, name, about, footer);
    c->add_option("--folder", a.folder, "The cache's folder; default: as the environment says");
    c->callback([&common, &chosen, name] {
      a.action = name;
      chosen = [&common] { return cache_command(a, common); };
    });
    return c;
  };
  add("ls", "Lists the records, the one used last first.", "  fusebox cache ls --json | jq -r .program");
  add("show", "Shows the key, the programs' digests and the binaries of a record.", "  fusebox cache show 1f0c")
      ->add_option("NAME", a.file, "The beginning of the record's name")
      ->required();
  add("verify", "Reads every record as a run does. Exits 1 if one cannot be used.", "  fusebox cache verify --remove")
      ->add_flag("--remove", a.remove, "Removes the records that cannot be used");
  add("gc", "Removes the records used least recently until the rest fits.", "  fusebox cache gc --bytes 0")
      ->add_option("--bytes", a.bytes, "The bytes that may remain; default: FUSEBOX_CACHE_BYTES, or 1 GiB")
      ->transform(whole_number(0, kMostSigned));
  CLI::App* c = add("export", "Writes compiled fusions with their binaries to one bundle.",
                    R"(The bundle has the plans of every size and device that were run here.

  fusebox cache export app.fuse --program softmax.fir)");
  c->add_option("FILE", a.file, "A .fuse to write")->required();
  c->add_option("--program", a.program, "Only the fusions of this program, a .fir or a .fuse");
  c = add(
      "import", "Puts the compiled fusions of a bundle into the cache.",
      R"(Each schedule is lowered again, and a record is refused if its kernels differ. The binaries are compiled again from these kernels;
with --trust-binaries the code in the bundle will be loaded as it is. A record of another build is skipped, with exit code 1.

  fusebox cache import app.fuse --trust-binaries)");
  c->add_option("FILE", a.file, "A bundle that `fusebox cache export` made")->required();
  c->add_flag("--trust-binaries", a.trust_binaries, "Takes the binaries as they are, without a compiler");
}

}  // namespace fusebox::cli
