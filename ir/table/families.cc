#include "ir/table/families.h"

namespace fusebox {

bool is_scalar_math(OpKind kind) {
  switch (kind) {
    case FUSEBOX_SCALAR_OPS:
      return true;
    case FUSEBOX_NON_SCALAR_OPS:
      return false;
  }
  return false;
}

bool is_random(OpKind kind) {
  switch (kind) {
    case FUSEBOX_RANDOM_OPS:
      return true;
    default:  // any other: is no random op until it joins the list
      return false;
  }
}

bool gives_truth(OpKind kind) {
  switch (kind) {
    case FUSEBOX_TRUTH_OPS:
      return true;
    default:  // any other: gives numbers
      return false;
  }
}

bool is_fact(OpKind kind) {
  switch (kind) {
    case FUSEBOX_FACT_OPS:
      return true;
    default:  // any other: computes, or stands in another list
      return false;
  }
}

bool is_of_cluster(OpKind kind) {
  switch (kind) {
    case FUSEBOX_CLUSTER_OPS:
      return true;
    default:  // any other: the blocks of a cluster do not wait there for one another
      return false;
  }
}

bool is_comparison(OpKind kind) {
  switch (kind) {
    case FUSEBOX_COMPARISON_OPS:
      return true;
    default:  // any other: compares nothing until it joins the list
      return false;
  }
}

bool is_logic(OpKind kind) {
  switch (kind) {
    case FUSEBOX_LOGICAL_OPS:
      return true;
    default:  // any other: is no logic until it joins the list
      return false;
  }
}

bool is_moment(OpKind kind) {
  switch (kind) {
    case FUSEBOX_MOMENT_OPS:
      return true;
    default:  // any other: reduces to one tensor, or reduces nothing
      return false;
  }
}

bool is_product(OpKind kind) {
  switch (kind) {
    case FUSEBOX_PRODUCT_OPS:
      return true;
    default:  // any other: is no product until it joins the list
      return false;
  }
}

bool adds_at_places(OpKind kind) {
  switch (kind) {
    case FUSEBOX_ADDING_OPS:
      return true;
    default:  // any other: adds nothing at places until it joins the list
      return false;
  }
}

void not_in_family(OpKind kind, const char* what) {
  throw Error(ErrorCode::kInternal, "the op " + std::string(row_of(kind).text) + " " + what);
}

void not_in_family(Dtype dtype, const char* what) {
  throw Error(ErrorCode::kInternal, "the dtype " + std::string(text(dtype)) + " " + what);
}

}  // namespace fusebox
