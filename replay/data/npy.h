// NumPy's .npy files, versions 1 to 3, little endian.
//
// Invariants: any bytes give a tensor or kBadNpy, and take no more memory than the file's size. bool, integers, half,
// float, double and complex keep their form. bfloat16 and float8 are stored as float32 values, which hold them exactly.
// A value that the wanted dtype does not hold is kBadNpy, never a rounding. A file is written under another name,
// flushed and renamed, so it is there whole or not at all (kFileWrite).
//
//   write_npy("y.npy", y);  TensorData z = read_npy("y.npy", Dtype::kBfloat16);   // y of bf16: the file holds float32
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "replay/data/tensor_data.h"

namespace fusebox {

struct NpyHeader {
  Dtype dtype = Dtype::kFloat;  // in the file
  bool fortran_order = false;
  std::vector<int64_t> shape;
  size_t data_begin = 0;  // bytes
};
NpyHeader parse_npy_header(std::span<const std::byte> bytes);

// The elements as `wanted`, or in the file's dtype if none is wanted, with the file's order of axes in memory. `name`
// is for messages.
TensorData parse_npy(std::span<const std::byte> bytes, std::optional<Dtype> wanted, std::string_view name);
TensorData read_npy(const std::string& path, std::optional<Dtype> wanted = {});

// Row-major. Throws kUnsupportedDtype for float4's packed pair.
std::vector<std::byte> format_npy(const TensorData& t);
void write_npy(const std::string& path, const TensorData& t);

}  // namespace fusebox
