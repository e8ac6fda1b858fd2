// Every scalar op × dtype on a GPU, over pairs of boundary values.
#include "tests/support/gpu.h"
#include "tests/support/scalar_inputs.h"
#include "tests/support/scalar_reference.h"

namespace fusebox {
namespace {

using testing::ScalarOps;

class ScalarOpsOnGpu : public testing::GpuTest, public ::testing::WithParamInterface<Dtype> {
 protected:
  void check(const ScalarOps& ops) {
    const Dtype dtype = GetParam();
    if (ops.outputs.empty()) return;
    const auto inputs = testing::scalar_inputs(dtype);
    const size_t size = static_cast<size_t>(size_bytes(dtype));
    std::vector<uint64_t> arguments;
    for (size_t operand = 0; operand < 4; ++operand) {
      std::vector<char> bytes(inputs.size() * size);
      for (size_t i = 0; i < inputs.size(); ++i) testing::put_element(dtype, inputs[i][operand], &bytes[i * size]);
      arguments.push_back(upload(bytes));
    }
    std::vector<char> truth(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) truth[i] = i % 3 == 0;
    arguments.push_back(upload(truth));
    for (const auto& out : ops.outputs)
      arguments.push_back(upload(std::vector<char>(inputs.size() * static_cast<size_t>(size_bytes(out.dtype)))));
    arguments.push_back(inputs.size());
    run(ops.kernel, {.grid = {static_cast<int64_t>(inputs.size() + 127) / 128, 1, 1}, .block = {128, 1, 1}}, arguments);

    for (size_t o = 0; o < ops.outputs.size(); ++o) {
      const auto& out = ops.outputs[o];
      const size_t out_size = static_cast<size_t>(size_bytes(out.dtype));
      const std::vector<char> got = download<char>(arguments[5 + o], inputs.size() * out_size);
      int reported = 0;
      for (size_t i = 0; i < inputs.size() && reported < 5; ++i) {
        const ConstantBits bits = testing::get_element(out.dtype, &got[i * out_size]);
        const testing::Expected e = testing::scalar_reference(out, dtype, inputs[i], truth[i] != 0);
        if (testing::matches(e, out.dtype, bits)) continue;
        ++reported;
        ADD_FAILURE() << row_of(out.kind).text << " of " << text(dtype) << ": operands "
                      << to_complex(dtype, inputs[i][0]) << " " << to_complex(dtype, inputs[i][1]) << " "
                      << to_complex(dtype, inputs[i][2]) << " give " << to_complex(out.dtype, bits) << " (bits "
                      << bits.low << "), not "
                      << (e.is_bits ? std::complex<long double>(static_cast<long double>(e.bits.low)) : e.value)
                      << " : " << text(out.dtype);
      }
    }
  }
};

TEST_P(ScalarOpsOnGpu, GiveWhatTheTableSays) { check(testing::scalar_ops(GetParam())); }
TEST_P(ScalarOpsOnGpu, Casts) { check(testing::scalar_casts(GetParam())); }
TEST_P(ScalarOpsOnGpu, Extras) { check(testing::scalar_extras(GetParam())); }

INSTANTIATE_TEST_SUITE_P(Dtypes, ScalarOpsOnGpu, ::testing::ValuesIn(testing::arithmetic_dtypes()),
                         [](const auto& info) { return std::string(text(info.param)); });

}  // namespace
}  // namespace fusebox
