#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <set>

#include "codegen/cuda.h"
#include "ir/table/error.h"
#include "replay/data/parts.h"
#include "replay/device/compile_together.h"
#include "replay/device/cuda_arena.h"
#include "replay/device/cuda_loader.h"
#include "replay/device/debug.h"
#include "replay/device/device.h"
#include "replay/device/loaded_modules.h"
#include "replay/device/profiler_name.h"

namespace fusebox {
namespace {

// The number of kernels that are compiled as one text.
constexpr size_t kKernelsPerModule = 8;

class CudaDeviceRunner : public Device {
 public:
  explicit CudaDeviceRunner(const CudaDeviceOptions& options)
      : session_(cuda_backend().open(options.ordinal)),
        modules_(std::make_shared<LoadedModules>(session_)),
        ordinal_(options.ordinal),
        texts_(options.texts),
        cached_(options.images),
        keeps_images_(options.keeps_images || options.images),
        may_compile_(options.may_compile) {
    if (options.arena_bytes > 0) arena_ = std::make_unique<CudaArena>(*session_, options.arena_bytes);
  }
  // A device may end anywhere: Python collects a definition inside of a capture too, where nobody may wait for the GPU. So
  // modules whose kernels may still run are unloaded later, and those that a graph needs when it has ended.
  ~CudaDeviceRunner() override {
    if (may_run_ && !modules_->empty()) session_->end_later(std::move(modules_));
  }

  std::string_view name() const override { return "cuda"; }

  RunTensor allocate(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides, bool zeroed) override {
    RunTensor t = place(dtype, std::move(shape), std::move(strides));
    // Unwritten memory must not be zero by luck. The arena's memory has the pattern already.
    if (t.pointer && (zeroed || t.owner))
      session_->fill(t.pointer, zeroed ? 0 : kUnwrittenByte, t.layout.storage_elems * size_bytes(dtype), stream_);
    return t;
  }

  RunTensor upload(const TensorData& from) override {
    RunTensor t = place(from.dtype, from.shape, from.strides);
    if (!t.pointer) return t;
    const int64_t size = size_bytes(from.dtype);
    if (!is_sparse(from)) {
      session_->copy_to_device(t.pointer, from.data(), t.layout.storage_elems * size, stream_);
      return t;
    }
    // Memory between the elements is NaN, −1 or true, as on the host.
    session_->fill(t.pointer, is_boolean(from.dtype) ? 1 : 0xff, t.layout.storage_elems * size, stream_);
    for (int64_t p : positions_of(from)) {
      const int64_t at = (p - from.offset) * size;
      session_->copy_to_device(t.pointer + static_cast<CudaPointer>(at), from.data() + at, size, stream_);
    }
    return t;
  }

  TensorData download(const RunTensor& t, const std::string&) override {
    TensorData result = allocate_tensor(t.layout.dtype, t.layout.shape, t.layout.strides);
    if (!t.pointer) return result;
    const int64_t size = size_bytes(t.layout.dtype);
    if (!is_sparse(result)) {
      session_->copy_to_host(result.data(), t.pointer, result.storage_elems * size, stream_);
      return result;
    }
    for (int64_t p : positions_of(result))
      session_->copy_to_host(result.data() + p * size, t.pointer + static_cast<CudaPointer>(p * size), size, stream_);
    return result;
  }

  void copy(const RunTensor& to, const RunTensor& from) override {
    // Bytes between the elements may be the caller's.
    if (to.layout.strides == from.layout.strides && to.layout.storage_elems <= element_count(to.layout.shape)) {
      if (to.pointer)
        session_->copy_on_device(to.pointer, from.pointer, to.layout.storage_elems * size_bytes(to.layout.dtype),
                                 stream_);
      return;
    }
    TensorData target = download(to, {});
    copy_elements(target, download(from, {}));
    if (to.pointer)
      session_->copy_to_device(to.pointer, target.data(), target.storage_elems * size_bytes(target.dtype), stream_);
  }

  int64_t alignment(const RunTensor& t) override {
    return t.pointer == 0 ? alignment_of(0) : alignment_of_view(t.pointer, t.before);
  }

  size_t prepare(const Graph& kernel, const KernelUse& use) override {
    CudaSource source = emit_cuda(kernel, {.reads_apart = use.reads_apart});
    if (const auto given = texts_.find(kernel.name); given != texts_.end()) source.text = given->second;
    if (const auto it = by_text_.find(source.text); it != by_text_.end()) return it->second;
    const bool is_given = texts_.contains(kernel.name);
    const LoadedImage loaded = is_given ? load(compiled(kernel, source), kernel) : load_known(kernel, source);
    modules_->add(loaded.kernel);
    return keep(kernel, source.text, loaded);
  }

  void offer(std::span<const KernelImage> images) override {
    for (const KernelImage& image : images) offered_.emplace(image.source, image);
  }
  std::vector<KernelImage> images() const override {
    std::vector<KernelImage> all;
    for (const auto& [source, image] : images_) all.push_back(image);
    return all;
  }

  size_t prepare_all(std::span<const Graph* const> kernels, const PrepareOptions& options) override {
    struct Module {
      std::vector<const Graph*> kernels;
      std::vector<std::string> texts;  // of each kernel alone
      CudaModuleSource source;
      std::optional<CudaBinary> binary;
    };
    std::vector<Module> modules;
    std::set<std::string> seen;
    // A binary that is kept is one kernel's. Few kernels are ready sooner if each is compiled by itself.
    if (keeps_images_ || kernels.size() <= static_cast<size_t>(std::max(options.threads, 1)))
      return compile_ahead(kernels, options);
    for (const Graph* kernel : kernels) {
      std::string text = emit_cuda(*kernel).text;
      if (by_text_.contains(text) || texts_.contains(kernel->name) || !seen.insert(text).second) continue;
      if (modules.empty() || modules.back().kernels.size() == kKernelsPerModule) modules.emplace_back();
      modules.back().kernels.push_back(kernel);
      modules.back().texts.push_back(std::move(text));
    }
    for (Module& m : modules) m.source = emit_cuda_module(m.kernels);
    std::atomic<size_t> next = 0;
    const auto work = [&](int) {
      for (size_t i = next++; i < modules.size() && (!options.go_on || options.go_on()); i = next++) {
        try {
          modules[i].binary = compile(modules[i].source.text);
        } catch (const Error&) {
          // One bad kernel makes the whole module fail. `prepare` compiles each alone and reports the bad one.
        }
      }
    };
    run_parts(std::max(1, std::min(options.threads, static_cast<int>(modules.size()))), work);
    for (const Module& m : modules) {
      if (!m.binary) continue;
      binaries_.push_back(digest_bytes(m.binary->bytes));
      const std::vector<CudaKernel> loaded = session_->load_all(m.binary->bytes, m.source.entries);
      modules_->add(loaded[0]);
      for (size_t i = 0; i < loaded.size(); ++i)
        keep(*m.kernels[i], m.texts[i], opted_in(loaded[i], launch_needs(*m.kernels[i])));
    }
    return seen.size();
  }

  void begin_program() override {
    if (arena_) arena_->begin();
  }
  std::string strayed() override { return arena_ ? arena_->strayed() : std::string(); }

  void launch(size_t kernel, const LaunchDims& dims, std::span<const RunArgument> arguments) override {
    const Prepared& p = kernels_[kernel];
    // The value of each argument, and its address. A value is a pointer, or a scalar in the width that the kernel
    // declares.
    std::vector<std::array<uint64_t, 2>> values(arguments.size());
    std::vector<void*> addresses(arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      const RunArgument& a = arguments[i];
      if (a.is_scalar)
        store_scalar(values[i], a);
      else
        values[i][0] = a.tensor.pointer;
      addresses[i] = values[i].data();
    }
    may_run_ = true;
    if (stream_ != nullptr) keep_for_graph(stream_);
    session_->launch(p.kernel, {.grid = dims.grid,
                                .block = dims.block,
                                .shared_bytes = dims.shared_bytes,
                                .is_cooperative = p.needs.is_cooperative,
                                .is_dependent = p.needs.is_dependent,
                                .arguments = addresses,
                                .stream = stream_});
    if (debug_) session_->synchronize(stream_);
  }

  std::optional<CudaReadyLaunch> ready(size_t kernel, const LaunchDims& dims) override {
    const Prepared& p = kernels_[kernel];
    may_run_ = is_started_elsewhere_ = true;
    return session_->ready(p.kernel, {.grid = dims.grid,
                                      .block = dims.block,
                                      .shared_bytes = dims.shared_bytes,
                                      .is_cooperative = p.needs.is_cooperative,
                                      .is_dependent = p.needs.is_dependent});
  }
  CudaSession* session() override { return session_.get(); }
  void keep_for_graph(CudaStream stream) override {
    const std::optional<uint64_t> capture = session_->capture_number(stream);
    if (!capture || kept_for_ == *capture) return;
    session_->keep_for_graph(stream, modules_);
    kept_for_ = *capture;
  }

  void synchronize() override {
    session_->synchronize(stream_);
    may_run_ = is_started_elsewhere_;
  }
  void set_stream(CudaStream stream) override { stream_ = stream; }
  AtenPlace aten_place() const override { return {.is_gpu = true, .ordinal = ordinal_, .stream = stream_}; }

  std::vector<Digest> binaries() const override { return binaries_; }

 private:
  struct Prepared {
    CudaKernel kernel;
    LaunchNeeds needs;
    int index_bits = 64;
  };

  // An image in the driver.
  struct LoadedImage {
    CudaKernel kernel;
    LaunchNeeds needs;
  };

  LoadedImage opted_in(CudaKernel kernel, const LaunchNeeds& needs) {
    if (needs.opts_in_shared) session_->opt_in_shared(kernel);
    return {kernel, needs};
  }

  // Digests and caches see the binary as it was compiled; the driver and profilers see the readable name.
  LoadedImage load(KernelImage image, const Graph& kernel) {
    const std::string_view bytes(reinterpret_cast<const char*>(image.binary.data()), image.binary.size());
    const NamedBinary named = with_profiler_name(bytes, image.entry, kernel);
    const CudaKernel loaded = session_->load(named.bytes, named.entry);
    binaries_.push_back(digest_bytes(bytes));
    const LoadedImage result = opted_in(loaded, launch_needs(image));
    image.registers = loaded.registers;
    image.local_bytes = loaded.local_bytes;
    image.shared_bytes = loaded.shared_bytes;
    // A text that was given is not the kernel's own.
    if (keeps_images_ && !texts_.contains(kernel.name)) images_.insert_or_assign(image.source, std::move(image));
    return result;
  }

  // Nothing if the driver does not take the binary: it may be older than the compiler that made it.
  std::optional<LoadedImage> try_load(const KernelImage& image, const Graph& kernel) {
    try {
      return load(image, kernel);
    } catch (const Error& e) {
      if (e.code != ErrorCode::kDeviceFailure) throw;
      return std::nullopt;
    }
  }

  KernelImage compiled(const Graph& kernel, const CudaSource& source) {
    if (!may_compile_)
      throw Error(ErrorCode::kNotCached,
                  "the cache has no binary of this kernel; run once without --cache-only, or import it", source.entry);
    return image_of(image_request(kernel, source, session_->device().architecture), compile(source.text).bytes);
  }

  // An image that was offered, else one of the cache, else a new one.
  LoadedImage load_known(const Graph& kernel, const CudaSource& source) {
    const ImageRequest request = image_request(kernel, source, session_->device().architecture);
    if (const auto it = offered_.find(digest_bytes(source.text)); it != offered_.end() && fits(it->second, request))
      if (const auto loaded = try_load(it->second, kernel)) return *loaded;
    // `compile_ahead` has asked before it compiled.
    if (cached_ && !ahead_.contains(source.text))
      if (const auto found = cached_->find(request))
        if (const auto loaded = try_load(*found, kernel)) return *loaded;
    const LoadedImage loaded = load(compiled(kernel, source), kernel);
    if (cached_) cached_->keep(request, images_.at(digest_bytes(source.text)));
    return loaded;
  }

  // Compiles the kernels that no cache has, several at once. `prepare` loads them in its own order.
  size_t compile_ahead(std::span<const Graph* const> kernels, const PrepareOptions& options) {
    std::set<std::string> seen;
    std::vector<std::string> wanted;
    for (const Graph* kernel : kernels) {
      const CudaSource source = emit_cuda(*kernel);
      if (by_text_.contains(source.text) || ahead_.contains(source.text) || texts_.contains(kernel->name)) continue;
      if (!seen.insert(source.text).second || is_offered(*kernel, source)) continue;
      if (may_compile_) wanted.push_back(source.text);
    }
    std::vector<CompiledText> made =
        compile_together(wanted, session_->device().architecture, {.threads = options.threads, .go_on = options.go_on});
    // A kernel that does not compile is left to `prepare`, which throws its error.
    for (size_t i = 0; i < made.size(); ++i)
      if (made[i].binary) ahead_.emplace(wanted[i], *std::move(made[i].binary));
    return seen.size();
  }

  // Whether a binary is there that `load_cached` will take. Asks the cache once for each text.
  bool is_offered(const Graph& kernel, const CudaSource& source) {
    const ImageRequest request = image_request(kernel, source, session_->device().architecture);
    if (const auto it = offered_.find(digest_bytes(source.text)); it != offered_.end() && fits(it->second, request))
      return true;
    auto found = cached_ ? cached_->find(request) : std::nullopt;
    if (!found) return false;
    offered_.insert_or_assign(found->source, *std::move(found));
    return true;
  }

  CudaBinary compile(const std::string& text) {
    if (auto made = ahead_.extract(text); !made.empty()) return std::move(made.mapped());
    return cuda_backend().compile({.text = text,
                                   .headers = cuda_headers(),
                                   .architecture = session_->device().architecture,
                                   .options = cuda_compile_options()});
  }

  size_t keep(const Graph& kernel, const std::string& text, const LoadedImage& loaded) {
    Prepared p;
    p.kernel = loaded.kernel;
    session_->set_name(p.kernel, kernel.name);
    p.needs = loaded.needs;
    p.index_bits = kernel.index_bits;
    kernels_.push_back(p);
    return by_text_[text] = kernels_.size() - 1;
  }

  // Little-endian: the low bytes of the bits are the value in every narrower width, so an index's low half is its
  // 32-bit value.
  static void store_scalar(std::array<uint64_t, 2>& to, const RunArgument& a) {
    if (a.dtype == Dtype::kComplexFloat)
      to[0] = (a.bits.low & 0xffffffffu) | (a.bits.high << 32);
    else
      to = {a.bits.low, a.bits.high};
  }

  RunTensor place(Dtype dtype, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    RunTensor t;
    if (strides.empty()) strides = contiguous_strides(shape);
    t.layout.dtype = dtype;
    t.layout.storage_elems = span_elems(shape, strides);
    t.layout.shape = std::move(shape);
    t.layout.strides = std::move(strides);
    const int64_t bytes = t.layout.storage_elems * size_bytes(dtype);
    if (bytes == 0) return t;
    if (arena_ && (t.pointer = arena_->allocate(bytes)) != 0) return t;
    t.pointer = session_->allocate(bytes);
    t.owner = std::shared_ptr<void>(nullptr, [session = session_, pointer = t.pointer](void*) {
      try {
        session->free(pointer);
      } catch (const Error&) {
        // A failed device has lost its memory already.
      }
    });
    return t;
  }

  std::shared_ptr<CudaSession> session_;
  std::shared_ptr<LoadedModules> modules_;
  const int ordinal_;
  std::map<std::string, std::string> texts_;
  std::unique_ptr<CudaArena> arena_;
  std::vector<Prepared> kernels_;
  std::vector<Digest> binaries_;
  std::map<std::string, size_t> by_text_;
  std::map<std::string, CudaBinary> ahead_;  // by text: compiled, and not loaded yet
  std::shared_ptr<KernelImages> cached_;
  bool keeps_images_ = false, may_compile_ = true;
  std::map<Digest, KernelImage> offered_, images_;  // by the digest of the text
  CudaStream stream_ = nullptr;
  bool may_run_ = false, is_started_elsewhere_ = false;  // kernels, or launches that `ready` gave out
  std::atomic<uint64_t> kept_for_ = ~uint64_t{0};        // the number of the last capture whose graph keeps the modules
  const bool debug_ = debug_launches();
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(const CudaDeviceOptions& options) {
  return std::make_unique<CudaDeviceRunner>(options);
}

}  // namespace fusebox
