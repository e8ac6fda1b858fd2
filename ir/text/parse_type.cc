// Reads types: dimensions, and the domains, transforms and marks of a tensor.
#include <algorithm>
#include <map>

#include "ir/text/graph_parser.h"
#include "ir/text/parse.h"

namespace fusebox {
namespace {

bool starts_extent(const Token& t) { return t.kind == TokenKind::kNumber || t.kind == TokenKind::kValue || t.is('?'); }
bool is_name(const Token& t) { return t.kind == TokenKind::kWord || t.kind == TokenKind::kString; }

}  // namespace

GraphParser::Type GraphParser::type() {
  Type result;
  result.start = &parser_.peek();
  if (parser_.peek().kind == TokenKind::kWord) {
    const auto kind = parse_enum<ValueKind>(parser_.peek().text);
    if (kind && *kind != ValueKind::kTensor && *kind != ValueKind::kScalar) {
      parser_.take();
      result.kind = *kind;
      if (parser_.peek().kind == TokenKind::kWord) result.dtype = parser_.dtype("a dtype");
      return result;
    }
  }
  result.dtype = parser_.dtype("a type such as f32[%n]");
  if (!parser_.peek().is('[')) return result;
  result.kind = ValueKind::kTensor;
  parser_.list("dimensions", [&] { dimension(result); });
  while (parser_.peek().kind == TokenKind::kWord) {
    if (parser_.accept_word("contiguous")) continue;
    if (parser_.accept_word("contiguity"))
      result.contiguity = parser_.enumerators<Contiguity>("true, false or none");
    else
      result.memory = parser_.enumerator<MemoryType>("a memory type, contiguous or contiguity");
  }
  if (parser_.peek().is('{')) result.named = true;
  return result;
}

void GraphParser::dimension(Type& type) {
  Dimension d;
  const Token& first = parser_.peek();
  if (is_name(first) && !starts_extent(parser_.peek(1))) {
    type.named = true;
    d = declaration();
  } else {
    if (is_name(first)) {
      d.domain.iter_type = parser_.enumerator<IterType>("an iteration type");
      extent(d.domain);
    } else {
      if (!starts_extent(first)) parser_.fail_expected("a dimension such as %n, 1 or i0 iter %n");
      extent(d.domain);
      // A plain 1 is a broadcast.
      const ValueId e = d.domain.extent;
      if (e && g_[e].constant && g_[e].dtype == Dtype::kIndex && g_[e].constant->low == 1)
        d.domain.iter_type = IterType::kBroadcast;
    }
    d.domain.name = "i" + std::to_string(type.dimensions.size());
  }
  if (type.dimensions.size() == kMaxRank)
    Parser::fail(ErrorCode::kTooLarge, parser_.peek(), "a tensor has more than 256 dimensions; reshape it to fewer");
  type.dimensions.push_back(std::move(d));
}

void GraphParser::extent(IterDomain& d) {
  if (!parser_.accept('?')) d.extent = scalar_operand();
  if (parser_.accept('*')) d.expanded = scalar_operand();
}

// Reads `name iter %m*%h block.x like %y.i0`, or a name alone.
GraphParser::Dimension GraphParser::declaration() {
  Dimension d;
  if (!is_name(parser_.peek())) parser_.fail_expected("the name of a domain");
  d.name = &parser_.take();
  d.domain.name = std::string(d.name->text);
  d.declares = parser_.peek().kind == TokenKind::kWord;
  if (!d.declares) return d;
  d.domain.iter_type = parser_.enumerator<IterType>("an iteration type");
  if (starts_extent(parser_.peek()) || parser_.starts_literal()) extent(d.domain);
  if (parser_.peek().kind == TokenKind::kWord && parser_.peek().text != "like")
    d.domain.parallel = parser_.enumerator<ParallelType>("a parallel type");
  if (parser_.accept_word("like")) {
    if (parser_.peek().kind != TokenKind::kValue || !parser_.peek().has_domain)
      parser_.fail_expected("a domain such as %y.i0");
    d.stands_for = &parser_.take();
  }
  return d;
}

void GraphParser::take_type(ValueId value, const Type& type) {
  Value& v = g_[value];
  v.kind = type.kind;
  v.dtype = type.dtype;
  if (type.kind != ValueKind::kTensor) return;
  const TensorId tensor(g_.tensors.size());
  v.tensor = tensor;
  g_.tensors.emplace_back();
  g_[tensor].value = value;
  if (type.memory) g_[tensor].memory = *type.memory;
  g_[tensor].contiguity = type.contiguity;
  tensor_ = tensor;
  domain_names_.clear();
  undeclared_.clear();
  std::vector<DomainId> logical;
  for (const Dimension& d : type.dimensions) {
    if (d.name == nullptr) {
      g_.domains.push_back(d.domain);
      g_.domains.back().tensor = tensor;
      logical.push_back(DomainId(g_.domains.size() - 1));
      is_declared_.push_back(true);
      // An unnamed dimension among named ones has its name too, because the text may refer to it.
      if (type.named && !domain_names_.try_emplace(d.domain.name, logical.back()).second)
        Parser::fail(ErrorCode::kDuplicateName, *type.start, "two dimensions have one name; name them all");
    } else {
      logical.push_back(take(d));
    }
  }
  g_[tensor].logical = std::move(logical);
  if (parser_.peek().is('{')) {
    details(tensor);
    check_order(tensor, *type.start);
  }
  for (const auto& [token, id] : undeclared_)
    if (!is_declared_[id.index])
      Parser::fail(ErrorCode::kUnknownName, *token,
                   "no domain of this tensor is named " + std::string(token->text.substr(0, 60)) + "; declare it");
}

DomainId GraphParser::refer(const Token& name) {
  const auto [it, is_new] = domain_names_.try_emplace(name.text, DomainId(g_.domains.size()));
  if (is_new) {
    g_.domains.emplace_back();
    g_.domains.back().name = std::string(name.text);
    g_.domains.back().tensor = tensor_;
    is_declared_.push_back(false);
    undeclared_.emplace_back(&name, it->second);
  }
  return it->second;
}

DomainId GraphParser::take(const Dimension& d) {
  const DomainId id = refer(*d.name);
  if (!d.declares) return id;
  if (is_declared_[id.index])
    Parser::fail(ErrorCode::kDuplicateName, *d.name,
                 "two domains of one tensor are named " + std::string(d.name->text.substr(0, 60)) + "; rename one");
  is_declared_[id.index] = true;
  // Keeps what the text said about the domain before this declaration.
  const IterDomain before = g_[id];
  g_[id] = d.domain;
  g_[id].tensor = tensor_;
  g_[id].def = before.def;
  if (before.parallel != ParallelType::kSerial) g_[id].parallel = before.parallel;
  if (d.stands_for != nullptr) stand_ins_.push_back({id, d.stands_for});
  return id;
}

DomainId GraphParser::refer_here() {
  if (!is_name(parser_.peek())) parser_.fail_expected("the name of a domain");
  return refer(parser_.take());
}

std::vector<DomainId> GraphParser::references(std::string_view where) {
  std::vector<DomainId> result;
  parser_.list(where, [&] { result.push_back(refer_here()); });
  return result;
}

std::vector<DomainId> GraphParser::declarations(std::string_view where) {
  std::vector<DomainId> result;
  parser_.list(where, [&] { result.push_back(take(declaration())); });
  return result;
}

bool GraphParser::at_transform() const {
  for (size_t i = 0;; ++i) {
    const Token& t = parser_.peek(i);
    if (t.is('=')) return true;
    if (t.kind == TokenKind::kNewline || t.kind == TokenKind::kEnd) return false;
  }
}

void GraphParser::details(TensorId tensor) {
  parser_.block("a tensor's domains", [&] {
    if (at_transform()) return transform(tensor);
    if (parser_.accept_word("root")) {
      g_[tensor].root = declarations("root");
    } else if (parser_.accept_word("loop_broadcasts")) {
      g_[tensor].loop_broadcasts = declarations("loop_broadcasts");
    } else if (parser_.accept_word("domains")) {
      declarations("domains");
    } else if (parser_.accept_word("allocation")) {
      g_[tensor].allocation = references("allocation");
    } else if (parser_.accept_word("loop")) {
      std::vector<DomainId> loop;
      parser_.list("loop", [&] {
        loop.push_back(refer_here());
        if (parser_.peek().kind == TokenKind::kWord)
          g_[loop.back()].parallel = parser_.enumerator<ParallelType>("a parallel type");
      });
      g_[tensor].loop = std::move(loop);
    } else if (parser_.accept_word("mesh")) {
      g_[tensor].devices = parser_.integers("the devices of a mesh");
    } else if (parser_.accept_word("inline_at")) {
      const DomainId d = refer_here();
      g_[tensor].inline_at = d;
    } else if (parser_.accept_word("circular_depth")) {
      g_[tensor].circular_depth = parser_.integer("a number of stages");
    } else {
      parser_.fail_expected(
          "root, domains, loop_broadcasts, a transform, allocation, loop, mesh, inline_at or circular_depth");
    }
  });
}

// Reads `o iter, t iter = split i1 by 128 inner`.
void GraphParser::transform(TensorId tensor) {
  const Token& start = parser_.peek();
  const TransformId id(g_.transforms.size());
  if (g_[tensor].transforms.size() >= kMaxTransformsPerTensor)
    Parser::fail(ErrorCode::kTooLarge, start, "a tensor has more than 1024 transforms; split its schedule");
  Transform t;
  do {
    const Dimension d = declaration();
    const DomainId output = take(d);
    if (d.declares) g_[output].def = id;
    t.outputs.push_back(output);
  } while (parser_.accept(','));
  parser_.expect('=', "a transform");
  t.kind = parser_.enumerator<TransformKind>("split, merge, swizzle or resize");
  do t.inputs.push_back(refer_here());
  while (parser_.accept(','));
  if (parser_.accept_word("by")) {
    if (!parser_.accept_word("_")) t.factor = scalar_operand();
    if (parser_.accept(',')) t.right = scalar_operand();
  }
  if (parser_.accept_word("outer"))
    t.inner_split = false;
  else
    parser_.accept_word("inner");
  if (parser_.peek().kind == TokenKind::kWord) t.swizzle = parser_.enumerator<SwizzleType>("xor or cyclic");

  const size_t inputs = t.kind == TransformKind::kSplit || t.kind == TransformKind::kResize ? 1 : 2;
  const size_t outputs = t.kind == TransformKind::kSplit || t.kind == TransformKind::kSwizzle ? 2 : 1;
  const bool has_factor = t.kind == TransformKind::kSplit || t.kind == TransformKind::kResize;
  const bool has_right = t.kind == TransformKind::kResize;
  if (t.inputs.size() != inputs || t.outputs.size() != outputs || static_cast<bool>(t.factor) != has_factor ||
      static_cast<bool>(t.right) != has_right)
    Parser::fail(ErrorCode::kSyntax, start,
                 "a " + std::string(text(t.kind)) +
                     " has other operands or results; write `o iter, i iter = split d by 4 inner`, "
                     "`m iter = merge a, b`, `x iter, y iter = swizzle a, b xor` or `e iter = resize d by 1, 1`");
  g_.transforms.push_back(std::move(t));
  g_[tensor].transforms.push_back(id);
}

// Checks that transforms stand in order of application: none takes a domain that a later one makes.
void GraphParser::check_order(TensorId tensor, const Token& at) const {
  for (TransformId id : g_[tensor].transforms) {
    for (DomainId d : g_[id].inputs)
      if (g_[d].def && g_[d].def >= id)
        Parser::fail(
            ErrorCode::kSyntax, at,
            "a transform takes " + g_[d].name.substr(0, 60) + ", which a later one makes; write them in order");
  }
}

void GraphParser::resolve_stand_ins() {
  if (stand_ins_.empty()) return;
  if (stand_ins_.size() > kMaxLoopBroadcasts)
    Parser::fail(ErrorCode::kTooLarge, *stand_ins_[kMaxLoopBroadcasts].stands_for,
                 "more than 512 domains stand for others; use fewer loop broadcasts");
  std::map<std::pair<uint32_t, std::string_view>, DomainId> domains;
  for (size_t i = 0; i < g_.domains.size(); ++i)
    domains.try_emplace({g_.domains[i].tensor.index, g_.domains[i].name}, DomainId(i));
  for (const StandIn& s : stand_ins_) {
    const auto value = names_.find(s.stands_for->text);
    const auto found = value != names_.end() && g_.is_tensor(value->second)
                           ? domains.find({g_[value->second].tensor.index, s.stands_for->domain})
                           : domains.end();
    if (found == domains.end())
      Parser::fail(ErrorCode::kUnknownName, *s.stands_for,
                   "%" + std::string(s.stands_for->text.substr(0, 60)) + " has no domain " +
                       std::string(s.stands_for->domain.substr(0, 60)) + "; correct the name");
    g_[s.domain].stands_for = found->second;
  }
}

}  // namespace fusebox
