#include "replay/run/aten_segment.h"

#include <algorithm>

#include "ir/graph/compact.h"
#include "ir/table/error.h"
#include "replay/device/module_loader.h"

namespace fusebox {
namespace {

// A host program of a bundle may contain anything.
void require(bool holds, const std::string& segment) {
  if (!holds)
    throw Error(ErrorCode::kInvalidGraph, "an ATen segment is given other values than its program takes or makes",
                "@" + segment);
}

void check_given(const Graph& form, std::span<const RunArgument> given, const std::string& segment) {
  const auto wanted = inputs(form);
  require(wanted.size() == given.size(), segment);
  for (size_t i = 0; i < given.size(); ++i)
    require(given[i].is_scalar != form.is_tensor(wanted[i]) && given[i].dtype == form[wanted[i]].dtype &&
                (given[i].is_scalar || given[i].tensor.layout.rank() == rank_of(form, wanted[i])),
            segment);
}

AtenValue on_host(const TensorData& t) {
  AtenValue v;
  v.dtype = t.dtype;
  v.layout = {t.shape, t.strides};
  v.data = t.data();
  v.keeper = t.storage;
  return v;
}

TensorData as_data(const AtenValue& v) {
  return external_tensor(v.dtype, v.data, v.layout.shape, v.layout.strides, v.keeper);
}

// As the device keeps its tensors.
RunTensor as_run_tensor(const AtenValue& v, bool is_gpu) {
  RunTensor t;
  t.layout = as_data(v);
  if (is_gpu) {
    t.pointer = reinterpret_cast<CudaPointer>(v.data);
    t.owner = v.keeper;
    t.is_by_aten = true;
    t.layout.storage.reset();
  } else {
    t.defined = std::make_shared<DefinedElements>(DefinedElements::of_elements(t.layout));
  }
  return t;
}

std::vector<RunTensor> run(const AtenForm& segment, const AtenCall& call) {
  const Graph& form = segment.graph;
  check_given(form, call.given, call.name);
  const AtenApi& aten = load_aten();
  const AtenPlace device = call.device.aten_place();
  const AtenPlace place = device.is_gpu && aten.has_gpu() ? device : AtenPlace();
  std::vector<AtenValue> given;
  const auto parameters = inputs(form);
  for (size_t i = 0; i < call.given.size(); ++i) {
    const RunArgument& a = call.given[i];
    if (a.is_scalar) {
      given.push_back({.is_scalar = true, .dtype = a.dtype, .bits = a.bits});
    } else if (place.is_gpu) {
      given.push_back({.dtype = a.dtype,
                       .layout = {a.tensor.layout.shape, a.tensor.layout.strides},
                       .data = reinterpret_cast<void*>(a.tensor.pointer),
                       .keeper = a.tensor.owner});
    } else {
      // The host executor checks that every element is written; ATen gets a copy.
      given.push_back(on_host(call.device.download(a.tensor, "%" + form[parameters[i]].name)));
    }
  }
  std::vector<AtenValue> made = aten.run(form, given, place, segment.one_call());
  std::vector<RunTensor> results;
  for (size_t i = 0; i < made.size(); ++i) {
    const std::vector<int64_t> strides = call.strides(i, made[i].layout);
    if (strides != made[i].layout.strides) made[i] = aten.copied(made[i], strides, place);
    results.push_back(place.is_gpu == device.is_gpu ? as_run_tensor(made[i], place.is_gpu)
                                                    : call.device.upload(as_data(made[i])));
  }
  return results;
}

AtenForm with_call(Graph form, const Defects& defects) {
  std::optional<ProductCall> call = product_call(form, defects);
  return {std::move(form), call};
}

}  // namespace

Graph aten_form(const Graph& segment) {
  Graph g = segment;
  // As constants, sizes would be checked against rules of bounds that the fusion's own sizes do not have.
  std::vector<OpId> body;
  const std::vector<OpId> given = g[Graph::body()].ops;
  for (OpId id : given) {
    const Op op = g[id];
    if (op.kind != OpKind::kSize) {
      body.push_back(id);
      continue;
    }
    for (ValueId v : op.results) {
      g[v].def = OpId(g.ops.size());
      body.push_back(g[v].def);
      g.ops.push_back(Op{OpKind::kInput, {}, {v}, {}, {}});
    }
  }
  g[Graph::body()].ops = body;
  return compacted(std::move(g));
}

std::map<std::string, AtenForm> aten_forms(const Compiled& compiled) {
  std::map<std::string, AtenForm> forms;
  const auto& segments = compiled.segmentation.segments;
  for (size_t i = 0; i < segments.size() && i < compiled.scheduled.size(); ++i)
    if (segments[i].executor == SegmentExecutor::kAten)
      forms.emplace(segments[i].name, with_call(aten_form(compiled.scheduled[i]), compiled.defects));
  return forms;
}

std::vector<std::string> computed_by_aten(const Compiled& compiled) {
  std::vector<std::string> names;
  const auto& segments = compiled.segmentation.segments;
  for (size_t i = 0; i < segments.size() && i < compiled.scheduled.size(); ++i) {
    if (segments[i].executor != SegmentExecutor::kAten) continue;
    const Graph& g = compiled.scheduled[i];
    for (const OpId id : g[Graph::body()].ops)
      if (g[id].kind != OpKind::kInput)
        for (const ValueId v : g[id].results) names.push_back(g[v].name);
  }
  return names;
}

std::function<std::vector<RunTensor>(const AtenCall&)> run_aten_segments(const Compiled& compiled) {
  return [forms = aten_forms(compiled)](const AtenCall& call) {
    const auto form = forms.find(call.name);
    require(form != forms.end(), call.name);
    return run(form->second, call);
  };
}

InferLayouts infer_by_aten() {
  return [](const Graph& segment, std::span<const BoundInput> given) {
    const AtenForm form = with_call(aten_form(segment), {});
    return load_aten().infer(form.graph, given, form.one_call());
  };
}

InferLayouts infer_by_record(const std::vector<CrossingLayout>& crossings) {
  return [crossings](const Graph& segment, std::span<const BoundInput>) {
    std::vector<TensorLayout> layouts;
    for (const OutputRef& out : outputs(segment)) {
      const auto it = std::ranges::find_if(crossings, [&](const CrossingLayout& c) {
        return c.segment == segment.name && c.value == segment[out.value].name;
      });
      if (it == crossings.end())
        throw Error(ErrorCode::kNoLayout, "the record has no layout of this tensor; record the run again",
                    "%" + segment[out.value].name);
      layouts.push_back({it->shape, it->strides});
    }
    return layouts;
  };
}

}  // namespace fusebox
