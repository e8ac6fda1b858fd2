#include "passes/schedule/reduction_splits.h"

#include "passes/schedule/reduction_limits.h"

namespace fusebox {

namespace {

class Splitter {
 public:
  Splitter(const Graph& g, const ReductionAccess& access, const std::string& reference, const Heuristics& h,
           FreshNames& names, StepDraft& steps)
      : g_(g),
        access_(access),
        h_(h),
        names_(names),
        steps_(steps),
        ref_(reference),
        vector_(h.number("vector")),
        walks_(h.scheduler == "inner_outer") {}

  SplitLoops run() {
    h_.word("axes") == "inner" ? split_inner() : split_outer();
    return std::move(result_);
  }

 private:
  std::string domain(const std::string& wanted) { return names_.domain(wanted); }

  std::string merge_all(const std::vector<std::string>& axes, const std::string& wanted) {
    std::string merged = axes[0];
    for (size_t i = 1; i < axes.size(); ++i) {
      std::string next = domain(wanted);
      steps_.merge(ref_, merged, axes[i], next);
      merged = std::move(next);
    }
    return merged;
  }

  std::vector<std::string> names_of(const std::vector<DomainId>& axes) const {
    std::vector<std::string> result;
    for (DomainId d : axes) result.push_back(g_[d].name);
    return result;
  }

  // Splits off the vectors, if there are any. Returns the loop over the rest.
  std::string split_vector(const std::string& axis) {
    if (vector_ == 1) return axis;
    const std::string rest = domain("c");
    result_.vector = domain("v");
    steps_.split(ref_, axis, vector_, rest, result_.vector);
    return rest;
  }

  void add(const std::string& name, ParallelType type = ParallelType::kSerial) {
    if (!name.empty()) result_.loops.push_back({name, type});
  }

  // The rows: the product of the kept axes, and the rows that a block takes at once.
  void split_rows(std::string& b, std::string& z) {
    if (access_.kept.empty()) return;
    b = merge_all(names_of(access_.kept), "row");
    z = split_block_rows(b);
  }

  // The rows that a block has beside one another. No name if it has one.
  std::string split_block_rows(std::string& b) {
    if (h_.number("rows") == 1) return {};
    const std::string z = domain("z"), outer = domain("b");
    steps_.split(ref_, b, h_.number("rows"), outer, z);
    b = outer;
    return z;
  }

  // The rows that a thread takes one after another, where it sums columns too.
  // Where the blocks that walk have a number, each takes several groups of rows: `o` is the loop over them.
  std::string split_walked_rows(std::string& b, std::string& o) {
    if (!walks_) return {};
    const bool has_groups = h_.has("walkers");
    std::string outer = domain(has_groups ? "p" : "g");
    result_.walked = domain("s");
    steps_.split(ref_, b, h_.number("walk"), outer, result_.walked);
    if (has_groups) {
      o = domain("o");
      const std::string g = domain("g");
      steps_.split(ref_, outer, h_.number("walkers"), o, g);
      outer = g;
    }
    b = outer;
    return result_.walked;
  }

  void split_inner() {
    std::string b, z, o;
    split_rows(b, z);
    if (h_.word("merge") == "parts") return split_parts(b);
    const std::string s = split_walked_rows(b, o);
    // Vectors lie in the innermost axis; the others are merged with what is left of it.
    std::vector<std::string> axes = names_of(access_.reduced);
    std::string column;
    if (h_.word("merge") == "first") {
      column = split_vector(merge_all(axes, "i"));
    } else {
      axes.back() = split_vector(axes.back());
      column = merge_all(axes, "i");
    }
    const std::string g = split_cluster(column), k = domain("k"), l = domain("l");
    steps_.split(ref_, column, h_.number("lanes"), k, l);
    h_.word("form") == "registers" ? split_chunks(b, g, {o, s}, z, k, l) : split_strips(b, z, k, l);
  }

  // The lanes of a warp take one part of a row, or several parts side by side, so that each part lies within its lanes.
  void split_parts(const std::string& b) {
    std::vector<std::string> axes = names_of(access_.reduced);
    std::string l = split_vector(axes.back()), q, r, z;
    axes.pop_back();
    std::string w = merge_all(axes, "i");
    const int64_t lanes = h_.number("part");
    if (h_.has("tail")) split_off(l, lanes, q, "q", "l");
    if (const int64_t beside = h_.number("lanes") / lanes; beside > 1) {
      z = w;
      split_off(z, beside, w, "k", "z");
    }
    if (const int64_t chunks = h_.number("chunks"); chunks > 1) {
      r = domain("r");
      const std::string rest = domain("w");
      steps_.split_outer(ref_, w, chunks, r, rest);
      w = rest;
    }
    result_.last_shared = b;
    add(b, ParallelType::kGridX);
    add(r);
    add(q);
    add(w, ParallelType::kBlockY);
    add(z, ParallelType::kBlockZ);
    add(l, ParallelType::kBlockX);
    add(result_.vector);
  }

  // The axis becomes the inner loop.
  void split_off(std::string& axis, int64_t factor, std::string& rest, const char* outer, const char* inner) {
    const std::string whole = axis;
    rest = domain(outer);
    axis = domain(inner);
    steps_.split(ref_, whole, factor, rest, axis);
  }

  // The parts of a row that the blocks of a cluster keep. Returns no name where a block keeps whole rows, nor in
  // passes, which keep nothing.
  std::string split_cluster(std::string& column) {
    const int64_t blocks = h_.word("form") == "registers" ? h_.number_or("cluster", 1) : 1;
    if (blocks == 1) return {};
    const std::string g = domain("g"), part = domain("p");
    steps_.split_outer(ref_, column, blocks, g, part);
    column = part;
    return g;
  }

  // `walk` has the serial loops over rows, outermost first.
  void split_chunks(const std::string& b, const std::string& g, const std::vector<std::string>& walk,
                    const std::string& z, const std::string& k, const std::string& l) {
    const int64_t chunks = h_.number("chunks");
    // Where the launch checks how short a row may be, only the last chunks of all warps are checked.
    const bool ends_known = h_.number_or("least", 0) > 1;
    std::string w = k, r;
    if (chunks > 1) {
      r = domain("r");
      w = domain("w");
      vector_ > 1 || ends_known ? steps_.split_outer(ref_, k, chunks, r, w) : steps_.split(ref_, k, chunks, w, r);
    }
    result_.last_shared = z.empty() ? b : z;
    const bool is_of_one_thread = h_.number("lanes") == 1;
    add(b, ParallelType::kGridX);
    add(g, shared_axis(!b.empty()));
    for (const std::string& loop : walk) add(loop);
    add(z, is_of_one_thread ? ParallelType::kBlockX : ParallelType::kBlockZ);
    if (vector_ > 1 || ends_known) add(r);
    add(w, is_of_one_thread ? ParallelType::kSerial : ParallelType::kBlockY);
    add(l, is_of_one_thread ? ParallelType::kSerial : ParallelType::kBlockX);
    // Rows of one warp end in the middle of it, so its lanes would take both branches. On an H100, rms norm of [44628, 57] in
    // f16 took 14.1 µs so, and 11.1 with a check of each access.
    const bool ends_within = h_.number("warps") == 1 && chunks <= kMostCheckedChunks;
    if (vector_ == 1 && !ends_known) add(r, ends_within ? ParallelType::kSerial : ParallelType::kUnswitch);
    add(result_.vector);
  }

  // The serial walk: unrolled accesses, and the slices of several blocks.
  void split_walk(std::string k, std::string& s, std::string& o) {
    if (h_.number("unroll") > 1) {
      o = domain("o");
      result_.unrolled = domain("u");
      steps_.split(ref_, k, h_.number("unroll"), o, result_.unrolled);
      k = o;
    }
    o = k;
    if (h_.number("slices") == 1) return;
    // Neighbouring blocks take neighbouring parts.
    o = domain("q");
    s = domain("s");
    steps_.split(ref_, k, h_.number("slices"), o, s);
  }

  void split_strips(const std::string& b, const std::string& z, const std::string& k, const std::string& l) {
    std::string s, o;
    split_walk(k, s, o);
    result_.last_shared = o;
    const bool is_of_one_thread = h_.number("lanes") == 1;
    add(b, ParallelType::kGridX);
    add(z, is_of_one_thread ? ParallelType::kBlockX : ParallelType::kBlockY);
    add(s, shared_axis(!b.empty()));
    add(o);
    add(result_.unrolled);
    add(l, is_of_one_thread ? ParallelType::kSerial : ParallelType::kBlockX);
    add(result_.vector);
  }

  void split_outer() {
    // The vectors lie in the product of the columns' axes, or in the innermost axis.
    std::vector<std::string> axes = names_of(access_.columns);
    if (h_.word("merge") != "first") axes.back() = split_vector(axes.back());
    std::string columns = merge_all(axes, "i");
    if (h_.word("merge") == "first") columns = split_vector(columns);
    const std::string l = domain("l");
    std::string t = columns;
    const bool lanes_take_places = h_.has("places");
    if (!lanes_take_places) {
      t = domain("t");
      steps_.split(ref_, columns, h_.number("lanes"), t, l);
    }
    std::vector<std::string> blocks = names_of(access_.kept);
    blocks.resize(blocks.size() - access_.columns.size());
    blocks.push_back(t);
    std::string b = merge_all(blocks, "b");
    std::string row = merge_all(names_of(access_.reduced), "row");
    if (lanes_take_places) {
      const std::string z = split_block_rows(b), k = domain("k");
      steps_.split(ref_, row, h_.number("lanes"), k, l);
      return split_chunks(b, {}, {}, z, k, l);
    }
    if (h_.word("form") == "registers") return split_kept_columns(b, row, l);
    std::string k = row, w;
    if (h_.number("warps") > 1) {
      k = domain("k");
      w = domain("w");
      steps_.split(ref_, row, h_.number("warps"), k, w);
    }
    std::string s, o;
    split_walk(k, s, o);
    result_.last_shared = o;
    add(b, ParallelType::kGridX);
    add(s, ParallelType::kGridY);
    add(o);
    add(result_.unrolled);
    add(w, ParallelType::kBlockY);
    add(l, ParallelType::kBlockX);
    add(result_.vector);
  }

  // Columns that the threads of a block keep, or of a cluster: each thread has `chunks` places of its columns.
  void split_kept_columns(const std::string& b, std::string row, const std::string& l) {
    const std::string g = split_cluster(row);
    std::string w = row, r;
    if (h_.number("chunks") > 1) {
      r = domain("r");
      w = domain("w");
      steps_.split_outer(ref_, row, h_.number("chunks"), r, w);
    }
    result_.last_shared = b;
    add(b, ParallelType::kGridX);
    add(g, ParallelType::kGridY);
    add(r);
    add(w, ParallelType::kBlockY);
    add(l, ParallelType::kBlockX);
    add(result_.vector);
  }

  // Blocks that share a row are neighbours along this axis.
  static ParallelType shared_axis(bool has_rows) { return has_rows ? ParallelType::kGridY : ParallelType::kGridX; }

  const Graph& g_;
  const ReductionAccess& access_;
  const Heuristics& h_;
  FreshNames& names_;
  StepDraft& steps_;
  const std::string ref_;
  const int64_t vector_;
  const bool walks_;
  SplitLoops result_;
};

}  // namespace

SplitLoops split_reference(const Graph& g, const ReductionAccess& access, const std::string& reference,
                           const Heuristics& h, FreshNames& names, StepDraft& steps) {
  return Splitter(g, access, reference, h, names, steps).run();
}

}  // namespace fusebox
