// .npy files: files from NumPy can be read, NumPy can read ours, and damaged bytes are refused.
#include "replay/data/npy.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "ir/scalar/numeric.h"
#include "ir/text/parse.h"
#include "replay/data/file.h"
#include "replay/data/input.h"
#include "tests/support/expect_error.h"

namespace fusebox {
namespace {

TensorData made(const std::string& spec) { return make_argument(parse_input_spec("x", spec)).tensor; }

// A file as numpy.save writes it, version 1.
std::vector<std::byte> file_of(const std::string& dict, const std::string& elements, char version = 1) {
  std::string text = std::string("\x93NUMPY") + version + '\0';
  const size_t length = dict.size() + 1;
  text += static_cast<char>(length & 0xff);
  text += static_cast<char>(length >> 8);
  if (version > 1) text += std::string(2, '\0');
  text += dict + "\n" + elements;
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

TEST(Npy, EveryDtypeComesBack) {
  for (const DtypeRow& row : dtype_rows()) {
    if (row.dtype == Dtype::kFloat4E2m1x2) continue;
    for (const char* shape : {"[4, 5]", "[0, 3]", "[1]", "[]"}) {
      const TensorData t = made(std::string(row.text) + shape + " boundary seed 2");
      const TensorData back = parse_npy(format_npy(t), row.dtype, "t.npy");
      ASSERT_EQ(back.shape, t.shape) << row.text;
      for (int64_t i = 0; i < element_count(t.shape); ++i) {
        const ConstantBits a = load_element(t, i), b = load_element(back, i);
        const bool both_nan = !is_integer(row.dtype) && !is_boolean(row.dtype) &&
                              to_double(row.dtype, a) != to_double(row.dtype, a) &&
                              to_double(row.dtype, b) != to_double(row.dtype, b);
        EXPECT_TRUE(a == b || both_nan) << row.text << " " << to_double(row.dtype, a);
      }
    }
  }
}

TEST(Npy, LayoutsAreWrittenRowMajor) {
  const TensorData plain = made("f32[3, 4] normal seed 1"),
                   odd = made("f32[3, 4] strides [2, 7] offset 5 normal seed 1");
  EXPECT_EQ(format_npy(plain), format_npy(odd));
  EXPECT_EQ(format_npy(plain).size() % 64, 48u);  // the elements start at a multiple of 64
}

TEST(Npy, ReadsWhatNumpyWrites) {
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  std::string elements(reinterpret_cast<const char*>(numbers), sizeof numbers);
  const TensorData t =
      parse_npy(file_of("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", elements), {}, "t");
  EXPECT_EQ(t.strides, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(to_double(t.dtype, load_element(t, position_of(t, std::vector<int64_t>{1, 2}))), 6);
  EXPECT_EQ(parse_npy(file_of("{\"shape\": (6,), \"fortran_order\": False, \"descr\": \"<f4\"}", elements, 2),
                      Dtype::kBfloat16, "t")
                .dtype,
            Dtype::kBfloat16);
  EXPECT_EQ(parse_npy(file_of("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", elements.substr(0, 4)), {}, "t")
                .rank(),
            0u);
}

TEST(Npy, ValuesThatDoNotFitAreRefused) {
  const auto read_as = [](const std::string& spec, Dtype wanted) {
    return [spec, wanted] { parse_npy(format_npy(made(spec)), wanted, "t.npy"); };
  };
  testing::expect_error(ErrorCode::kBadNpy, "t.npy", read_as("f32[1] constant 0.1 0.0", Dtype::kBfloat16));
  testing::expect_error(ErrorCode::kBadNpy, "t.npy", read_as("f32[1] constant 1e6 0.0", Dtype::kHalf));
  testing::expect_error(ErrorCode::kBadNpy, "t.npy", read_as("f32[1] constant 0.5 0.0", Dtype::kInt32));
  testing::expect_error(ErrorCode::kBadNpy, "t.npy", read_as("i64[1] constant -1.0 0.0", Dtype::kUint8));
  testing::expect_error(ErrorCode::kBadNpy, "t.npy", read_as("i64[1] constant -1.0 0.0", Dtype::kUint64));
  testing::expect_error(ErrorCode::kBadNpy, "t.npy",
                        read_as("i64[1] value 9007199254740993_i64 constant", Dtype::kDouble));
  testing::expect_error(ErrorCode::kBadNpy, "t.npy", read_as("c64[1] normal", Dtype::kFloat));
  read_as("f32[1] constant 448.0 0.0", Dtype::kFloat8E4m3)();
  read_as("i64[1] constant 255.0 0.0", Dtype::kUint8)();
  read_as("f64[1] constant -3.0 0.0", Dtype::kInt8)();
}

TEST(Npy, TheRefusedValueIsNamed) {
  try {
    parse_npy(format_npy(made("u64[1] constant value 18446744073709551610_u64")), Dtype::kInt64, "t.npy");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("18446744073709551610"), std::string::npos) << e.what();
  }
}

TEST(Npy, DamagedBytesAreRefused) {
  const std::vector<std::byte> good = format_npy(made("f32[3, 4] normal"));
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_THROW(parse_npy(std::span(good).first(length), {}, "t"), Error) << length;
  // A changed header is refused or still fits its elements.
  for (size_t at = 0; at < 80; ++at)
    for (unsigned change : {1u, 0x20u, 0x80u, 0xffu}) {
      std::vector<std::byte> bytes = good;
      bytes[at] ^= static_cast<std::byte>(change);
      try {
        const TensorData t = parse_npy(bytes, {}, "t");
        EXPECT_EQ(element_count(t.shape) * size_bytes(t.dtype), 48);
      } catch (const Error& e) {
        EXPECT_EQ(e.code, ErrorCode::kBadNpy);
      }
    }
  for (const char* dict : {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
                           "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
                           "{'descr': '<f4', 'fortran_order': 1, 'shape': (1,), }", "{'descr': '<f4', 'shape': (1,), }",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x"})
    testing::expect_error(ErrorCode::kBadNpy, "t", [&] { parse_npy(file_of(dict, "abcd"), {}, "t"); });
}

TEST(Npy, NothingHalfWrittenIsLeft) {
  const auto folder = std::filesystem::temp_directory_path() / "fusebox_npy_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "t.npy").string();
  const TensorData t = made("f32[3] normal");
  write_npy(path, t);
  EXPECT_EQ(digest(read_npy(path)), digest(t));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  testing::expect_error(ErrorCode::kFileWrite, (folder / "no/t.npy").string(),
                        [&] { write_npy((folder / "no/t.npy").string(), t); });
  // A folder is in the way: the temporary file is removed.
  std::filesystem::create_directories(folder / "taken.npy" / "x");
  testing::expect_error(ErrorCode::kFileWrite, (folder / "taken.npy").string(),
                        [&] { write_npy((folder / "taken.npy").string(), t); });
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);
  testing::expect_error(ErrorCode::kFileRead, (folder / "none.npy").string(),
                        [&] { read_npy((folder / "none.npy").string()); });
  testing::expect_error(ErrorCode::kFileWrite, "/dev/full", [&] { write_npy("/dev/full", t); });
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fusebox
