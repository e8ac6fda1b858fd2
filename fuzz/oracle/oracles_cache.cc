// The oracle of caches. It keeps the case's program in a store of memory, as a run keeps it on disk, and asks for it: as
// another process would, with one fact changed, and with damaged bytes.
#include <algorithm>
#include <utility>

#include "codegen/cuda.h"
#include "fuzz/base/random_source.h"
#include "fuzz/oracle/oracle.h"
#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "passes/pipeline/signature.h"
#include "passes/schedule/size_classes.h"
#include "replay/cache/cache_key.h"
#include "replay/cache/compiled_record.h"
#include "replay/cache/fusion_cache.h"
#include "replay/cache/pack.h"
#include "replay/run/aten_segment.h"
#include "replay/run/judge.h"
#include "serde/decode.h"
#include "serde/encode.h"
#include "serde/record_file.h"

namespace fusebox::fuzz {
namespace {

constexpr Defect kOfCaches[] = {Defect::kCacheKeySteps,   Defect::kCacheKeyConstants, Defect::kCacheKeyWidth,
                                Defect::kCacheKeyTarget,  Defect::kCacheKeyNumerics,  Defect::kCacheKeyOptions,
                                Defect::kCacheDigestOnly, Defect::kCacheStaleImage,   Defect::kCacheServesAll,
                                Defect::kRecordUnchecked, Defect::kRecordVersion};

// A program with any other defect is never cached.
bool may_be_cached(const Defects& defects) {
  return std::ranges::all_of(defects.list(), [](Defect d) { return std::ranges::count(kOfCaches, d) > 0; });
}

class CacheJudge {
 public:
  CacheJudge(OracleRun& run, const Compiled& made)
      : run_(run), made_(made), random_(run.subject().seed + 59 * run.subject().lineage.size()) {
    options_.inputs = bound_inputs(run.subject().inputs());
    options_.infer = infer_by_aten();
    if (const auto* steps = run.subject().steps()) options_.steps = *steps;
  }

  void judge() {
    FusionCache cold = cache();
    if (cold.find(request())) return report("hit", "an empty cache has a program");
    cold.keep(request(), made_, {});
    if (store_->records.size() != 1) return report("keep", "a program that was kept is not in the store");
    FusionCache warm = cache();
    judge_hit(warm, "from the store");
    judge_keys();
    judge_exact_keys();
    judge_sizes();
    judge_collision();
    judge_damage();
    judge_images();
    judge_import();
  }

 private:
  FusionCache cache() { return FusionCache(store_, {.log = {}, .defects = run_.options().defects}); }
  FusionRequest request() const {
    return {.fusion = run_.fusion(), .bindings = run_.sizes(), .options = options_, .target = "host"};
  }
  void report(std::string_view check, std::string message) { run_.report("cache", check, "", std::move(message)); }

  // The program that comes back is the one that was kept, and gives its bits.
  void judge_hit(FusionCache& warm, const std::string& where) {
    const auto found = warm.find(request());
    if (!found) return report("miss", "a program that was kept is not found " + where);
    if (!(compiled_fusion(*found->compiled, {}) == compiled_fusion(made_, {})))
      return report("digests", "the program " + where + " differs from the one that was kept");
    const HostRun& was = run_.scheduled();
    if (!was.ok()) return;
    const HostRun now = run_.run_compiled(*found->compiled);
    if (!now.ok()) return run_.report("cache", *now.failure, "the program " + where);
    for (size_t i = 0; i < now.outputs.size(); ++i)
      if (first_difference(as_tensor(was.outputs[i]), as_tensor(now.outputs[i])))
        return report("differs", "the program " + where + " gives other bits");
  }

  // Keys tell each fact that a program depends on.
  void judge_keys() {
    const Defects& defects = run_.options().defects;
    const CacheKey key = fusion_key(request(), KeySizes::kAny, defects);
    const auto expect_other = [&](const FusionRequest& r, const std::string& fact) {
      FusionCache warm = cache();
      try {
        if (fusion_key(r, KeySizes::kAny, defects) == key || warm.find(r))
          report("key", "another " + fact + " has the same key");
      } catch (const Error&) {
        // Without its steps, the fusion's symbolic axes need not resolve.
      }
    };
    CompileOptions other = options_;
    if (other.steps)
      other.steps.reset();
    else
      other.steps.emplace();
    FusionRequest r{.fusion = run_.fusion(), .bindings = run_.sizes(), .options = other, .target = "host"};
    expect_other(r, "list of steps");
    other = options_;
    other.index_bits = made_.index_bits;
    expect_other(r, "index width");
    other = options_;
    r.target = "cuda sm_90a";
    expect_other(r, "target");
    r.target = "host";
    ++r.numerics;
    expect_other(r, "version of the numerics");
    --r.numerics;
    const Graph constant = with_other_constant();
    if (digest(constant) != digest(run_.fusion()))
      expect_other({.fusion = constant, .bindings = run_.sizes(), .options = options_, .target = "host"}, "constant");
  }

  // Where a plan depends on sizes, its key tells each of them, each stride, and how addresses are aligned.
  void judge_exact_keys() {
    if (options_.inputs.empty()) return;
    const Defects& defects = run_.options().defects;
    const CacheKey key = fusion_key(request(), KeySizes::kExact, defects);
    const std::vector<ValueId> names = inputs(run_.fusion());
    const auto expect_other = [&](std::string_view fact, const auto& change) {
      CompileOptions other = options_;
      const FusionRequest r{.fusion = run_.fusion(), .bindings = run_.sizes(), .options = other, .target = "host"};
      const size_t i = random_.below(other.inputs.size());
      if (change(other.inputs[i], names[i]) && fusion_key(r, KeySizes::kExact, defects) == key)
        report("key", "another " + std::string(fact) + " of an input has the same key");
    };
    const auto other_number = [&](std::vector<int64_t>& list) {
      if (!list.empty()) list[random_.below(list.size())] += int64_t{1} << random_.below(40);
      return !list.empty();
    };
    for (int i = 0; i < 2; ++i) {
      expect_other("extent", [&](BoundInput& b, ValueId) { return other_number(b.shape); });
      expect_other("stride", [&](BoundInput& b, ValueId) { return other_number(b.strides); });
    }
    expect_other("alignment", [](BoundInput& b, ValueId) { return ++b.align, !b.is_scalar; });
    const std::vector<bool> shapes = shaping_scalars(run_.fusion());
    expect_other("size", [&](BoundInput& b, ValueId v) { return b.bits.low ^= 1, b.is_scalar && shapes[v.index]; });
    expect_other("second half of a size",
                 [&](BoundInput& b, ValueId v) { return b.bits.high ^= 1, b.is_scalar && shapes[v.index]; });
  }

  // The fusion with the lowest bit of a float constant changed, which changes no shape.
  Graph with_other_constant() {
    Graph g = run_.fusion();
    std::vector<ValueId> floats;
    for (size_t i = 0; i < g.values.size(); ++i)
      if (g.values[i].constant && (g.values[i].dtype == Dtype::kFloat || g.values[i].dtype == Dtype::kDouble))
        floats.emplace_back(i);
    if (!floats.empty()) g[random_.pick(floats)].constant->low ^= 1;
    return g;
  }

  // A program is found for other sizes if and only if it serves them.
  void judge_sizes() {
    if (made_.index_bits != 32) return;  // kept for its own sizes alone
    judge_sizes(int64_t{1} << random_.below(36));
    judge_sizes(int64_t{1} << 35);
  }
  void judge_sizes(int64_t factor) {
    CompileOptions other = options_;
    size_t next = 0;
    for (ValueId v : inputs(run_.fusion())) {
      BoundInput& input = other.inputs[next++];
      if (input.is_scalar) continue;
      const auto axes = allocation_axes(v);
      int64_t stride = 1;
      for (size_t i = axes.size(); i-- > 0;) {
        const auto extent = axes[i];
        if (!extent) return;  // a layout that is not plain
        if (input.shape[i] > 1 && !run_.fusion()[*extent].constant) input.shape[i] *= factor;
      }
      input.strides.assign(input.shape.size(), 1);
      for (size_t i = input.shape.size(); i-- > 0;) {
        input.strides[i] = stride;
        if (__builtin_mul_overflow(stride, std::max<int64_t>(input.shape[i], 1), &stride)) return;
      }
    }
    bool is_served = false;
    Bindings sizes;
    try {
      sizes = bind_sizes(run_.fusion(), other.inputs);
      is_served = serves(made_, run_.fusion(), sizes, other);
    } catch (const Error&) {
      return;  // the sizes do not fit
    }
    FusionCache warm = cache();
    const bool is_hit =
        warm.find({.fusion = run_.fusion(), .bindings = sizes, .options = other, .target = "host"}).has_value();
    if (is_hit != is_served)
      report("sizes", is_hit ? "a program is found for sizes that it does not serve"
                             : "a program that serves the sizes is not found for them");
  }

  // The extents of an input's axes; none for a broadcast or an axis that another one moved before.
  std::vector<std::optional<ValueId>> allocation_axes(ValueId v) const {
    const Graph& g = run_.fusion();
    const Tensor& t = g.tensor_of(v);
    std::vector<std::optional<ValueId>> result;
    for (DomainId d : t.logical) {
      const bool is_plain = g[d].iter_type == IterType::kIteration && t.allocation.empty() && g[d].extent;
      result.push_back(is_plain ? std::optional(g[d].extent) : std::nullopt);
    }
    return result;
  }

  // A record of another key in the place of the wanted one.
  void judge_collision() {
    auto& [name, bytes] = *store_->records.begin();
    const std::string kept = bytes;
    // Only its key tells that it is another one: its inputs are those of the request.
    CacheRecord other{.key = fusion_key(request(), KeySizes::kAny),
                      .compiled = compiled_fusion(made_, {}, signature_of(run_.fusion(), options_)),
                      .image = {}};
    other.key.push_back(key_part("other", "1"));
    bytes = encode(other);
    FusionCache warm = cache();
    if (warm.find(request())) report("collision", "a record of another key is taken for the wanted one");
    bytes = kept;
  }

  void judge_damage() {
    auto& [name, bytes] = *store_->records.begin();
    const std::string kept = bytes;
    const auto expect_miss = [&](const std::string& damage) {
      FusionCache warm = cache();
      if (bytes != kept && warm.find(request())) report("damage", "a record with " + damage + " is used");
      bytes = kept;
    };
    for (int i = 0; i < 4; ++i) {
      bytes[random_.below(bytes.size())] ^= static_cast<char>(1 << random_.below(8));
      expect_miss("a wrong bit");
    }
    // A name that nothing compares: only the checksum tells.
    if (const size_t at = bytes.rfind(made_.host.name); at != std::string::npos) {
      bytes[at] ^= 1;
      expect_miss("another name");
    }
    bytes.resize(random_.below(bytes.size()));
    expect_miss("its end cut off");
    bytes[8] = static_cast<char>(bytes[8] + 1);
    expect_miss("another version");
  }

  void judge_images() {
    const auto kernel = std::ranges::find_if(made_.kernels, [](const Graph& k) { return !k.ops.empty(); });
    if (kernel == made_.kernels.end()) return;
    const CudaSource source = emit_cuda(*kernel);
    ImageRequest wanted{.kernel = digest(*kernel),
                        .text = source.text,
                        .entry = source.entry,
                        .architecture = "sm_90a",
                        .options = "--fmad=false",
                        .compiler = "nvrtc 13.0",
                        .numerics = 1};
    KernelImage image = image_of(wanted, "binary of the kernel");
    FusionCache first = cache();
    first.keep(wanted, image);
    FusionCache warm = cache();
    const auto found = warm.find(wanted);
    if (!found || !(*found == image)) return report("image", "the binary of a kernel is not found again");
    const auto expect_miss = [&](const ImageRequest& r, const std::string& fact) {
      if (image_key(r, run_.options().defects) == image_key(wanted, run_.options().defects) || warm.find(r))
        report("image", "another " + fact + " has the same binary");
    };
    ImageRequest other = wanted;
    other.options = "--fmad=true";
    expect_miss(other, "compile option");
    other = wanted;
    other.architecture = "sm_80";
    expect_miss(other, "architecture");
    other = wanted;
    other.compiler = "nvrtc 12.9";
    expect_miss(other, "compiler");
    // The right key, and a binary of another text.
    ImageRequest changed = wanted;
    changed.text += "\n";
    image = image_of(changed, "binary of another kernel");
    const CacheKey key = image_key(wanted, run_.options().defects);
    store_->records[record_name(key, kKernelSuffix)] = encode({.key = key, .compiled = {}, .image = image});
    if (warm.find(wanted)) report("image", "a binary of another text is used");
  }

  void judge_import() {
    try {
      const CacheRecord record = decode_record(bytes_of(fusion_record()));
      const std::string bytes = encode(pack({record}));
      const auto kept = std::exchange(store_, std::make_shared<MemoryStore>());
      const std::vector<Unpacked> unpacked = unpack(decode_bundle(bytes_of(bytes)), *store_);
      FusionCache warm = cache();
      if (unpacked.size() != 1 || !unpacked[0].skipped.empty())
        report("import", "a record that was exported is not imported");
      else
        judge_hit(warm, "after export and import");
      store_ = kept;
    } catch (const Error& e) {
      run_.report("cache", e, "export and import");
    }
  }
  std::string fusion_record() const {
    for (const auto& [name, bytes] : store_->records)
      if (name.ends_with(kFusionSuffix)) return bytes;
    return {};
  }

  OracleRun& run_;
  const Compiled& made_;
  RandomSource random_;
  CompileOptions options_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>();
};

}  // namespace

void cache(OracleRun& run) {
  if (!may_be_cached(run.options().defects)) return;
  if (const Compiled* c = run.compiled()) CacheJudge(run, *c).judge();
}

}  // namespace fusebox::fuzz
