// Long sums: more elements than other tensors have, for errors that only show there.
#include "fuzz/generate/fusion_maker.h"

namespace fusebox::fuzz {

// Nothing else reads the operand, so the case stays cheap.
void FusionMaker::begin_long_sum() {
  constexpr Dtype kDtypes[] = {Dtype::kFloat,  Dtype::kFloat,    Dtype::kFloat, Dtype::kFloat,       Dtype::kFloat,
                               Dtype::kDouble, Dtype::kBfloat16, Dtype::kHalf,  Dtype::kComplexFloat};
  // Half are long enough to show errors of the summation order; the largest are rare. Lengths lie near powers of two,
  // where groups of partial sums end.
  const size_t doublings = random_.one_in(2) ? 11 + random_.below(3) : 8 + random_.below(random_.one_in(4) ? 9 : 5);
  const int64_t length = (int64_t{1} << doublings) + random_.between(-3, 40);
  Extents extents = {length};
  if (doublings < 12 && random_.one_in(3))
    extents.insert(random_.one_in(2) ? extents.begin() : extents.end(), random_.between(2, 3));
  const Axes axes = {extents[0] == length ? 0 : 1};
  ValueId x = new_input(random_.pick(kDtypes), extents);
  made_.pop_back();
  if (random_.one_in(4)) x = unary(g_, OpKind::kNeg, x);
  if (random_.one_in(3) && takes(OpKind::kWelford, g_[x].dtype)) {
    const WelfordResult w = welford(g_, x, axes);
    made_.insert(made_.end(), {w.avg, w.var_sum});
  } else {
    made_.push_back(reduce(g_, OpKind::kSum, x, axes, {.keepdim = random_.one_in(4)}));
  }
}

}  // namespace fusebox::fuzz
