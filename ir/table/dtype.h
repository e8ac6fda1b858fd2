// Element dtypes: one row each in dtype_table.inc. `index` is the type of sizes, strides and loop indices: 64 bits in
// data, 32 or 64 in a kernel, chosen from the inputs when it is lowered.
//
//   bits(Dtype::kBfloat16) == 16;  text(Dtype::kBfloat16) == "bf16";  parse_dtype("bf16") == Dtype::kBfloat16
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace fusebox {

enum class Dtype : uint8_t {
#define FUSEBOX_DTYPE(name, text, bits, kind, cpp, aten) name,
#include "ir/table/dtype_table.inc"
#undef FUSEBOX_DTYPE
};

enum class DtypeKind : uint8_t { kBoolean, kSigned, kUnsigned, kFloating, kComplex, kPacked };

struct DtypeRow {
  Dtype dtype;
  std::string_view text;
  int bits;
  DtypeKind kind;
  std::string_view cpp;
  std::string_view aten;
};

std::span<const DtypeRow> dtype_rows();
inline const DtypeRow& row_of(Dtype d) { return dtype_rows()[static_cast<size_t>(d)]; }
inline std::string_view text(Dtype d) { return row_of(d).text; }
inline int bits(Dtype d) { return row_of(d).bits; }
// Bytes of one element in memory; float4 takes a whole byte when it stands alone.
inline int64_t size_bytes(Dtype d) { return (row_of(d).bits + 7) / 8; }
std::optional<Dtype> parse_dtype(std::string_view text);

inline bool is_boolean(Dtype d) { return d == Dtype::kBool; }
inline bool is_integer(Dtype d) {
  return row_of(d).kind == DtypeKind::kSigned || row_of(d).kind == DtypeKind::kUnsigned;
}
inline bool is_signed(Dtype d) { return row_of(d).kind == DtypeKind::kSigned; }
inline bool is_floating(Dtype d) { return row_of(d).kind == DtypeKind::kFloating; }
inline bool is_complex(Dtype d) { return row_of(d).kind == DtypeKind::kComplex; }
// Floating dtypes of at most 16 bits: computed in float and rounded to the declared dtype after each op.
inline bool is_reduced_float(Dtype d) { return is_floating(d) && bits(d) <= 16; }
// Rows that exist as data only: no op but set, metadata and copies takes them yet.
inline bool is_storage_only(Dtype d) {
  return d == Dtype::kFloat8E8m0 || d == Dtype::kFloat4E2m1 || d == Dtype::kFloat4E2m1x2;
}
// The real dtype of a complex one's parts; any other dtype is itself.
Dtype real_of(Dtype d);
// The dtype in which arithmetic on `d` is carried out: float for reduced floats, else `d`.
Dtype compute_dtype(Dtype d);
// Type promotion as ATen's for two tensors of equal rank class: bool < integers < floating < complex, the wider of a
// class, half with bfloat16 gives float, a float8 with another float gives the other, uint64 with a signed integer
// gives float as ATen refuses it: here kDtypeMismatch.
Dtype promote(Dtype a, Dtype b);

}  // namespace fusebox
