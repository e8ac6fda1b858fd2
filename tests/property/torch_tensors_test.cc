// Tensors that ATen segments make are as useful to a caller as PyTorch's own: they are no inference tensors, and their memory stays
// that of the allocator that gave it. Tensors that share memory until one of them is written are known.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "replay/torch/tensors.h"

namespace fusebox {
namespace {

at::Tensor made_in_inference_mode() {
  const c10::InferenceMode mode;
  return at::arange(24, at::kInt).view({4, 6}).t();
}

TEST(AtenOutputs, AreNormalTensorsInTheSameStorage) {
  const at::Tensor made = made_in_inference_mode();
  ASSERT_TRUE(made.is_inference());
  const at::Tensor normal = as_normal(made, at::kInt);
  EXPECT_FALSE(normal.is_inference());
  // An allocator recognises its memory by the storage's deleter.
  EXPECT_EQ(normal.storage().unsafeGetStorageImpl(), made.storage().unsafeGetStorageImpl());
  EXPECT_EQ(normal.storage().data_ptr().get_deleter(), at::empty({1}).storage().data_ptr().get_deleter());
  EXPECT_EQ(normal.sizes(), made.sizes());
  EXPECT_EQ(normal.strides(), made.strides());
  EXPECT_TRUE(at::equal(normal, made));
}

TEST(AtenOutputs, BeginWhereTheirMemoryBegins) {
  const at::Tensor made = made_in_inference_mode().narrow(0, 2, 3);
  EXPECT_TRUE(at::equal(as_normal(made, at::kInt), made));
}

TEST(AtenOutputs, HaveTheDeclaredDtype) {
  const at::Tensor normal = as_normal(made_in_inference_mode(), at::kUInt32);
  EXPECT_EQ(normal.scalar_type(), at::kUInt32);
  EXPECT_TRUE(at::equal(normal.view(at::kInt), made_in_inference_mode()));
}

TEST(AtenOutputs, MayBeWrittenAndTakePartInGradients) {
  at::Tensor normal = as_normal(made_in_inference_mode(), at::kInt);
  const uint32_t version = normal._version();
  normal.add_(1);
  EXPECT_GT(normal._version(), version);
  const at::Tensor weights = at::ones({6, 4}).set_requires_grad(true);
  EXPECT_NO_THROW((weights * normal).sum().backward());
}

TEST(LazyClones, AreKnownUntilTheyAreWritten) {
  at::Tensor whole = at::zeros({8});
  EXPECT_FALSE(is_cloned_lazily(whole));
  const at::Tensor clone = at::_lazy_clone(whole);
  EXPECT_TRUE(is_cloned_lazily(whole) && is_cloned_lazily(clone) && is_cloned_lazily(whole.narrow(0, 4, 4)));
  EXPECT_EQ(whole.const_data_ptr(), clone.const_data_ptr());
  whole.add_(1);
  EXPECT_FALSE(is_cloned_lazily(whole));
  EXPECT_EQ(clone.sum().item<float>(), 0);
}

}  // namespace
}  // namespace fusebox
