#include "replay/cli/load.h"

#include <cctype>
#include <filesystem>

#include "ir/error.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "replay/file.h"
#include "serde/decode.h"
#include "serde/limits.h"

namespace fusebox::cli {

LoadedFile load_file(const std::string& path) {
  const std::vector<std::byte> content = read_file(path, limits::kFileBytes);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  LoadedFile file;
  file.path = path;
  if (is_module(bytes)) {
    file.module = decode_module(bytes);
  } else if (is_bundle(bytes) || std::filesystem::path(path).extension() == ".fuse") {
    file.bundle = decode_bundle(bytes);
    const Module* fusion = find_stage(*file.bundle, Stage::kFusion);
    if (!fusion) throw Error(ErrorCode::kInvalidField, "the bundle holds no fusion; record it again", "stages");
    file.module = *fusion;
  } else {
    try {
      file.module = parse_module({reinterpret_cast<const char*>(content.data()), content.size()});
    } catch (const Error& e) {
      const bool is_position = !e.place.empty() && std::isdigit(static_cast<unsigned char>(e.place[0])) != 0;
      throw Error(e.code, e.what(), is_position ? path + ":" + e.place : e.place);
    }
    verify(file.module);
  }
  if (file.module.graphs.empty())
    throw Error(ErrorCode::kInvalidGraph, "the file holds no program; write one, such as `fusion @f { … }`", path);
  return file;
}

Bundle subject_of(const LoadedFile& file) {
  if (file.bundle) return *file.bundle;
  Bundle b;
  b.program = main_graph(file.module).name;
  b.stages.push_back({Stage::kFusion, file.module});
  return b;
}

Bundle load_bundle(const std::string& path) {
  LoadedFile file = load_file(path);
  if (!file.bundle)
    throw Error(ErrorCode::kNotABundle,
                "only a bundle can be replayed; make one with `fusebox run FILE --record OUT.fuse`", path);
  return std::move(*file.bundle);
}

}  // namespace fusebox::cli
