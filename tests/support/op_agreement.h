// Runs op cases on a device and judges them by the reference evaluator. The tests for the host executor and for a GPU
// share it. A device caches compiled kernels, so each is compiled once for all shapes.
//
//   OpAgreement law(*device);
//   for (const OpCase& c : op_cases(OpKind::kAdd).cases) law.check(c);
//   EXPECT_GT(law.ran, 0);
#pragma once

#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>

#include "ir/canonical/canonical.h"
#include "ir/infer/bind.h"
#include "ir/table/error.h"
#include "ir/text/print.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/input.h"
#include "replay/device/module_loader.h"
#include "replay/run/aten_segment.h"
#include "replay/run/compare.h"
#include "replay/run/host_program.h"
#include "replay/run/run.h"
#include "tests/support/op_cases.h"

namespace fusebox::test {

class OpAgreement {
 public:
  explicit OpAgreement(Device& device) : device_(device) {}

  // Fails the running test if an output leaves its bounds, and names the case. Further failures of the same op and
  // dtype are only counted. A storage-only dtype must be refused with kUnsupportedDtype.
  void check(const OpCase& c);
  // `  cuda: 14601 cases, 3204 distinct kernels, 12 refused, 0 failed`
  std::string summary() const;

  int ran = 0, refused = 0, failed = 0;
  std::set<Digest> kernels;           // distinct ones
  std::map<std::string, int> per_op;  // failed cases by op and dtype
  bool is_device_lost = false;        // the driver reported an error, so later cases mean nothing

 private:
  void fail(const OpCase& c, const std::string& why);

  Device& device_;
};

inline void OpAgreement::fail(const OpCase& c, const std::string& why) {
  ++failed;
  const std::string kind = std::string(row_of(c.kind).text) + " " + std::string(text(c.dtype));
  if (per_op[kind]++ == 0) ADD_FAILURE() << device_.name() << ": " << c.name << ": " << why << "\n" << print(c.fusion);
}

inline void OpAgreement::check(const OpCase& c) {
  std::vector<Argument> inputs;
  for (const InputSpec& s : c.inputs) inputs.push_back(make_argument(s));
  std::vector<ProgramOutput> outputs;
  try {
    const Compiled compiled =
        compile(c.fusion, bind_sizes(c.fusion, bound_inputs(inputs)), {.inputs = bound_inputs(inputs)});
    std::vector<NamedKernel> named;
    for (size_t k = 0; k < compiled.kernels.size(); ++k) {
      named.push_back({compiled.segmentation.segments[k].name, &compiled.kernels[k]});
      kernels.insert(digest(compiled.kernels[k]));
    }
    HostProgramOptions options;
    options.run_aten = run_aten_segments(compiled);
    outputs = run_host_program(compiled.host, named, device_, inputs, options).outputs;
  } catch (const Error& e) {
    // Storage-only data must be refused, not computed.
    if (e.code == ErrorCode::kUnsupportedDtype)
      ++refused;
    else
      fail(c, code_text(e.code) + " " + e.place + ": " + e.what());
    is_device_lost |= e.code == ErrorCode::kDeviceFailure;
    return;
  }
  ++ran;
  const Evaluation expected = load_aten().evaluate(c.fusion, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    TensorData actual = outputs[i].value.tensor;
    if (outputs[i].value.is_scalar) {
      actual = allocate_tensor(outputs[i].value.dtype, {});
      store_element(actual, 0, outputs[i].value.bits);
    }
    const Comparison comparison = compare(actual, expected.outputs[i], 1);
    if (comparison.ok) continue;
    fail(c, comparison.message(expected.outputs[i].name));
    return;
  }
}

inline std::string OpAgreement::summary() const {
  return "  " + std::string(device_.name()) + ": " + std::to_string(ran + refused) + " cases, " +
         std::to_string(kernels.size()) + " distinct kernels, " + std::to_string(refused) + " refused, " +
         std::to_string(failed) + " failed";
}

}  // namespace fusebox::test
