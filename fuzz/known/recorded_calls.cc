// Tables of calls, each with what it gives or the Error that it throws.
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>

#include "fuzz/known/outcome_list.h"
#include "fuzz/known/recorded.h"
#include "fuzz/known/recorded_tables.h"
#include "ir/build/builder.h"
#include "ir/module/device_properties.h"
#include "ir/scalar/numeric.h"
#include "ir/scalar/prepared_division.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "ir/text/json.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/token/lex.h"
#include "ir/token/literal.h"
#include "serde/cache_record.h"

namespace fusebox::fuzz {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

// -- numbers

const std::vector<double>& numbers() {
  static const std::vector<double> list = {0,      -0.0,   1,       -1,     0.5,   -0.5, 1.5,   2.5,  3,
                                           6,      7,      100,     127,    128,   -128, -129,  255,  256,
                                           448,    480,    1e-3,    65504,  65520, 1e10, 2e-45, 1e39, 0x1p31,
                                           0x1p53, 0x1p63, -0x1p63, 0x1p64, 1e300, kInf, -kInf, kNan};
  return list;
}

std::string number_calls() {
  std::string out;
  constexpr std::complex<double> kComplex[] = {{0, 0},    {0, 1},    {1, 0},    {-0.0, 0},
                                               {0, -0.0}, {0, kNan}, {kNan, 0}, {1.5, -2.5}};
  constexpr int64_t kIntegers[] = {0,
                                   1,
                                   -1,
                                   127,
                                   128,
                                   255,
                                   256,
                                   -32769,
                                   int64_t{1} << 31,
                                   std::numeric_limits<int64_t>::max(),
                                   std::numeric_limits<int64_t>::min()};
  for (const DtypeRow& row : dtype_rows()) {
    const auto d = static_cast<Dtype>(&row - dtype_rows().data());
    const auto literal = [&](ConstantBits bits) { return print_literal(d, bits); };
    out += fmt::format("-- {}\n", text(d));
    out += outcome_text([&] {
             std::string line;
             for (const double x : numbers()) {
               const ConstantBits bits = from_double(d, x);
               line += fmt::format(" {}{}{}{}", literal(bits), is_exact(d, x) ? "" : "~", to_bool(d, bits) ? "" : "!",
                                   is_canonical(d, bits) ? "" : "?");
             }
             return line;
           }) +
           "\n";
    out += outcome_text([&] {
             std::string line;
             for (const std::complex<double> x : kComplex) {
               const ConstantBits bits = from_complex(d, x);
               const std::complex<double> back = to_complex(d, bits);
               line += fmt::format(" {}.{} ({} {}) {} {}", bits.low, bits.high, back.real(), back.imag(),
                                   to_bool(d, bits), to_int64(d, bits));
             }
             return line;
           }) +
           "\n";
    out += outcome_text([&] {
             std::string line;
             for (const int64_t n : kIntegers)
               line +=
                   fmt::format(" {} {}", literal(from_int64(d, n)), literal(from_uint64(d, static_cast<uint64_t>(n))));
             return line;
           }) +
           "\n";
    // All bits that are beyond the dtype, and conversions to the other dtypes.
    out += outcome_text([&] {
             Checksum sum;
             const ConstantBits given[] = {
                 {0, 0}, {~uint64_t{0}, ~uint64_t{0}}, {0x8080808080808080u, 1}, {1, 0x7fc00000u}};
             for (const ConstantBits bits : given)
               sum.add(literal(canonical_bits(d, bits)) + (is_canonical(d, bits) ? "=" : ""));
             for (const DtypeRow& other : dtype_rows()) {
               const auto to = static_cast<Dtype>(&other - dtype_rows().data());
               sum.add(outcome_text([&] {
                 std::string line;
                 for (const double x : numbers()) line += " " + print_literal(to, convert(d, from_double(d, x), to));
                 for (const std::complex<double> x : kComplex)
                   line += " " + print_literal(to, convert(d, from_complex(d, x), to));
                 return line;
               }));
             }
             return "conversions " + sum.text();
           }) +
           "\n";
  }
  out += "-- divisors\n";
  for (const int64_t d : {int64_t{-7}, int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{64},
                          int64_t{1000}, (int64_t{1} << 31) - 1, int64_t{1} << 31, (int64_t{1} << 31) + 1,
                          int64_t{1} << 32, int64_t{1} << 40, std::numeric_limits<int64_t>::max()}) {
    const int64_t prepared = prepare_division(d);
    out += fmt::format("{}: {} of", d, prepared);
    for (const int64_t a : {int64_t{0}, int64_t{1}, int64_t{6}, int64_t{7}, int64_t{1000}, (int64_t{1} << 31) - 1})
      out += fmt::format(" {}", prepared_quotient(a, prepared));
    out += "\n";
  }
  return out;
}

// -- scalars

// Each op on scalars whose values are partly known: constants that it folds to, operands that it gives.
std::string scalar_calls() {
  std::string out;
  Graph g = fusion("f");
  std::vector<ValueId> pool = {size(g, "n"),
                               size(g, "m"),
                               input_scalar(g, "b", Dtype::kBool),
                               input_scalar(g, "c", Dtype::kBool),
                               input_scalar(g, "i", Dtype::kInt32),
                               input_scalar(g, "f", Dtype::kFloat)};
  const size_t unknown = pool.size();
  for (const int64_t n : {0, 1, -1, 2, 5}) pool.push_back(constant_index(g, n));
  for (const int64_t n : {0, 1, 3}) pool.push_back(constant(g, Dtype::kInt32, from_int64(Dtype::kInt32, n)));
  for (const int64_t n : {0, 1}) pool.push_back(constant(g, Dtype::kBool, from_int64(Dtype::kBool, n)));
  for (const double x : {0.0, 1.0, -2.5}) pool.push_back(constant_of(g, Dtype::kFloat, x));
  for (const OpRow& row : op_rows()) {
    const int count = row.format->slot_count;
    if (!demands(row.kind, kPointwise) || !row.at(Level::kMath) || count > 3 || row.format->results != 1) continue;
    if (count == 0 || row.kind == OpKind::kIota || row.kind == OpKind::kFull || row.format->slots[0].kind == 't')
      continue;
    std::string lines;
    OutcomeList folded;
    const size_t choices = count == 1   ? pool.size()
                           : count == 2 ? pool.size() * pool.size()
                                        : pool.size() * pool.size() * pool.size();
    for (size_t at = 0; at < choices; at += count == 3 ? 7 : 1) {
      std::vector<ValueId> operands;
      std::string what(row.text);
      bool is_known = true;
      for (size_t i = 0, rest = at; i < static_cast<size_t>(count); ++i, rest /= pool.size()) {
        operands.push_back(pool[rest % pool.size()]);
        is_known = is_known && rest % pool.size() >= unknown;
        what += " " + print_value(g, operands.back());
      }
      folded.add(what, [&] {
        Graph copy = g;
        Attrs attrs;
        if (row.kind == OpKind::kCast) attrs.set(AttrKey::kDtypeAttr, Dtype::kInt32);
        const ValueId result = scalar::make(copy, Graph::body(), row.kind, operands, {}, attrs);
        const bool is_new = result.index >= g.values.size() && !copy.is_constant(result);
        const std::string is = is_new ? print_op(copy, copy[result].def) : print_value(copy, result);
        if (!is_known && !is_new) lines += fmt::format("  {} = {}\n", what, is);
        return is;
      });
    }
    out += fmt::format("{}\n{}{}", row.text, lines, folded.text());
  }
  return out;
}

// -- the rest

std::string device_calls() {
  std::string out;
  for (const std::string_view name : {"a100", "h100", "h200", "b200", "H100", "", "h1000"}) {
    const std::optional<DeviceProperties> d = find_device(name);
    out += d ? fmt::format("{}: {} {} {} {} {} {} {} {} {} {} {} {}\n", name, d->name, d->architecture,
                           d->multiprocessors, d->l2_bytes, d->shared_bytes, d->shared_block_bytes, d->memory_bytes,
                           d->clock_khz, d->bytes_per_second, d->registers, d->threads, d->warp)
             : fmt::format("{}: none\n", name);
  }
  return out + "default: " + default_device().name + "\n";
}

std::string key_calls() {
  std::string out;
  const CacheKey keys[] = {{},
                           {key_part("a", "bc")},
                           {key_part("ab", "c")},
                           {key_part("a", ""), key_part("", "b")},
                           {key_part("fusion", "0123456789"), key_part("steps", "x")}};
  for (const CacheKey& key : keys)
    out += fmt::format("{} `{}` `{}`\n", key_bytes(key), part_of(key, "a"), part_of(key, "steps"));
  return out;
}

// Names and other texts as tokens and as JSON.
std::string text_calls() {
  std::string out;
  const std::string_view texts[] = {"",
                                    "a",
                                    "a.b",
                                    "a b",
                                    "7",
                                    "-7",
                                    "_",
                                    "a\"b\\c",
                                    "\n\t\r",
                                    "\x01\x1f",
                                    "\xc3\xa9",
                                    "\xff",
                                    "\xc1\xbf",
                                    "\xc2\x80",
                                    "\xdf\x7f",
                                    "\xe0\x9f\xbf",
                                    "\xe0\xa0\x80",
                                    "\xe2\x82",
                                    "\xed\x9f\xbf",
                                    "\xed\xa0\x80",
                                    "\xc3",
                                    "\xc0\x80",
                                    "\xe2\x82\xac",
                                    "\xe2x",
                                    "\xe2\x82x",
                                    "\xef\xbf\xbf",
                                    "\xf0\x9f\x98\x80",
                                    "\xf0\x9f\x98",
                                    "\xf0\x9f"
                                    "x\x80",
                                    "\xf0\x8f\xbf\xbf",
                                    "\xf0\x90\x80\x80",
                                    "\xf4\x8f\xbf\xbf",
                                    "\xf4\x90\x80\x80",
                                    "\xf4\x8f\xbf",
                                    "\xf5\x80\x80\x80",
                                    "\x7f\x80",
                                    "\\x4A",
                                    "\"\\x4a\"",
                                    "\"\\n\"",
                                    "\"\\q\"",
                                    "\"open",
                                    "%x.i0",
                                    "%\"x y\".i0",
                                    "%\"x\".\"i 0\"",
                                    "%",
                                    "%x.",
                                    "@f",
                                    "@",
                                    "->",
                                    "-",
                                    "-inf",
                                    "0x",
                                    "0x1F_f32",
                                    "0X1f",
                                    "1.5e-3_f64",
                                    "1e",
                                    "nan",
                                    "inf",
                                    "é",
                                    "a//b",
                                    "{}[](),=:*?",
                                    "!",
                                    "\"\\\"\\\\\"",
                                    "\"\\x4G\"",
                                    "\"\\x4\"",
                                    "\"\\xAf\"",
                                    "\"\\xag\"",
                                    "\"\\x`0\"",
                                    "\"\\x:0\""};
  for (const std::string_view text : texts) {
    out += fmt::format("{} {} {} {}:", quoted(text), json_string(text), is_plain_name(text) ? "name" : "-",
                       is_plain_word(text) ? "word" : "-");
    out += outcome_text([&] {
             std::string line;
             const Tokens tokens(text);
             for (const Token& t : tokens.list())
               line += fmt::format(" {}:{} {} {}{}{}", t.line, t.column, static_cast<int>(t.kind), quoted(t.text),
                                   t.has_domain ? "." : "", t.has_domain ? quoted(t.domain) : "");
             return line;
           }) +
           "\n";
  }
  // A graph that does not verify, for no transform makes the axis that says so.
  Graph g = fusion("f");
  const ValueId x = input(g, "x", Dtype::kFloat, {3, 4});
  g.transforms.emplace_back();
  g[g.tensor_of(x).logical[1]].def = TransformId(0u);
  out += print(g);
  // Literals of each dtype.
  constexpr std::string_view kLiterals[] = {"0",
                                            "1",
                                            "-1",
                                            "true",
                                            "false",
                                            "1.5",
                                            "-0.0",
                                            "inf",
                                            "-inf",
                                            "nan",
                                            "-nan",
                                            "128",
                                            "255",
                                            "65536",
                                            "0x7f",
                                            "0xff",
                                            "0x1ff",
                                            "1e40",
                                            "1e400",
                                            "0.1",
                                            "infinity",
                                            ".5",
                                            "5.",
                                            "+1",
                                            "c64(1.0, -0.0)",
                                            "c64(nan, inf)",
                                            "c128(0.1, 1)",
                                            "c64(1)",
                                            "c64(1_f32, 2)",
                                            "c64(1, 2_i8)",
                                            "c128(1.0_zz, 2)",
                                            "c64(0x3f800000, 0xff)",
                                            "c64(inf, -nan)",
                                            "c64(true, 2)",
                                            "c32(1.0, 2.0)",
                                            "18446744073709551615",
                                            "9223372036854775808",
                                            "99999999999999999999"};
  OutcomeList literals;
  for (const std::string_view literal : kLiterals) {
    out += fmt::format("{} ->", literal);
    for (const std::string_view suffix :
         {"", "_bool", "_i8", "_u8", "_i32", "_u64", "_i64", "_index", "_f16", "_bf16", "_f32", "_f64", "_f8e4m3",
          "_f8e8m0", "_f4e2m1", "_f4e2m1x2", "_c64", "_zz", "_"}) {
      const std::string written = std::string(literal) + std::string(suffix);
      literals.add(written, [&] {
        const std::string printed = print(parse_input_spec("x", written));
        out += printed.substr(printed.find('=') + 1);
        return printed;
      });
    }
    out += "\n";
  }
  out += literals.text();
  // Specs of inputs.
  for (const std::string_view spec : {"f32[3]",
                                      "f32[]",
                                      "f32[3, 0] normal",
                                      "f32[3] normal 1.0 2.0 seed 7",
                                      "f32[3] normal -0.0 1.0",
                                      "f32[3] uniform 0.5",
                                      "f32[3] strides [2]",
                                      "f32[3] strides [-2] offset 4",
                                      "f32[3] strides [2, 1]",
                                      "f32[3] offset -1",
                                      "f32[-3]",
                                      "f32[3] seed -1",
                                      "f32[3] seed 18446744073709551615",
                                      "f32[3] constant 2.5 value 1.5_f32",
                                      "f32[3] value 1.5_f16",
                                      "f32[3] value 1.5",
                                      "f32[3] integers 0 9",
                                      "f32[3] zz",
                                      "f32",
                                      "zz[3]",
                                      "i64[3] boundary",
                                      "1.5_f32 shape [3]",
                                      "1.5_f32 shape [3] strides [0]",
                                      "1.5_f32 normal",
                                      "1.5_f32 seed 3",
                                      "1.5_f32 constant",
                                      "1.5_f32 uniform 0.0 2.0 seed 3",
                                      "7 offset 2",
                                      "true",
                                      "f32[3] normal\n",
                                      "\n\nf32[3]",
                                      "f32[3] f32[3]",
                                      "f32[3] normal 1e400 2.0",
                                      "f32[99999999999999999999]"})
    out += quoted(spec) + ": " + outcome_text([&] { return print(parse_input_spec("x", spec)); }) + "\n";
  return out;
}

const std::map<std::string_view, std::string (*)()>& tables() {
  static const std::map<std::string_view, std::string (*)()> list = {{"builder", builder_calls},
                                                                     {"builder_scheduled", scheduled_builder_calls},
                                                                     {"builder_low", low_level_calls},
                                                                     {"builder_of_kernels", kernel_builder_calls},
                                                                     {"evaluation", evaluation_calls},
                                                                     {"launches", launch_calls},
                                                                     {"resolutions", resolution_calls},
                                                                     {"many_loops", many_loop_calls},
                                                                     {"numbers", number_calls},
                                                                     {"scalars", scalar_calls},
                                                                     {"devices", device_calls},
                                                                     {"keys", key_calls},
                                                                     {"texts", text_calls},
                                                                     {"types", type_calls}};
  return list;
}

}  // namespace

std::string recorded_calls(std::string_view table) {
  const auto it = tables().find(table);
  if (it == tables().end())
    throw Error(ErrorCode::kUnknownName, "no table of calls has this name; correct it", std::string(table));
  return it->second();
}

}  // namespace fusebox::fuzz
