// The file tests of bytes (file_kinds.h).
#include <fmt/format.h>
#include <functional>

#include "fuzz/known/file_kinds.h"
#include "fuzz/known/outcome_list.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/verify/verify.h"
#include "passes/pipeline/signature.h"
#include "replay/cache/compiled_record.h"
#include "replay/data/input.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "serde/launch_file.h"
#include "serde/record_file.h"

namespace fusebox::fuzz {
namespace {

// The binary of a kernel, made up: all that it has is other than nothing.
KernelImage image_of(const Graph& kernel) {
  KernelImage i;
  i.kernel = digest(kernel);
  i.source = digest_bytes("source");
  i.entry = "fusebox_kernel";
  i.architecture = "sm_90a";
  i.options = "-O3 --fmad=false";
  i.compiler = "nvrtc 13.0";
  i.numerics = 7;
  i.registers = 40;
  i.local_bytes = 8;
  i.shared_bytes = 16;
  i.binary = {1, 2, 3, 0, 255};
  i.is_cooperative = i.opts_in_shared = i.is_dependent = true;
  return i;
}

// Everything that the program is kept as.
class Kept {
 public:
  explicit Kept(const Module& m) : module_(m), compiled_(compiled_for_host(m, {})) {
    const Graph& fusion = main_graph(m);
    CompileOptions options;
    options.inputs = bound_inputs(host_arguments(m, fusion));
    options.device = default_device();
    signature_ = signature_of(fusion, options);
    for (size_t i = 0; i < compiled_.kernels.size(); ++i)
      if (compiled_.segmentation.segments[i].executor == SegmentExecutor::kKernel)
        images_.push_back(image_of(compiled_.kernels[i]));
    launch_ = launch_record(compiled_);
    if (images_.empty() || !launch_)
      throw Error(ErrorCode::kUnsupportedOp, "the file's program has no kernel or no launch record");
  }

  CacheRecord record() const {
    CacheRecord r{.key = {key_part("fusion", "f"), key_part("steps", "")}, .compiled = {}, .image = {}};
    r.compiled = compiled_fusion(compiled_, images_, signature_);
    for (const KernelImage& i : images_) r.compiled->plans.push_back(i.kernel);
    return r;
  }
  CacheRecord record_of_image() const {
    return {.key = {key_part("kernel", "k")}, .compiled = {}, .image = images_[0]};
  }
  // All fields of a bundle. The stages are the program as it was written, and its kernels.
  Bundle bundle() const {
    Bundle b;
    b.program = main_graph(module_).name;
    b.stages.push_back({Stage::kFusion, module_});
    b.stages.push_back({Stage::kKernel, {}});
    for (const Graph& g : compiled_.kernels) b.stages[1].module.graphs.push_back(g);
    b.steps = module_.step_lists;
    b.options = {{"index_bits", "64"}, {"defects", ""}};
    b.digests = {{"fusion", images_[0].kernel}, {"cuda", images_[0].source}};
    Rank& rank = b.ranks.emplace_back();
    rank.executor = "host";
    for (const InputSpec& spec : host_specs(module_, main_graph(module_)).specs) rank.inputs.push_back({spec, {}});
    InputRecord& exact = rank.inputs.emplace_back();
    exact.spec.name = "e";
    exact.spec.dtype = Dtype::kHalf;
    exact.spec.shape = {2};
    exact.bytes = {1, 2, 3, 4};
    rank.outputs.push_back({"y", Dtype::kFloat, {2, 3}, {3, 1}, images_[0].source});
    rank.crossings.push_back({"s0", "c", Dtype::kHalf, {4}, {2}});
    rank.environment = {{"gpu", "none"}, {"driver", "1"}};
    b.ranks.push_back({"cuda", {}, {}, Failure{ErrorCode::kOutOfBounds, "a read beyond", "%y[3]"}, {}, {}});
    b.artifacts.push_back({"k", "sm_90a", "void k() {}", {7, 8}});
    b.records.push_back(record_of_image());
    return b;
  }
  const Module& module_of() const { return module_; }
  const LaunchRecord& launch() const { return *launch_; }
  const InputSignature& signature() const { return signature_; }

 private:
  const Module& module_;
  Compiled compiled_;
  InputSignature signature_;
  std::vector<KernelImage> images_;
  std::optional<LaunchRecord> launch_;
};

// A value as its bytes, and bytes as a value's bytes once they have been read.
struct File {
  std::string name;
  std::string bytes;
  std::function<std::string(std::string_view)> again;
};

template <class T, class Decode>
File file_of(std::string name, const T& value, Decode decode) {
  const std::string bytes = encode(value);
  check_internal(decode(bytes_of(bytes)) == value, "the bytes are read as another value");
  return {std::move(name), bytes, [decode](std::string_view given) { return encode(decode(bytes_of(given))); }};
}

std::vector<File> files_of(const Kept& kept) {
  const auto record = [](std::span<const uint8_t> bytes) { return decode_record_structure(bytes); };
  return {
      file_of("module", kept.module_of(),
              [](std::span<const uint8_t> bytes) { return decode_module_structure(bytes); }),
      file_of("bundle", kept.bundle(), [](std::span<const uint8_t> bytes) { return decode_bundle_structure(bytes); }),
      file_of("record", kept.record(), record),
      file_of("image", kept.record_of_image(), record),
      file_of("launch", kept.launch(), decode_launch_record),
      file_of("signature", kept.signature(), decode_signature)};
}

// Each kind of bytes, and what begins like them, read as each of the others.
std::string read_as_others(const std::vector<File>& files) {
  std::string out;
  for (const File& of : files)
    for (size_t length : {size_t{0}, size_t{4}, size_t{7}, size_t{8}, size_t{9}, size_t{31}, size_t{32}, size_t{40},
                          of.bytes.size() - 1, of.bytes.size()}) {
      const std::string bytes = of.bytes.substr(0, length);
      out += fmt::format("{} {}: is {}{}{}\n", of.name,
                         length + 1 < of.bytes.size() ? fmt::format("up to byte {}", length)
                         : length < of.bytes.size()   ? "without its last byte"
                                                      : "whole",
                         is_module(bytes_of(bytes)) ? "a module " : "", is_bundle(bytes_of(bytes)) ? "a bundle " : "",
                         is_record(bytes_of(bytes)) ? "a record " : "");
      for (const File& as : files) {
        const std::string read = outcome_text([&] { return as.again(bytes) == bytes ? "the same bytes" : "others"; });
        out += fmt::format("  {}: {}\n", as.name, read);
      }
    }
  return out;
}

// Each byte with its lowest bit changed, its highest bit, and all of them; of a long file one of the three. A record's checksum is
// that of the new bytes.
std::string with_changes(const File& file) {
  constexpr size_t kLong = 1500;
  const size_t head = is_record(bytes_of(file.bytes)) ? record_file("").size() : 0;
  const size_t every = file.bytes.size() > kLong ? 3 : 1;
  OutcomeList all;
  for (size_t i = 0; i < file.bytes.size(); ++i)
    for (const unsigned by : {1u, 0x80u, 0xffu}) {
      if ((i + by) % every != 0) continue;
      std::string bytes = file.bytes;
      bytes[i] = static_cast<char>(static_cast<unsigned char>(bytes[i]) ^ by);
      if (i >= head && head > 0) bytes = record_file(std::string_view(bytes).substr(head));
      all.add(fmt::format("byte {} is {}", i, static_cast<unsigned char>(file.bytes[i]) ^ by),
              [&] { return file.again(bytes); });
    }
  Checksum sum;
  sum.add(file.bytes);
  return fmt::format("{} bytes, checksum {}\n{}", file.bytes.size(), sum.text(), all.text());
}

}  // namespace

std::string bytes_text(const Module& m, const FileRequest& r) {
  verify(m);
  const Kept kept(m);
  const std::vector<File> files = files_of(kept);
  if (r.has("kinds")) return read_as_others(files);
  for (const File& file : files)
    if (r.has(file.name)) return with_changes(file);
  throw Error(ErrorCode::kUnknownName, "no file of this kind is made of a program; correct the word behind `bytes`");
}

}  // namespace fusebox::fuzz
