// Tables of calls that programs make with few of the possible arguments: the evaluation of scalars, the builder of kernels,
// launches, resolutions of symbolic axes, and an algebra with very many loops.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>

#include "codegen/bytecode.h"
#include "fuzz/known/outcome_list.h"
#include "fuzz/known/recorded_tables.h"
#include "ir/build/builder.h"
#include "ir/infer/concretize.h"
#include "ir/scalar/numeric.h"
#include "ir/scalar/scalar.h"
#include "ir/table/error.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/token/literal.h"
#include "passes/algebra/index_algebra.h"
#include "passes/kernel/kernel_builder.h"
#include "replay/host/host_executor.h"

namespace fusebox::fuzz {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();

std::string number_text(Dtype d, ConstantBits bits) {
  const std::string text = print_literal(d, bits);
  return d == Dtype::kBool ? text.substr(0, 1) : text.substr(0, text.rfind('_'));
}

}  // namespace

// For each op, dtype and dtype of the result, what a few operands give. `-`: the op is not evaluated.
std::string evaluation_calls() {
  const std::array<double, 3> numbers = {0, 1, -3};
  std::string out;
  for (const OpRow& row : op_rows()) {
    const int count = row.format->slot_count;
    if (!demands(row.kind, kPointwise) || count < 1 || count > 2 || row.kind == OpKind::kIota) continue;
    for (const Dtype from : {Dtype::kBool, Dtype::kUint8, Dtype::kInt32, Dtype::kIndex, Dtype::kFloat})
      for (const Dtype to : {Dtype::kBool, Dtype::kInt32, Dtype::kFloat}) {
        std::string line;
        bool is_any = false;
        for (const double x : numbers)
          for (const double y : numbers) {
            if ((from == Dtype::kBool && (x < 0 || y < 0)) || (count == 1 && y != 0)) continue;
            const std::array<TypedBits, 2> operands = {TypedBits{from, from_double(from, x)},
                                                       TypedBits{from, from_double(from, y)}};
            const auto bits = evaluate_op(row.kind, to, std::span(operands).first(static_cast<size_t>(count)));
            line += " " + (bits ? number_text(to, *bits) : "-");
            is_any = is_any || bits;
          }
        if (is_any) out += fmt::format("{} {} as {}:{}\n", row.text, text(from), text(to), line);
      }
  }
  return out;
}

// What the builder of kernels makes of pairs of indices: a constant, an operand, or an op.
std::string kernel_builder_calls() {
  using Binary = std::function<ValueId(KernelBuilder&, ValueId, ValueId)>;
  const std::pair<std::string_view, Binary> functions[] = {
      {"add", [](KernelBuilder& b, ValueId x, ValueId y) { return b.add(x, y); }},
      {"sub", [](KernelBuilder& b, ValueId x, ValueId y) { return b.sub(x, y); }},
      {"mul", [](KernelBuilder& b, ValueId x, ValueId y) { return b.mul(x, y); }},
      {"floor_div", [](KernelBuilder& b, ValueId x, ValueId y) { return b.floor_div(x, y, false); }},
      {"floor_div of what is not negative",
       [](KernelBuilder& b, ValueId x, ValueId y) { return b.floor_div(x, y, true); }},
      {"floor_mod", [](KernelBuilder& b, ValueId x, ValueId y) { return b.floor_mod(x, y, false); }},
      {"floor_mod of what is not negative",
       [](KernelBuilder& b, ValueId x, ValueId y) { return b.floor_mod(x, y, true); }},
      {"ceil_div", [](KernelBuilder& b, ValueId x, ValueId y) { return b.ceil_div(x, y); }},
      {"minimum", [](KernelBuilder& b, ValueId x, ValueId y) { return b.minimum(x, y); }},
      {"maximum", [](KernelBuilder& b, ValueId x, ValueId y) { return b.maximum(x, y); }},
      {"lt", [](KernelBuilder& b, ValueId x, ValueId y) { return b.compare(OpKind::kLt, x, y); }},
      {"ge", [](KernelBuilder& b, ValueId x, ValueId y) { return b.compare(OpKind::kGe, x, y); }},
      {"eq", [](KernelBuilder& b, ValueId x, ValueId y) { return b.compare(OpKind::kEq, x, y); }},
      {"ne", [](KernelBuilder& b, ValueId x, ValueId y) { return b.compare(OpKind::kNe, x, y); }},
      {"where", [](KernelBuilder& b, ValueId x, ValueId y) { return b.where(b.compare(OpKind::kLt, x, y), x, y); }},
      {"and of bits", [](KernelBuilder& b, ValueId x, ValueId y) {
         return b.logical_and(b.compare(OpKind::kLt, x, b.index(1)), b.compare(OpKind::kLt, y, b.index(2)));
       }}};
  std::string out;
  for (const auto& [name, function] : functions) {
    out += fmt::format("{}\n", name);
    KernelBuilder b("k", 64);
    std::vector<ValueId> pool;
    for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{7}, int64_t{-3}, kMost, kLeast})
      pool.push_back(b.index(n));
    for (const std::string_view parameter : {"x", "y"}) pool.push_back(b.scalar_parameter(Dtype::kIndex, parameter));
    for (const ValueId x : pool) {
      out += fmt::format("  {}:", print_value(b.graph(), x));
      for (const ValueId y : pool) {
        const ValueId made = function(b, x, y);
        const OpId def = b.graph()[made].def;
        const bool is_new = def && b.graph()[def].kind != OpKind::kInput;
        std::string text = is_new ? print_op(b.graph(), def) : print_value(b.graph(), made);
        // Without its name: two calls with the same operands give one op.
        if (is_new) text = "(" + text.substr(text.find("= ") + 2) + ")";
        out += " " + text;
      }
      out += "\n";
    }
  }
  return out;
}

// Launches of a kernel with arguments of another number, dtype, memory or shape.
std::string launch_calls() {
  const Bytecode code = compile_bytecode(parse_module("kernel @k index 32 {\n"
                                                      "  %x = input f16[?] global\n"
                                                      "  %y = input i64[?] global\n"
                                                      "  %n = input index\n"
                                                      "  %s = input i64\n"
                                                      "  %f = input f32\n"
                                                      "  %t = thread_index on block.x\n"
                                                      "  %v = load %y at %t\n"
                                                      "  within %v of %x axis 1\n"
                                                      "  store %y at %t, %s\n"
                                                      "}\n")
                                             .graphs[0]);
  alignas(16) std::array<std::byte, 64> halves = {};
  alignas(16) std::array<int64_t, 4> integers = {};
  std::array<uint8_t, 4> marks = {1, 1, 1, 1};
  const std::array<int64_t, 2> extents = {4, 5};
  HostArgument x = HostArgument::memory(Dtype::kHalf, halves.data(), 4);
  x.extents = extents;
  const std::vector<HostArgument> good = {
      x, HostArgument::memory(Dtype::kInt64, integers.data(), 4, marks), HostArgument::scalar(Dtype::kIndex, {3, 0}),
      HostArgument::scalar(Dtype::kInt64, {9, 0}), HostArgument::scalar(Dtype::kFloat, {})};
  std::string out;
  const auto run = [&](std::string_view what, const std::function<void(std::vector<HostArgument>&)>& change,
                       const LaunchDims& dims = {.grid = {1, 1, 1}, .block = {4, 1, 1}}) {
    std::vector<HostArgument> args = good;
    change(args);
    integers = {0, 1, 2, 3};
    out += fmt::format("{}: {}\n", what, outcome_text([&] {
                         const HostResult result = run_kernel(code, dims, args);
                         if (result.finding) throw result.finding->error();
                         return fmt::format("{} thread-instructions, {}", result.thread_instructions, integers[3]);
                       }));
  };
  run("as it takes them", [](auto&) {});
  run("one too few", [](auto& a) { a.pop_back(); });
  run("one too many", [](auto& a) { a.push_back(a[4]); });
  for (size_t i = 0; i < good.size(); ++i)
    for (const DtypeRow& row : dtype_rows())
      run(fmt::format("{} as {}", code.parameters[i].name, row.text), [&](auto& a) { a[i].dtype = row.dtype; });
  for (const int64_t n :
       {int64_t{1} << 31, (int64_t{1} << 31) - 1, -(int64_t{1} << 31), -(int64_t{1} << 31) - 1, kMost, kLeast}) {
    run(fmt::format("n = {}", n), [&](auto& a) { a[2].bits.low = static_cast<uint64_t>(n); });
    run(fmt::format("s = {}", n), [&](auto& a) { a[3].bits.low = static_cast<uint64_t>(n); });
  }
  run("no address", [](auto& a) { a[1].data = nullptr; });
  run("no address of no elements", [](auto& a) { a[0].data = nullptr, a[0].elements = 0; });
  run("a negative number of elements", [](auto& a) { a[1].elements = -1; });
  run("fewer elements than threads", [](auto& a) { a[1].elements = 3, a[1].written = a[1].written.first(3); });
  run("a mark too few", [](auto& a) { a[1].written = a[1].written.first(3); });
  run("an address between elements",
      [](auto& a) { a[1].data += 4, a[1].elements = 3, a[1].written = a[1].written.first(3); });
  run("an address between bytes of a half", [](auto& a) { a[0].data += 1; });
  run("an address of another half", [](auto& a) { a[0].data += 2; });
  run("without the axis", [&](auto& a) { a[0].extents = std::span(extents).first(1); });
  run("without axes", [](auto& a) { a[0].extents = {}; });
  run("an axis too short", [&](auto& a) {
    static constexpr std::array<int64_t, 2> kShort = {4, 3};
    a[0].extents = kShort;
  });
  run("no threads", [](auto&) {}, {.grid = {1, 1, 1}, .block = {0, 1, 1}});
  run("no blocks", [](auto&) {}, {.grid = {1, 0, 1}, .block = {4, 1, 1}});
  run("a negative number of threads", [](auto&) {}, {.grid = {1, 1, 1}, .block = {-1, 1, 1}});
  run("1025 threads", [](auto&) {}, {.grid = {1, 1, 1}, .block = {1025, 1, 1}});
  run("65 threads along z", [](auto&) {}, {.grid = {1, 1, 1}, .block = {1, 1, 65}});
  run("65536 blocks along y", [](auto&) {}, {.grid = {1, 65536, 1}, .block = {4, 1, 1}});
  run("2^31 blocks", [](auto&) {}, {.grid = {int64_t{1} << 31, 1, 1}, .block = {4, 1, 1}});
  run("more shared memory than a GPU has", [](auto&) {},
      {.grid = {1, 1, 1}, .block = {4, 1, 1}, .shared_bytes = 1 << 20});
  run("negative shared memory", [](auto&) {}, {.grid = {1, 1, 1}, .block = {4, 1, 1}, .shared_bytes = -1});
  return out;
}

// Resolutions of axes in graphs that no text gives, and of axes that no step resolves.
std::string resolution_calls() {
  const Graph given = parse_module(
                          "fusion @f {\n"
                          "  %m, %n = size\n"
                          "  %x = input f32[symbolic %m, 4]\n"
                          "  %y = exp %x\n"
                          "  %e = expand %x to [%n, 4]\n"
                          "  %r = reshape %x to [%n, %m]\n"
                          "  output %y\n"
                          "  output %e\n"
                          "  output %r\n"
                          "}\n")
                          .graphs[0];
  std::string out;
  const auto tell = [&](const std::string& what, const std::optional<Error>& e) {
    out += what + ": " + (e ? fmt::format("error {} at {}: {}", code_text(e->code), e->place, e->what()) : "ok") + "\n";
  };
  for (const std::string_view change : {"as it is", "without ops", "scheduled"})
    for (const std::string_view name : {"x", "y", "e", "r"}) {
      Graph g = given;
      const ValueId v = *find_value(g, std::string(name));
      if (change == "without ops") g[v].def = OpId();
      if (change == "scheduled") g.level = Level::kScheduled;
      for (size_t axis = 0; axis < 2; ++axis) {
        const DomainId d = g.tensor_of(v).logical[axis];
        for (const IterType type :
             {IterType::kIteration, IterType::kBroadcast, IterType::kReduction, IterType::kSymbolic})
          tell(fmt::format("{}, %{}.i{} as {}", change, name, axis, text(type)),
               concretize_domain_error(g, d, {.type = type}));
        tell(fmt::format("{}, %{}.i{} as one element", change, name, axis),
             concretize_domain_error(g, d, {.type = IterType::kBroadcast, .is_one_element = true}));
      }
      const std::vector<std::vector<int64_t>> groups = {{1, 1, 1, 1}, {2, 2},        {2},         {},
                                                        {1, 2, 1, 0}, {-1, 1, 3, 1}, {0, 0, 2, 2}};
      for (const std::vector<int64_t>& list : groups)
        tell(fmt::format("{}, %{} in groups [{}]", change, name, fmt::join(list, ", ")),
             concretize_reshape_error(g, g[v].tensor, list));
    }
  return out;
}

// The algebra's tables find atoms, products and forms by hashes of 32 bits. Two of this many loops have the same hash.
std::string many_loop_calls() {
  constexpr int kLoops = 119000;
  IndexAlgebra a;
  const Form n = a.declare_symbol(0, "n", {1, std::nullopt});
  std::vector<uint32_t> ids;
  for (int i = 0; i < kLoops; ++i) ids.push_back(a.declare_loop(i, "i", n).id);
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return fmt::format("{} loops are {} forms\n", kLoops, ids.size());
}

}  // namespace fusebox::fuzz
