// Signature, numbers and text of a PythonProgram.
#include "replay/python/program.h"

#include "ir/infer/scalar_operand.h"
#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "ir/text/print.h"

namespace fusebox::python {

namespace {

void check_holds(Dtype to, Dtype from, ConstantBits bits, const std::string& number) {
  if (!holds(to, from, bits))
    throw Error(ErrorCode::kConstantRange,
                std::string(text(to)) + " cannot hold this number; give one in its range, or a wider dtype", number);
}

}  // namespace

Dtype dtype_named(const std::string& name) {
  if (const auto d = parse_dtype(name)) return *d;
  throw Error(ErrorCode::kUnknownName, "no dtype has this name; use one of DataType", name);
}

std::pair<Dtype, ConstantBits> number_of(const py::handle& number, std::optional<Dtype> wanted) {
  PyObject* o = number.ptr();
  if (PyBool_Check(o)) return {Dtype::kBool, constant_bits(Dtype::kBool, o == Py_True)};
  if (PyLong_Check(o)) {
    int overflow = 0;
    const int64_t n = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow > 0 && wanted == Dtype::kUint64) {
      const unsigned long long large = PyLong_AsUnsignedLongLong(o);
      if (!PyErr_Occurred()) return {Dtype::kUint64, ConstantBits{large, 0}};
      PyErr_Clear();
    }
    if (overflow != 0)
      throw Error(ErrorCode::kBadLiteral, "an integer does not fit 64 bits; give a float", py::str(number));
    return {Dtype::kInt64, from_int64(Dtype::kInt64, n)};
  }
  if (PyFloat_Check(o)) return {Dtype::kDouble, from_double(Dtype::kDouble, PyFloat_AsDouble(o))};
  if (PyComplex_Check(o))
    return {Dtype::kComplexDouble,
            from_complex(Dtype::kComplexDouble, {PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)})};
  throw Error(ErrorCode::kWrongKind,
              "a tensor, a scalar or a Python number is needed here, not " + std::string(py::str(py::type::of(number))),
              py::str(number));
}

Graph& PythonProgram::open() {
  if (scheduled)
    throw Error(ErrorCode::kWrongLevel, "steps have been taken on this fusion; define everything before the first",
                "@" + graph.name);
  forget_plans();
  return graph;
}

uint64_t PythonProgram::next_serial() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

Value PythonProgram::wrap(ValueId v) const { return {v, graph[v].name, graph.is_tensor(v), serial_}; }

ValueId PythonProgram::id(const Value& v) const {
  // A copy has the values that its original had when it was copied, under the same numbers.
  const auto original = originals_.find(v.program);
  if (v.program != serial_ && (original == originals_.end() || (v.id && v.id.index >= original->second)))
    throw Error(ErrorCode::kWrongKind, "this value belongs to another fusion; use a value of the fusion you call",
                "%" + v.name);
  if (!v.id || v.id.index >= graph.values.size() || graph[v.id].name != v.name)
    throw Error(ErrorCode::kWrongKind,
                "this value is not of this fusion's definition; use the tensor that it was made from", "%" + v.name);
  return v.id;
}

ValueId PythonProgram::id(const Operand& o, std::optional<Dtype> wanted) {
  if (py::isinstance<Value>(o)) return id(o.cast<const Value&>());
  const auto [dtype, bits] = number_of(o, wanted);
  return fusebox::constant(graph, dtype, bits);
}

ValueId PythonProgram::default_number(const Operand& number, Dtype dtype) {
  const auto [own, bits] = number_of(number);
  check_holds(dtype, own, bits, py::str(number));
  return fusebox::constant(graph, dtype, convert(own, bits, dtype));
}

Scalar PythonProgram::extent(const Operand& o) {
  if (!py::isinstance<Value>(o)) {
    const auto [dtype, bits] = number_of(o);
    if (!is_integer(dtype))
      throw Error(ErrorCode::kDtypeMismatch, "an extent, bound or width is an integer", py::str(o));
    return static_cast<int64_t>(bits.low);
  }
  const ValueId v = id(o);
  if (graph.is_tensor(v))
    throw Error(ErrorCode::kWrongKind, "an extent, bound or width is an integer or a scalar, not a tensor",
                "%" + graph[v].name);
  const Dtype dtype = graph[v].dtype;
  if (!is_integer(dtype))
    throw Error(ErrorCode::kDtypeMismatch, "an extent, bound or width is an integer; cast the scalar to Int",
                "%" + graph[v].name);
  if (dtype == Dtype::kIndex) return v;
  // A u64 that i64 cannot hold is longer than every axis, so it becomes the largest i64.
  const ValueId held =
      dtype != Dtype::kUint64
          ? v
          : scalar::minimum(graph, Graph::body(), v, fusebox::constant(graph, dtype, from_int64(dtype, INT64_MAX)));
  return scalar::cast(graph, Graph::body(), held, Dtype::kIndex);
}

Shape PythonProgram::extents(const Operands& list) {
  Shape shape;
  for (const Operand& o : list) shape.push_back(extent(o));
  return shape;
}

Value PythonProgram::define_tensor(const std::string& name, const std::string& dtype, const std::vector<int64_t>& shape,
                                   const std::vector<int64_t>& contiguity, const std::vector<int64_t>& order,
                                   const std::vector<int64_t>& expanded) {
  const Dtype d = dtype_named(dtype);
  Graph& g = open();
  const auto sized = [&](int64_t n) { return n == -1 ? Scalar(fusebox::size(g, fresh_name(g, "d0"))) : Scalar(n); };
  Shape extents;
  InputOptions options;
  for (int64_t n : shape) extents.push_back(sized(n));
  for (int64_t n : expanded) options.expanded.push_back(sized(n));
  for (int64_t c : contiguity) options.contiguity.push_back(static_cast<Contiguity>(c));
  options.allocation_order = order;
  return wrap(input(g, fresh_name(g, name.empty() ? "t0" : name), d, extents, options));
}

Value PythonProgram::define_scalar(const std::string& name, const std::string& dtype) {
  const Dtype d = dtype_named(dtype);
  Graph& g = open();
  return wrap(input_scalar(g, fresh_name(g, name.empty() ? "s0" : name), d));
}

Value PythonProgram::constant(const Operand& number, const std::optional<std::string>& dtype) {
  const std::optional<Dtype> given = dtype ? std::optional(dtype_named(*dtype)) : std::nullopt;
  const auto [own, bits] = number_of(number, given);
  const Dtype wanted = given.value_or(own);
  if (is_complex(own) && !is_complex(wanted))
    throw Error(ErrorCode::kBadLiteral, "a complex number does not fit a real dtype", py::str(number));
  check_holds(wanted, own, bits, py::str(number));
  return wrap(fusebox::constant(open(), wanted, convert(own, bits, wanted)));
}

void PythonProgram::add_output(const Operand& value, const std::optional<Value>& alias) {
  Graph& g = open();
  output(g, id(value), alias ? id(*alias) : ValueId());
}

std::vector<std::string> PythonProgram::input_names() const {
  std::vector<std::string> names;
  for (ValueId v : inputs(graph)) names.push_back(graph[v].name);
  return names;
}

std::string PythonProgram::dtype(const Value& v) const {
  const Graph& g = v.id ? graph : with(v.name);
  return std::string(fusebox::text(g[v.id ? v.id : *find_value(g, v.name)].dtype));
}

std::vector<int64_t> PythonProgram::shape(const Value& v) const {
  const Graph& g = v.id ? graph : with(v.name);
  const ValueId at = v.id ? id(v) : *find_value(g, v.name);
  std::vector<int64_t> result;
  for (DomainId d : logical_without_reductions(g, g.tensor_of(at))) result.push_back(evaluate_size(g, d).value_or(-1));
  return result;
}

std::string PythonProgram::text() const { return print(module()); }
std::string PythonProgram::scheduled_text() const {
  std::string all;
  for (const Graph* g : parts()) all += print(*g);
  return all;
}

Module PythonProgram::module() const {
  Module m;
  m.graphs = {graph};
  if (!steps.empty()) m.step_lists = {{{}, graph.name, steps}};
  return m;
}

}  // namespace fusebox::python
