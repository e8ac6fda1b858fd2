// The extension `_fusebox`: Program and its values, replays, and the tables that name the package's functions. Errors
// arrive in Python as fusebox.FuseboxError.
#include <new>
#include <pybind11/complex.h>
#include <stdexcept>

#include "ir/table/error.h"
#include "passes/rewrite/rewrite.h"
#include "replay/data/file.h"
#include "replay/python/program.h"
#include "replay/record/replay.h"
#include "serde/decode.h"

namespace fusebox::python {
namespace {

void raise_in_python(const Error& e) {
  const py::object type = py::module_::import("fusebox.errors").attr("FuseboxError");
  const py::object error = type(code_text(e.code), e.what(), e.place);
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());  // a class of its own, for most codes
}

// (name, operands) of every op that computes element by element.
std::vector<std::pair<std::string, int>> pointwise_ops() {
  std::vector<std::pair<std::string, int>> result;
  for (const OpRow& row : op_rows()) {
    const auto slots = row.format->all();
    const bool plain =
        std::all_of(slots.begin(), slots.end(), [](const Slot& s) { return s.kind == 'a' && !s.list && !s.optional; });
    const bool extent_op =
        row.kind == OpKind::kFloorDiv || row.kind == OpKind::kFloorMod || row.kind == OpKind::kCeilDiv;
    if (row.at(Level::kMath) && (row.demands & Demand::kPointwise) != 0 && plain && row.kind != OpKind::kCast &&
        !extent_op)
      result.emplace_back(row.text, row.format->slot_count);
  }
  return result;
}

py::dict replay_file(const std::string& path, const std::optional<std::string>& executor, const std::string& from,
                     bool trust_artifacts, int threads, const std::vector<std::string>& defects) {
  ReplayOptions options;
  if (executor) {
    options.executor = parse_executor(*executor);
    if (!options.executor) throw Error(ErrorCode::kUsage, "an executor is cuda, host or aten", *executor);
  }
  const auto start = parse_replay_from(from);
  if (!start) throw Error(ErrorCode::kUsage, "a replay starts from fusion, scheduled, kernel or source", from);
  options.from = *start;
  options.trust_artifacts = trust_artifacts;
  options.threads = threads;
  options.defects = parse_defects(defects);
  Replay r;
  {
    py::gil_scoped_release no_gil;
    const auto bytes = read_file(path);
    r = replay(decode_bundle({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}), options);
  }
  py::list stages;
  for (const StageVerdict& v : r.stages) stages.append(py::make_tuple(v.stage, text(v.verdict), v.why, v.difference));
  py::dict result;
  result["program"] = r.run.fusion.name;
  result["executor"] = text(r.run.executor);
  result["stages"] = stages;
  return result;
}

}  // namespace

PYBIND11_MODULE(_fusebox, m) {
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const Error& e) {
      raise_in_python(e);
    } catch (const py::builtin_exception&) {
      throw;  // an error of Python itself
    } catch (const py::error_already_set&) {
      throw;
    } catch (const std::bad_alloc&) {
      raise_in_python(Error(ErrorCode::kOutOfMemory, "memory ran out; make the inputs smaller"));
    } catch (const std::length_error&) {
      raise_in_python(Error(ErrorCode::kOutOfMemory, "more elements than memory can hold; make the inputs smaller"));
    } catch (const std::exception& e) {
      raise_in_python(Error(ErrorCode::kInternal, e.what()));
    }
  });
  m.def("pointwise_ops", &pointwise_ops);
  m.def("op_table", &op_table);
  m.def("step_line", &step_line);
  m.def("rewrite_names", [] {
    std::vector<std::string> names;
    for (const RewriteRow& row : rewrite_rows()) names.emplace_back(row.name);
    return names;
  });
  m.def("defect_names", [] {
    std::vector<std::string> names;
    for (const DefectRow& row : defect_rows()) names.emplace_back(row.text);
    return names;
  });
  m.def("error_codes", [] {
    std::vector<std::string> codes;
    for (const ErrorRow& row : error_rows()) codes.push_back(code_text(row.code));
    return codes;
  });
  m.def("check_op", [](const std::string& name) { op_named(name); });
  m.def("step_kinds", [] {
    std::vector<std::string> names;
    for (const StepRow& row : step_rows()) names.emplace_back(row.text);
    return names;
  });
  m.def("replay", &replay_file, py::arg("path"), py::arg("executor"), py::arg("start"), py::arg("trust_artifacts"),
        py::arg("threads"), py::arg("defects"));

  py::class_<Value>(m, "Value").def_readonly("name", &Value::name).def_readonly("is_tensor", &Value::is_tensor);
  py::class_<LoopInfo>(m, "LoopInfo")
      .def_readonly("name", &LoopInfo::name)
      .def_readonly("iter_type", &LoopInfo::iter_type)
      .def_readonly("parallel", &LoopInfo::parallel);
  py::class_<InputInfo>(m, "InputInfo")
      .def_readonly("name", &InputInfo::name)
      .def_readonly("dtype", &InputInfo::dtype)
      .def_readonly("is_tensor", &InputInfo::is_tensor)
      .def_readonly("extents", &InputInfo::extents)
      .def_readonly("iter_types", &InputInfo::iter_types)
      .def_readonly("expanded", &InputInfo::expanded)
      .def_readonly("order", &InputInfo::order)
      .def_readonly("contiguity", &InputInfo::contiguity)
      .def_readonly("is_overwritten", &InputInfo::is_overwritten)
      .def_readonly("indexes", &InputInfo::indexes);
  py::class_<Judgement>(m, "Judgement")
      .def_readonly("outcome", &Judgement::outcome)
      .def_readonly("stage", &Judgement::stage)
      .def_readonly("check", &Judgement::check)
      .def_readonly("place", &Judgement::place)
      .def_readonly("message", &Judgement::message);
  py::class_<Launcher>(m, "Launcher")
      .def("launch", &Launcher::launch, py::call_guard<py::gil_scoped_release>())
      .def("outputs", &Launcher::outputs);
  py::class_<PythonProgram>(m, "Program")
      .def(py::init<std::string>())
      .def_static("of_text", &PythonProgram::of_text)
      .def_static("of_file", &PythonProgram::of_file)
      .def("name", [](const PythonProgram& p) { return p.graph.name; })
      .def("define_tensor", &PythonProgram::define_tensor)
      .def("define_scalar", &PythonProgram::define_scalar)
      .def("constant", &PythonProgram::constant)
      .def("add_output", &PythonProgram::add_output)
      .def("input_names", &PythonProgram::input_names)
      .def("dtype", &PythonProgram::dtype)
      .def("shape", &PythonProgram::shape)
      .def("pointwise", &PythonProgram::pointwise)
      .def("cast", &PythonProgram::cast)
      .def("reduce", &PythonProgram::reduce)
      .def("var", &PythonProgram::var)
      .def("var_mean", &PythonProgram::var_mean)
      .def("moments", &PythonProgram::moments)
      .def("broadcast", &PythonProgram::broadcast)
      .def("shaped", &PythonProgram::shaped)
      .def("permute", &PythonProgram::permute)
      .def("squeeze", &PythonProgram::squeeze)
      .def("slice", &PythonProgram::slice)
      .def("stride_order", &PythonProgram::stride_order)
      .def("full", &PythonProgram::full)
      .def("iota", &PythonProgram::iota)
      .def("random", &PythonProgram::random)
      .def("pad", &PythonProgram::pad)
      .def("cat", &PythonProgram::cat)
      .def("indexed", &PythonProgram::indexed)
      .def("scatter", &PythonProgram::scatter)
      .def("triu", &PythonProgram::triu)
      .def("embedding", &PythonProgram::embedding)
      .def("library", &PythonProgram::library)
      .def("size", &PythonProgram::size)
      .def("input_infos", &PythonProgram::input_infos)
      .def("axes", &PythonProgram::axes)
      .def("expanded", &PythonProgram::expanded)
      .def("has_library_ops", &PythonProgram::has_library_ops)
      .def("extents_of", &PythonProgram::extents_of)
      .def("concretize", &PythonProgram::concretize)
      .def("copy", &PythonProgram::copy)
      .def("step", &PythonProgram::step)
      .def("take", py::overload_cast<const std::string&>(&PythonProgram::take))
      .def("refusal", &PythonProgram::refusal)
      .def("step_lines", &PythonProgram::step_lines)
      .def("loops", &PythonProgram::loops)
      .def("tensors", &PythonProgram::tensors)
      .def("sizes", py::overload_cast<>(&PythonProgram::sizes, py::const_))
      .def("is_reduction", &PythonProgram::is_reduction)
      .def("is_read", &PythonProgram::is_read)
      .def("fresh_value", &PythonProgram::fresh_value)
      .def("fresh_loop", &PythonProgram::fresh_loop)
      .def("value_named", &PythonProgram::value_named)
      .def("text", &PythonProgram::text)
      .def("scheduled_text", &PythonProgram::scheduled_text)
      .def("scheduled_text_for", &PythonProgram::scheduled_text_for)
      .def("cuda_source", &PythonProgram::cuda_source)
      .def("execute", &PythonProgram::execute)
      .def("fast_call", &PythonProgram::fast_call)
      .def("disk_counts", &PythonProgram::disk_counts)
      .def("plan_counts",
           [](const PythonProgram& p) {
             const PlanMemory::Info i = p.plan_info();
             return py::make_tuple(i.made, i.waited, i.kept, i.bytes, i.recompiles, i.shared);
           })
      .def("needs_host_program", &PythonProgram::needs_host_program)
      .def("profile", &PythonProgram::profile)
      .def("tune", &PythonProgram::tune)
      .def("launcher", &PythonProgram::launcher)
      .def("validate", &PythonProgram::validate)
      .def("set_defects",
           [](PythonProgram& p, const std::vector<std::string>& names) { p.set_defects(parse_defects(names)); })
      .def("plan_of", &PythonProgram::plan_of)
      .def("set_fast", &PythonProgram::set_fast)
      .def("set_unfused", &PythonProgram::set_unfused)
      .def("record", &PythonProgram::record)
      .def("judge", &PythonProgram::judge)
      .def("compile_refusal", &PythonProgram::compile_refusal);
}

}  // namespace fusebox::python
