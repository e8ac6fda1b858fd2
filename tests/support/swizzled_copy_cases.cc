#include "tests/support/swizzled_copy_cases.h"

#include "ir/text/parse.h"

namespace fusebox::test {
namespace {

// Where the shared tensor is swizzled, and how its loops look.
enum class Place {
  kAllocation,  // laid out by the swizzle; the loops undo an xor and read %x in order
  kLoops,  // laid out by its loops, which lie behind the swizzle and are merged in another order than the consumer's
  kLoopsAlone,  // the same, but the consumer has no swizzle: its index goes through it
};

struct Options {
  Dtype dtype;
  bool is_cyclic;
  int64_t swizzle_bytes;  // of a row of the tile
  int rank;
  int64_t rows;  // tile of the last axis but one; 1-D: 1
  Place place;
  bool is_vectorized;  // the filling loop is vectorized, 16 bytes for each thread
};

class Writer {
 public:
  explicit Writer(const Options& o)
      : options_(o), element_bytes_(o.dtype == Dtype::kHalf ? 2 : 4), tile_(o.swizzle_bytes / element_bytes_) {}

  std::string text() {
    out_ = "fusion @swizzled_copy {\n  ";
    for (int i = 0; i < options_.rank; ++i) out_ += (i ? ", %n" : "%n") + std::to_string(i);
    out_ += " = size\n  %x = input " + std::string(fusebox::text(options_.dtype)) + "[";
    for (int i = 0; i < options_.rank; ++i) out_ += (i ? ", %n" : "%n") + std::to_string(i);
    out_ += "] contiguous\n  %y = set %x\n  output %y\n}\nsteps @swizzled_copy {\n";
    line("cache_after %x -> xs");
    line("set_memory_type %xs in shared");
    tile("%y");
    if (options_.place != Place::kLoopsAlone) swizzle("%y");
    merge("%y", options_.place == Place::kLoopsAlone ? std::vector<std::string>{"f", "h", "k", "d", "e"}
                                                     : std::vector<std::string>{"f", "p", "k", "q", "e"});
    tile("%xs");
    swizzle("%xs");
    if (options_.place == Place::kAllocation) {
      line("set_allocation %xs to [%xs.block" + std::string(options_.rank > 1 ? ", %xs.w, %xs.z" : "") +
           ", %xs.f, %xs.p, %xs.k, %xs.q, %xs.e]");
      if (!options_.is_cyclic) line("swizzle %xs.p with %xs.q -> row, chunk");
    }
    std::vector<std::string> parts = {"q", "k", "p", "f"};
    if (options_.place == Place::kAllocation && !options_.is_cyclic) parts = {"f", "row", "k", "chunk"};
    if (!options_.is_vectorized) parts.push_back("e");
    merge("%xs", parts);
    if (options_.is_vectorized) line("parallelize %xs.e on vectorize");
    line("inline_at %xs.block");
    return out_ + "}\n";
  }

  std::vector<std::vector<int64_t>> shapes() const {
    const int64_t r = options_.rows, vector = 16 / element_bytes_;
    if (options_.rank == 1) {
      if (options_.is_vectorized) return {{vector}, {64}, {1000}, {65536}};
      return {{1}, {63}, {64}, {65}, {1000}, {65536}};
    }
    std::vector<std::vector<int64_t>> last = {{1, 1}, {r, tile_}, {r + 1, tile_ - 1}, {2 * r - 1, 2 * tile_ + 1}};
    if (options_.is_vectorized) last = {{1, vector}, {r, tile_}, {2 * r - 1, 2 * tile_ + vector}};
    if (options_.rank == 2) last.push_back({37, 1000});
    const std::vector<int64_t> outer = {3, 2, 5};
    for (auto& shape : last)
      for (int i = 2; i < options_.rank; ++i) shape.insert(shape.begin(), outer[static_cast<size_t>(i - 2)]);
    return last;
  }

 private:
  void line(const std::string& step) { out_ += "  " + step + "\n"; }

  // Block loops, and a tile of rows of swizzle_bytes each: f · (h · k, 8 rows) · (d, chunks of 16 bytes) · e.
  void tile(const std::string& t) {
    const std::string last = t + ".i" + std::to_string(options_.rank - 1), n = std::to_string(tile_);
    if (options_.rank == 1) {
      line("split " + last + " by " + n + " -> block, a");
    } else {
      line("split " + last + " by " + n + " -> block" + std::to_string(options_.rank - 1) + ", a");
    }
    line("split " + t + ".a by " + n + " -> b, c");
    line("split " + t + ".c by " + std::to_string(16 / element_bytes_) + " -> d, e");
    std::string rows = t + ".b";
    if (options_.rank > 1) {
      const std::string r = std::to_string(options_.rows);
      line("split " + t + ".i" + std::to_string(options_.rank - 2) + " by " + r + " -> block" +
           std::to_string(options_.rank - 2) + ", r");
      line("split " + t + ".r by " + r + " -> u, v");
      line("split " + t + ".u by 3 -> w, z");
      line("merge " + t + ".v with " + t + ".b -> rows");
      rows = t + ".rows";
    }
    line("split " + rows + " by 8 -> f, g");
    line("split " + t + ".g by " + std::to_string(128 / options_.swizzle_bytes) + " -> h, k");
    if (options_.rank == 1) return;
    // One loop over the blocks of all axes.
    std::string blocks = t + (options_.rank > 2 ? ".i0" : ".block0");
    for (int i = 1; i < options_.rank; ++i) {
      const std::string next = t + (i < options_.rank - 2 ? ".i" : ".block") + std::to_string(i);
      const std::string name = i == options_.rank - 1 ? "block" : "m" + std::to_string(i);
      line("merge " + blocks + " with " + next + " -> " + name);
      blocks = t + "." + name;
    }
  }

  void swizzle(const std::string& t) {
    line("swizzle " + t + ".h with " + t + ".d" + (options_.is_cyclic ? " cyclic" : "") + " -> p, q");
  }

  void merge(const std::string& t, const std::vector<std::string>& parts) {
    std::string all = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) {
      const std::string name = i + 1 == parts.size() ? "t" : "t" + std::to_string(i);
      line("merge " + t + "." + all + " with " + t + "." + parts[i] + " -> " + name);
      all = name;
    }
    const std::string vector = parts.back() == "e" ? "" : ", " + t + ".e";
    line("reorder " + t + " to [" + t + ".block, " + (options_.rank > 1 ? t + ".w, " + t + ".z, " : "") + t + ".t" +
         vector + "]");
    line("parallelize " + t + ".block on grid.x");
    line("parallelize " + t + ".t on block.x");
  }

  const Options options_;
  const int64_t element_bytes_, tile_;
  std::string out_;
};

std::string name_of(const Options& o) {
  const std::string place = o.place == Place::kAllocation ? "swizzled allocation"
                            : o.place == Place::kLoops    ? "swizzled loops"
                                                          : "swizzled loops of the shared tensor alone";
  return std::string(text(o.dtype)) + (o.is_cyclic ? " cyclic " : " xor ") + std::to_string(o.swizzle_bytes) +
         " bytes, " + std::to_string(o.rank) + "-D" + (o.rank > 1 ? ", " + std::to_string(o.rows) + " rows" : "") +
         ", " + place + (o.is_vectorized ? ", vectorized" : "");
}

}  // namespace

std::vector<SwizzledCopyCase> swizzled_copy_cases() {
  std::vector<SwizzledCopyCase> cases;
  const auto add = [&](const Options& o) {
    Writer writer(o);
    SwizzledCopyCase c{name_of(o), parse_module(writer.text()), {}};
    for (const auto& shape : writer.shapes()) {
      std::string extents;
      for (int64_t n : shape) extents += (extents.empty() ? "" : ", ") + std::to_string(n);
      c.inputs.push_back(parse_input_spec("x", std::string(text(o.dtype)) + "[" + extents + "] normal seed 7"));
    }
    cases.push_back(std::move(c));
  };
  for (Dtype dtype : {Dtype::kHalf, Dtype::kFloat})
    for (bool is_cyclic : {false, true})
      for (int64_t bytes : {128, 64, 32})
        for (Place place : {Place::kAllocation, Place::kLoops, Place::kLoopsAlone})
          for (int rank = 1; rank <= 5; ++rank)
            for (int64_t rows : {3, 8, 12}) {
              if (rank == 1 && rows != 3) continue;
              if (rank > 2 && rows != (rank == 4 ? 12 : rank == 3 ? 8 : 3)) continue;
              for (bool is_vectorized : {false, true})
                add({dtype, is_cyclic, bytes, rank, rank == 1 ? 1 : rows, place, is_vectorized});
            }
  return cases;
}

}  // namespace fusebox::test
