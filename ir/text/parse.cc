// Reads graphs: header, ops and regions.
#include "ir/text/parse.h"

#include <algorithm>

#include "ir/infer/infer.h"
#include "ir/table/families.h"
#include "ir/text/graph_parser.h"
#include "ir/text/print.h"

namespace fusebox {
namespace {

// Makes room for one more statement. A long list grows by a quarter, so it never holds twice what it needs. Returns the
// bytes of the list.
template <class T>
size_t grown(std::vector<T>& list, size_t more) {
  if (list.size() >= 64 && list.capacity() - list.size() < more)
    list.reserve(list.size() + std::max(list.size() / 4, more));
  return list.capacity() * sizeof(T);
}

}  // namespace

std::optional<Level> level_of_word(const Token& t) {
  if (t.kind != TokenKind::kWord) return std::nullopt;
  return t.text == "fusion" ? Level::kMath : parse_enum<Level>(t.text);
}

Graph GraphParser::run() {
  g_.level = *level_of_word(parser_.take());
  g_.name = parser_.graph_name();
  if (parser_.accept_word("index")) {
    const Token& at = parser_.peek();
    const int64_t width = parser_.integer("32 or 64");
    if (width != 32 && width != 64)
      Parser::fail(ErrorCode::kSyntax, at, "the width of index is neither 32 nor 64; write one of them");
    g_.index_bits = static_cast<int>(width);
  }
  region(Graph::body(), 0);
  finish();
  parser_.spent_bytes += g_.values.capacity() * sizeof(Value) + g_.ops.capacity() * sizeof(Op) +
                         g_.tensors.capacity() * sizeof(Tensor) + g_.domains.capacity() * sizeof(IterDomain) +
                         g_.transforms.capacity() * sizeof(Transform);
  return std::move(g_);
}

// -- values

ValueId GraphParser::mention(const Token& name) {
  const auto [it, is_new] = names_.try_emplace(name.text, ValueId(g_.values.size()));
  if (is_new) {
    Value v;
    v.name = std::string(name.text);
    g_.values.push_back(std::move(v));
    first_mention_.resize(g_.values.size());
    is_defined_.resize(g_.values.size());
    first_mention_.back() = &name;
  }
  return it->second;
}

ValueId GraphParser::define(const Token& name) {
  if (name.kind != TokenKind::kValue || name.has_domain)
    Parser::fail(ErrorCode::kSyntax, name, "a result is not a name; write %name");
  const ValueId id = mention(name);
  if (is_defined_[id.index])
    Parser::fail(ErrorCode::kDuplicateName, name,
                 "%" + std::string(name.text.substr(0, 60)) + " is defined twice; rename one");
  is_defined_[id.index] = true;
  return id;
}

ValueId GraphParser::constant_of(const Literal& literal) {
  const auto [it, is_new] =
      constants_.try_emplace({literal.dtype, literal.bits.low, literal.bits.high}, ValueId(g_.values.size()));
  if (is_new) {
    Value v;
    v.dtype = literal.dtype;
    v.constant = literal.bits;
    g_.values.push_back(std::move(v));
    first_mention_.resize(g_.values.size());
    is_defined_.resize(g_.values.size());
    is_defined_.back() = true;
  }
  return it->second;
}

ValueId GraphParser::operand() {
  const Token& t = parser_.peek();
  if (t.kind == TokenKind::kValue && !t.has_domain) return mention(parser_.take());
  if (const auto literal = parser_.literal()) return constant_of(*literal);
  parser_.fail_expected("a value such as %x or 1.5_f32");
}

ValueId GraphParser::scalar_operand() {
  const Token& t = parser_.peek();
  const ValueId v = operand();
  // check_scalars checks a value that is defined later.
  if (is_defined_[v.index] && g_[v].kind != ValueKind::kScalar)
    Parser::fail(ErrorCode::kWrongKind, t,
                 "%" + g_[v].name.substr(0, 60) + " is no scalar; an extent or factor is one");
  return v;
}

void GraphParser::finish() {
  for (size_t i = 0; i < g_.values.size(); ++i)
    if (!is_defined_[i])
      Parser::fail(ErrorCode::kUnknownName, *first_mention_[i],
                   "nothing defines %" + g_.values[i].name.substr(0, 60) + "; define it or correct the name");
  check_scalars();
  resolve_stand_ins();
  for (ValueId v : inferred_values_)
    if (names_.contains(g_[v].name)) g_[v].name = fresh_name(g_, g_[v].name);
}

// Checks that extents and factors are scalars.
void GraphParser::check_scalars() const {
  const auto check = [&](ValueId v) {
    if (!v || g_[v].kind == ValueKind::kScalar) return;
    Parser::fail(ErrorCode::kWrongKind, *first_mention_[v.index],
                 "%" + g_[v].name.substr(0, 60) + " is no scalar; an extent or factor is one");
  };
  for (const IterDomain& d : g_.domains) {
    check(d.extent);
    check(d.expanded);
  }
  for (const Transform& t : g_.transforms) {
    check(t.factor);
    check(t.right);
  }
}

// -- ops

void GraphParser::region(RegionId id, int depth) {
  if (depth > kMaxRegionDepth)
    Parser::fail(ErrorCode::kTooLarge, parser_.peek(), "regions are nested more than 64 deep; flatten them");
  parser_.expect('{', "a region");
  parser_.skip_newlines();
  if (parser_.peek().is_word("index") && parser_.peek(1).kind == TokenKind::kValue) {
    parser_.take();
    const ValueId index = define(parser_.take());
    g_[id].index = index;
    if (parser_.accept(':')) take_type(index, type());
    g_[index].index_of = id;
    parser_.end_statement();
  }
  for (parser_.skip_newlines(); !parser_.accept('}'); parser_.skip_newlines()) {
    make_room();
    statement(id, depth);
    parser_.end_statement();
  }
}

// Makes room for the next statement, and throws if the text takes too much memory. Lists of ids and names are small
// blocks of their own.
void GraphParser::make_room() {
  constexpr size_t kBlockBytes = 32;
  const size_t values = grown(g_.values, 32), ops = grown(g_.ops, 32), tensors = grown(g_.tensors, 32);
  const size_t domains = grown(g_.domains, 2 * kMaxRank), transforms = grown(g_.transforms, 64);
  const size_t blocks = kBlockBytes * (2 * g_.ops.size() + 2 * g_.transforms.size() + g_.tensors.size()) +
                        2 * kBlockBytes * names_.size() + sizeof(DomainId) * g_.domains.size();
  const size_t bytes =
      parser_.token_bytes() + parser_.spent_bytes + values + ops + tensors + domains + transforms + blocks;
  // The longest list may be copied when it grows.
  if (bytes + std::max({values, ops, tensors, domains, transforms}) > parser_.most_bytes())
    Parser::fail(
        ErrorCode::kTooLarge, parser_.peek(),
        "so short a text makes more than 64 bytes for each of its own; give fewer ops, or the module as bytes");
}

void GraphParser::limit_rank(OpId id, const Token& start) const {
  for (ValueId v : g_[id].results)
    if (g_.is_tensor(v) && g_.tensor_of(v).logical.size() > kMaxRank)
      Parser::fail(ErrorCode::kTooLarge, start, "a tensor has more than 256 dimensions; reshape it to fewer");
}

OpKind GraphParser::op_kind() {
  const Token& t = parser_.peek();
  if (t.kind != TokenKind::kWord) parser_.fail_expected("an op");
  parser_.take();
  if (const auto kind = parse_op(t.text)) return *kind;
  try {
    return op_named(t.text);
  } catch (const Error& e) {
    Parser::fail(e.code, t, e.what());
  }
}

void GraphParser::statement(RegionId region_id, int depth) {
  const Token& start = parser_.peek();
  Op op;
  if (start.kind == TokenKind::kValue) {
    do op.results.push_back(define(parser_.take()));
    while (parser_.accept(','));
    parser_.expect('=', "an op's results");
  }
  op.kind = op_kind();
  const OpRow& row = row_of(op.kind);
  if (row.format->results >= 0 && op.results.size() != static_cast<size_t>(row.format->results))
    Parser::fail(ErrorCode::kOperandCount, start,
                 "`" + std::string(row.text) + "` has " + std::to_string(row.format->results) + " results, not " +
                     std::to_string(op.results.size()) + "; name each");
  parser_.operands(
      *row.format, row.text, [&](const Slot&) { op.operands.push_back(operand()); },
      [&] { op.operands.push_back(ValueId()); });

  const bool is_input = op.kind == OpKind::kInput;
  if (!is_input) op.attrs = parser_.attrs(row.attrs, row.text, false);
  const std::vector<ValueId> results = op.results;
  const auto infers = [&](const Type& t) {
    return t.kind == ValueKind::kTensor && !t.named && !is_input &&
           (g_.level == Level::kMath || g_.level == Level::kScheduled);
  };
  const OpId id = append(g_, region_id, std::move(op));
  if (is_input || parser_.accept(':')) {
    std::vector<Type> written;
    size_t to_infer = 0, tensors = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      if (i > 0) parser_.expect(',', "a type for each result");
      written.push_back(type());
      tensors += written.back().kind == ValueKind::kTensor ? 1 : 0;
      infers(written.back()) ? void(++to_infer) : take_type(results[i], written.back());
    }
    if (to_infer != 0 && to_infer != tensors)
      Parser::fail(ErrorCode::kSyntax, start,
                   "some results have named dimensions and some not; name them in all or in none");
    if (to_infer != 0) infer_results(id, start, written);
  } else if (!results.empty() && (row.format->slot_count != 0 || row.format->results != -1)) {
    infer_results(id, start, {});
  }
  limit_rank(id, start);

  while (row.format->regions != 0 && parser_.peek().is('{')) {
    const RegionId inner = add_region(g_);
    g_[id].regions.push_back(inner);
    region(inner, depth + 1);
    if (row.format->regions == 1 || !parser_.accept_word("else")) break;
    if (!parser_.peek().is('{')) parser_.fail_expected("`{` after else");
  }
  if (row.format->regions > 0 && g_[id].regions.size() != static_cast<size_t>(row.format->regions))
    parser_.fail_expected("`{` of a region");
}

bool GraphParser::gives_tensors(OpId id) const {
  if (g_.level != Level::kMath && g_.level != Level::kScheduled) return false;
  const Op& op = g_[id];
  return op.kind == OpKind::kFull || op.kind == OpKind::kIota || is_random(op.kind) ||
         std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId v) { return v && g_.is_tensor(v); });
}

void GraphParser::make_tensor(ValueId value) {
  g_[value].kind = ValueKind::kTensor;
  g_[value].tensor = TensorId(g_.tensors.size());
  g_.tensors.emplace_back();
  g_.tensors.back().value = value;
}

// Inference made the results as new values at the end. Moves them to the values that the text names.
void GraphParser::adopt_results(OpId id, const std::vector<ValueId>& named, const Token& start) {
  const std::vector<ValueId> made = g_[id].results;
  if (made.size() != named.size())
    Parser::fail(
        ErrorCode::kOperandCount, start,
        "this op has " + std::to_string(made.size()) + " results, not " + std::to_string(named.size()) + "; name each");
  for (size_t i = 0; i < made.size(); ++i) {
    std::string name = std::move(g_[named[i]].name);
    g_[named[i]] = g_[made[i]];
    g_[named[i]].name = std::move(name);
    if (g_.is_tensor(named[i])) g_.tensor_of(named[i]).value = named[i];
  }
  g_[id].results = named;
  g_.values.resize(g_.values.size() - made.size());
}

void GraphParser::infer_results(OpId id, const Token& start, const std::vector<Type>& types) {
  const auto is_long = [](const Attr& a) {
    const auto* list = std::get_if<std::vector<int64_t>>(&a.value);
    return list && list->size() > kMaxListed;
  };
  const auto& attrs = g_[id].attrs.list();
  if (g_[id].operands.size() > kMaxListed || std::any_of(attrs.begin(), attrs.end(), is_long))
    Parser::fail(ErrorCode::kTooLarge, start, "a list has more than 1024 elements; split the op");
  for (ValueId v : g_[id].operands) {
    if (!v || is_defined_[v.index]) continue;
    const std::string name = "%" + g_[v].name.substr(0, 60);
    if (!parser_.defines_later(g_[v].name))
      Parser::fail(ErrorCode::kUnknownName, *first_mention_[v.index],
                   "nothing defines " + name + "; define it or correct the name");
    Parser::fail(ErrorCode::kNotDominated, start,
                 "the type of this op follows from " + name + ", which is defined later; move it up");
  }
  for (ValueId v : g_[id].operands)
    if (v && std::find(g_[id].results.begin(), g_[id].results.end(), v) != g_[id].results.end())
      Parser::fail(ErrorCode::kNotDominated, start,
                   "%" + g_[v].name.substr(0, 60) + " is an operand of the op that defines it; correct one of them");
  const std::vector<ValueId> results = g_[id].results;
  const size_t values_before = g_.values.size();
  // Inference keeps the kinds of existing results. At kernel and host level, without written types, it makes the
  // results itself.
  const bool makes_results = types.empty() && g_.level != Level::kMath && g_.level != Level::kScheduled;
  for (size_t i = 0; i < results.size(); ++i)
    if (types.empty() ? gives_tensors(id) : types[i].kind == ValueKind::kTensor) make_tensor(results[i]);
  if (makes_results) g_[id].results.clear();
  try {
    infer(g_, id);
  } catch (const Error& e) {
    Parser::fail(e.code, start, e.place.empty() ? std::string(e.what()) : std::string(e.what()) + " (" + e.place + ")");
  }
  if (makes_results) adopt_results(id, results, start);
  first_mention_.resize(g_.values.size());
  is_defined_.resize(g_.values.size(), true);
  is_declared_.resize(g_.domains.size(), true);
  for (size_t i = values_before; i < g_.values.size(); ++i) {
    const Value& v = g_.values[i];
    if (v.constant)
      constants_.try_emplace({v.dtype, v.constant->low, v.constant->high}, ValueId(i));
    else
      inferred_values_.push_back(ValueId(i));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const Type& written = types[i];
    check_annotation(results[i], written);
    if (written.kind != ValueKind::kTensor) continue;
    Tensor& t = g_.tensor_of(results[i]);
    if (written.memory) t.memory = *written.memory;
    if (!written.contiguity.empty()) t.contiguity = written.contiguity;
  }
}

void GraphParser::check_annotation(ValueId value, const Type& type) {
  const auto refuse = [&] {
    Parser::fail(ErrorCode::kTypeAnnotation, *type.start,
                 "%" + g_[value].name.substr(0, 60) + " is " + print_type(g_, value) +
                     ", which is not what is written; correct the type");
  };
  if (g_[value].kind != type.kind || g_[value].dtype != type.dtype) refuse();
  if (type.kind != ValueKind::kTensor) return;
  const std::vector<DomainId> seen = logical_without_reductions(g_, g_.tensor_of(value));
  if (seen.size() != type.dimensions.size()) refuse();
  for (size_t i = 0; i < seen.size(); ++i) {
    const IterDomain &is = g_[seen[i]], &says = type.dimensions[i].domain;
    // `?` and an extent that follows from a transform are not compared.
    const bool open = !says.extent || !is.extent;
    if (is.iter_type != says.iter_type && !(open && says.iter_type == IterType::kIteration)) refuse();
    if (!open && is.extent != says.extent) refuse();
    if (says.expanded != is.expanded && !open) refuse();
  }
}

Graph parse_graph(std::string_view text) {
  Parser p(text);
  p.skip_newlines();
  if (!level_of_word(p.peek())) p.fail_expected("a graph: fusion, scheduled, kernel or host");
  Graph g = GraphParser(p).run();
  p.skip_newlines();
  if (!p.at_end()) p.fail_expected("the end of the text");
  return g;
}

}  // namespace fusebox
