#include "replay/picture/layout.h"

#include <algorithm>
#include <map>
#include <optional>

namespace fusebox::picture {
namespace {

constexpr double kGap = 14, kLayerGap = 24, kMargin = 12, kHeader = 50, kLabelWidth = 58;
constexpr double kTransformHeight = 18, kLineHeight = 15, kDummyWidth = 6;
constexpr int kSweeps = 24;

bool contains(const std::vector<size_t>& list, size_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// A domain in a row, a transform, or a bend of a line that crosses a layer.
struct Node {
  enum class Kind : uint8_t { kDomain, kTransform, kBend } kind = Kind::kBend;
  size_t what = 0;  // a domain of the picture, or a transform of the tensor
  Row row = Row::kBetween;
  size_t layer = 0;
  double width = kDummyWidth, height = 0, middle = 0;
  std::vector<size_t> up, down;
};

struct Edge {
  size_t from, to;
  bool is_same_domain = false;
  std::vector<size_t> bends = {};
};

class Layout {
 public:
  Layout(const Picture& picture, size_t tensor) : picture_(picture), tensor_(picture.tensors[tensor]) {}

  TensorLayout run() {
    make_nodes();
    bend_edges();
    order_layers();
    place();
    return finish();
  }

 private:
  // -- nodes and layers. Domains stand on even layers, transforms on odd ones.

  size_t add_domain(size_t domain, Row row, size_t layer) {
    Node n;
    n.kind = Node::Kind::kDomain;
    n.what = domain;
    n.row = row;
    n.layer = layer;
    const BoxText text = box_text(picture_.domains[domain]);
    double marks = 0;
    for (const Mark& m : text.marks)
      marks += static_cast<double>(letters(m.text)) * kMarkSize * kLetter + 2 * kMarkPadding + kMarkGap;
    // The number of the group stands right of the name; there is room for three digits.
    const double name = (static_cast<double>(letters(text.name)) + 1) * kNameSize * kLetter + 4 * kMarkSize * kLetter;
    n.width =
        2 * kPadding + std::max({name, static_cast<double>(letters(text.type)) * kTextSize * kLetter, marks, 40.0});
    n.height = 2 * 6 + (text.marks.empty() ? 2 : 3) * kLineHeight;
    nodes_.push_back(n);
    latest_[domain] = nodes_.size() - 1;
    return nodes_.size() - 1;
  }

  void add_transform(size_t index) {
    const TransformPicture& t = tensor_.transforms[index];
    Node n;
    n.kind = Node::Kind::kTransform;
    n.what = index;
    n.width = static_cast<double>(letters(shortened(t.text, 28))) * kMarkSize * kLetter + 2 * kPadding;
    n.height = kTransformHeight;
    for (size_t d : t.inputs) {
      if (!latest_.contains(d)) add_domain(d, Row::kBetween, 0);
      n.layer = std::max(n.layer, nodes_[latest_[d]].layer + 1);
    }
    nodes_.push_back(n);
    const size_t self = nodes_.size() - 1;
    for (size_t d : t.inputs) edges_.push_back({latest_[d], self});
    for (size_t d : t.outputs) edges_.push_back({self, add_domain(d, Row::kBetween, n.layer + 1)});
  }

  // Whether each transform leads from the root to a logical domain, and so stands before the logical row.
  std::vector<bool> above_logical() const {
    std::vector<bool> above(tensor_.transforms.size(), false);
    if (tensor_.root.empty()) return above;
    std::vector<size_t> wanted = tensor_.logical;
    for (size_t i = tensor_.transforms.size(); i-- > 0;) {
      const TransformPicture& t = tensor_.transforms[i];
      above[i] = std::any_of(t.outputs.begin(), t.outputs.end(), [&](size_t d) { return contains(wanted, d); });
      if (above[i]) wanted.insert(wanted.end(), t.inputs.begin(), t.inputs.end());
    }
    return above;
  }

  void make_nodes() {
    const std::vector<bool> above = above_logical();
    size_t logical_layer = 0;
    if (!tensor_.root.empty()) {
      for (size_t d : tensor_.root) rows_[Row::kRoot].push_back(add_domain(d, Row::kRoot, 0));
      for (size_t i = 0; i < above.size(); ++i)
        if (above[i]) add_transform(i);
      logical_layer = 2;
      for (size_t d : tensor_.logical)
        if (latest_.contains(d)) logical_layer = std::max(logical_layer, nodes_[latest_[d]].layer);
    }
    for (size_t d : tensor_.logical) rows_[Row::kLogical].push_back(into_row(d, Row::kLogical, logical_layer));
    // Loop broadcasts stand beside the logical domain, wherever their loops are nearest.
    for (size_t d : tensor_.loop_broadcasts) into_row(d, Row::kLogical, logical_layer);
    for (size_t i = 0; i < above.size(); ++i)
      if (!above[i]) add_transform(i);
    for (size_t d : tensor_.domains)
      if (!latest_.contains(d)) add_domain(d, Row::kBetween, 0);
    if (tensor_.loop.empty()) return;
    std::vector<bool> used(nodes_.size(), false);
    for (const Edge& e : edges_) used[e.from] = true;
    size_t loop_layer = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& n = nodes_[i];
      const bool moves =
          n.kind == Node::Kind::kDomain && n.row == Row::kBetween && !used[i] && contains(tensor_.loop, n.what);
      loop_layer = std::max(loop_layer, n.layer + (moves ? 0 : n.kind == Node::Kind::kTransform ? 1 : 2));
    }
    for (size_t d : tensor_.loop) {
      const size_t i = latest_[d];
      const bool moves = nodes_[i].row == Row::kBetween && !(i < used.size() && used[i]);
      rows_[Row::kLoop].push_back(moves ? into_row(d, Row::kLoop, loop_layer) : copy_into(d, Row::kLoop, loop_layer));
    }
  }

  // Puts a domain into a row. A node that a transform made is moved there; a node of another row is drawn again.
  size_t into_row(size_t d, Row row, size_t layer) {
    const auto it = latest_.find(d);
    if (it == latest_.end()) return add_domain(d, row, layer);
    Node& n = nodes_[it->second];
    if (n.row != Row::kBetween) return copy_into(d, row, layer);
    n.row = row;
    n.layer = layer;
    return it->second;
  }

  size_t copy_into(size_t d, Row row, size_t layer) {
    const size_t from = latest_[d];
    const size_t to = add_domain(d, row, layer);
    edges_.push_back({from, to, true});
    return to;
  }

  void bend_edges() {
    for (Edge& e : edges_) {
      size_t from = e.from;
      for (size_t layer = nodes_[e.from].layer + 1; layer < nodes_[e.to].layer; ++layer) {
        Node bend;
        bend.layer = layer;
        nodes_.push_back(bend);
        const size_t to = nodes_.size() - 1;
        e.bends.push_back(to);
        connect(from, to);
        from = to;
      }
      connect(from, e.to);
    }
    for (const Node& n : nodes_) layers_.resize(std::max(layers_.size(), n.layer + 1));
    for (size_t i = 0; i < nodes_.size(); ++i) layers_[nodes_[i].layer].push_back(i);
  }

  void connect(size_t from, size_t to) {
    nodes_[from].down.push_back(to);
    nodes_[to].up.push_back(from);
  }

  // -- the order in a layer: barycentres, up and down; rows keep the order of their list

  void order_layers() {
    rank_.resize(nodes_.size());
    for (auto& layer : layers_) {
      keep_rows(layer);
      rank(layer);
    }
    for (int sweep = 0; sweep < 4; ++sweep) {
      for (size_t l = 1; l < layers_.size(); ++l) sort(layers_[l], &Node::up);
      for (size_t l = layers_.size(); sweep < 3 && l-- > 0;) sort(layers_[l], &Node::down);
    }
  }

  void rank(const std::vector<size_t>& layer) {
    for (size_t i = 0; i < layer.size(); ++i) rank_[layer[i]] = static_cast<double>(i);
  }

  void sort(std::vector<size_t>& layer, std::vector<size_t> Node::* side) {
    std::map<size_t, double> key;
    for (size_t i : layer) {
      double sum = 0;
      for (size_t n : nodes_[i].*side) {
        // Outputs of one transform keep their order.
        const auto& back = side == &Node::up ? nodes_[n].down : nodes_[n].up;
        const auto at = static_cast<double>(std::find(back.begin(), back.end(), i) - back.begin());
        sum += rank_[n] + at / static_cast<double>(back.size() + 1);
      }
      const auto count = static_cast<double>((nodes_[i].*side).size());
      key[i] = count == 0 ? rank_[i] : sum / count;
    }
    std::sort(layer.begin(), layer.end(),
              [&](size_t a, size_t b) { return std::pair(key[a], rank_[a]) < std::pair(key[b], rank_[b]); });
    keep_rows(layer);
    rank(layer);
  }

  // The members of a row exchange places among themselves, so that they keep the order of their list.
  void keep_rows(std::vector<size_t>& layer) {
    for (const auto& [row, members] : rows_) {
      size_t next = 0;
      for (size_t& i : layer)
        if (contains(members, i)) i = members[next++];
    }
  }

  // -- places

  void place() {
    for (auto& layer : layers_) {
      double x = 0;
      for (size_t i : layer) {
        nodes_[i].middle = x + nodes_[i].width / 2;
        x += nodes_[i].width + kGap;
      }
    }
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      for (size_t l = 0; l < layers_.size(); ++l) {
        const size_t at = sweep % 2 == 0 ? l : layers_.size() - 1 - l;
        pull(layers_[at]);
      }
    }
    for (const Edge& e : edges_) straighten(e);
  }

  // Puts the bends of a line above each other if one place is free in all their layers.
  void straighten(const Edge& e) {
    std::vector<size_t> candidates = e.bends;
    candidates.push_back(e.from);
    candidates.push_back(e.to);
    for (size_t candidate : candidates) {
      const double x = nodes_[candidate].middle;
      if (!std::all_of(e.bends.begin(), e.bends.end(), [&](size_t bend) { return is_free(bend, x); })) continue;
      for (size_t bend : e.bends) nodes_[bend].middle = x;
      return;
    }
  }

  bool is_free(size_t bend, double x) const {
    const auto& layer = layers_[nodes_[bend].layer];
    const auto at = std::find(layer.begin(), layer.end(), bend);
    const double room = kGap / 2 + kDummyWidth / 2;
    if (at != layer.begin() && nodes_[*(at - 1)].middle + nodes_[*(at - 1)].width / 2 + room > x) return false;
    return at + 1 == layer.end() || nodes_[*(at + 1)].middle - nodes_[*(at + 1)].width / 2 - room >= x;
  }

  // How strongly two neighbours pull each other above one another: a line that crosses layers should be straight.
  double pull_between(const Node& a, const Node& b) const {
    const int bends = (a.kind == Node::Kind::kBend ? 1 : 0) + (b.kind == Node::Kind::kBend ? 1 : 0);
    return bends == 2 ? 8 : bends == 1 ? 2 : 1;
  }

  // Moves each node as near the middle of its neighbours as its layer allows. Nodes that would overlap form a block,
  // which takes the mean of its members' wishes.
  void pull(const std::vector<size_t>& layer) {
    struct Block {
      double wanted = 0, weight = 0;  // of the block's start
      size_t first = 0, count = 0;
      double width = 0;  // up to where the next block may begin
    };
    std::vector<Block> blocks;
    for (size_t k = 0; k < layer.size(); ++k) {
      const Node& n = nodes_[layer[k]];
      double sum = 0, weight = 0;
      for (const auto* side : {&n.up, &n.down})
        for (size_t i : *side) {
          const double w = pull_between(n, nodes_[i]);
          sum += w * nodes_[i].middle;
          weight += w;
        }
      const double wanted = (weight == 0 ? n.middle : sum / weight) - n.width / 2;
      blocks.push_back({wanted, std::max(weight, 0.1), k, 1, n.width + kGap});
      while (blocks.size() > 1) {
        Block& a = blocks[blocks.size() - 2];
        const Block& b = blocks.back();
        if (a.wanted + a.width <= b.wanted) break;
        a.wanted = (a.wanted * a.weight + (b.wanted - a.width) * b.weight) / (a.weight + b.weight);
        a.weight += b.weight;
        a.width += b.width;
        a.count += b.count;
        blocks.pop_back();
      }
    }
    for (const Block& b : blocks) {
      double x = b.wanted;
      for (size_t k = b.first; k < b.first + b.count; ++k) {
        Node& n = nodes_[layer[k]];
        n.middle = x + n.width / 2;
        x += n.width + kGap;
      }
    }
  }

  TensorLayout finish() {
    TensorLayout out;
    double left = 0, right = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      left = i == 0 ? nodes_[i].middle - nodes_[i].width / 2 : std::min(left, nodes_[i].middle - nodes_[i].width / 2);
      right = i == 0 ? nodes_[i].middle + nodes_[i].width / 2 : std::max(right, nodes_[i].middle + nodes_[i].width / 2);
    }
    double y = kHeader;
    std::vector<double> top, height;
    for (const auto& layer : layers_) {
      double h = 0;
      for (size_t i : layer) h = std::max(h, nodes_[i].height);
      for (size_t i : layer)
        if (nodes_[i].kind == Node::Kind::kDomain) nodes_[i].height = h;
      top.push_back(y);
      height.push_back(h);
      y += h + (layer.empty() ? 0 : kLayerGap);
    }
    const double dx = kMargin + kLabelWidth - left;
    const auto box = [&](const Node& n) {
      return Box{n.middle - n.width / 2 + dx, top[n.layer] + (height[n.layer] - n.height) / 2, n.width, n.height};
    };
    size_t shared = 0;
    for (size_t i = 0; i < tensor_.loop.size(); ++i)
      if (picture_.domains[tensor_.loop[i]].is_inline_at) shared = i + 1;
    for (size_t i = 0; i < tensor_.logical.size() && tensor_.loop.empty(); ++i)
      if (picture_.domains[tensor_.logical[i]].is_inline_at) shared = i + 1;
    for (const Node& n : nodes_) {
      if (n.kind == Node::Kind::kTransform) out.transforms.push_back({n.what, box(n)});
      if (n.kind != Node::Kind::kDomain) continue;
      const auto& loop = tensor_.loop.empty() ? tensor_.logical : tensor_.loop;
      const auto at = static_cast<size_t>(std::find(loop.begin(), loop.end(), n.what) - loop.begin());
      const bool is_loop = n.row == Row::kLoop || (tensor_.loop.empty() && n.row == Row::kLogical);
      out.domains.push_back({n.what, n.row, is_loop && at < shared, box(n)});
    }
    for (const Edge& e : edges_) out.lines.push_back(line(e, box, top, height, dx));
    for (const auto& [row, members] : rows_) {
      if (members.empty()) continue;
      const size_t layer = nodes_[members[0]].layer;
      const bool is_loop_too = row == Row::kLogical && tensor_.loop.empty() && tensor_.has_nest;
      out.labels.push_back({row == Row::kRoot   ? "root"
                            : row == Row::kLoop ? "loop"
                            : is_loop_too       ? "logical\nloop"
                                                : "logical",
                            top[layer] + height[layer] / 2});
    }
    out.width = right + dx + kMargin;
    out.height = y - (layers_.empty() ? 0 : kLayerGap) + kMargin;
    return out;
  }

  template <class BoxOf>
  Line line(const Edge& e, const BoxOf& box, const std::vector<double>& top, const std::vector<double>& height,
            double dx) const {
    Line out;
    out.is_same_domain = e.is_same_domain;
    const Box from = box(nodes_[e.from]), to = box(nodes_[e.to]);
    out.points.push_back({from.middle(), from.y + from.height});
    for (size_t i : e.bends) {
      const Node& n = nodes_[i];
      out.points.push_back({n.middle + dx, top[n.layer]});
      if (height[n.layer] > 0) out.points.push_back({n.middle + dx, top[n.layer] + height[n.layer]});
    }
    out.points.push_back({to.middle(), to.y});
    return out;
  }

  const Picture& picture_;
  const TensorPicture& tensor_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::map<size_t, size_t> latest_;  // by domain: the lowest node that stands for it
  std::map<Row, std::vector<size_t>> rows_;
  std::vector<std::vector<size_t>> layers_;
  std::vector<double> rank_;
};

}  // namespace

TensorLayout lay_out(const Picture& picture, size_t tensor) { return Layout(picture, tensor).run(); }

size_t letters(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string shortened(const std::string& text, size_t most) {
  if (letters(text) <= most) return text;
  size_t end = 0;
  for (size_t count = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) continue;
    if (++count == most) break;
  }
  return text.substr(0, end) + "…";
}

BoxText box_text(const DomainPicture& d) {
  BoxText out;
  out.name = shortened(d.name, 24);
  out.type = shortened(std::string(text(d.iter_type)) + " " + d.extent, 30);
  if (d.parallel != ParallelType::kSerial) out.marks.push_back({Mark::Kind::kParallel, std::string(text(d.parallel))});
  if (d.allocation) out.marks.push_back({Mark::Kind::kAllocation, "alloc " + std::to_string(*d.allocation)});
  if (!d.check.empty())
    out.marks.push_back({Mark::Kind::kCheck, "holes, check"});
  else if (d.may_leave)
    out.marks.push_back({Mark::Kind::kHoles, "holes"});
  return out;
}

}  // namespace fusebox::picture
