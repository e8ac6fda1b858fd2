#include "replay/data/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "ir/scalar/numeric.h"
#include "ir/table/error.h"
#include "replay/data/file.h"

namespace fusebox {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostHeaderBytes = 1 << 16;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::kBadNpy, message); }

// The dtypes that NumPy has, with their names in a header. `index` is written as i64.
struct NpyName {
  std::string_view name;
  Dtype dtype;
};
constexpr NpyName kNames[] = {
    {"|b1", Dtype::kBool},         {"|i1", Dtype::kInt8},           {"|u1", Dtype::kUint8},  {"<i2", Dtype::kInt16},
    {"<i4", Dtype::kInt32},        {"<i8", Dtype::kInt64},          {"<u2", Dtype::kUint16}, {"<u4", Dtype::kUint32},
    {"<u8", Dtype::kUint64},       {"<f2", Dtype::kHalf},           {"<f4", Dtype::kFloat},  {"<f8", Dtype::kDouble},
    {"<c8", Dtype::kComplexFloat}, {"<c16", Dtype::kComplexDouble},
};

// The dtype in which a file stores a dtype.
Dtype travelling(Dtype d) {
  if (d == Dtype::kIndex) return Dtype::kInt64;
  if (d == Dtype::kFloat4E2m1x2)
    throw Error(ErrorCode::kUnsupportedDtype,
                "a packed pair of f4e2m1 has no form in a .npy file; cast it to f4e2m1 first");
  for (const NpyName& n : kNames)
    if (n.dtype == d) return d;
  return Dtype::kFloat;
}

std::string_view name_of(Dtype travels) {
  for (const NpyName& n : kNames)
    if (n.dtype == travels) return n.name;
  refuse("no .npy name for " + std::string(text(travels)));
}

Dtype dtype_named(std::string_view name) {
  std::string_view core = name;
  const char order = core.empty() ? ' ' : core.front();
  if (order == '<' || order == '|' || order == '=' || order == '>') core.remove_prefix(1);
  for (const NpyName& n : kNames)
    if (n.name.substr(1) == core) {
      if (order == '>' && size_bytes(n.dtype) > 1) refuse("its numbers are big endian; save them as little endian");
      return n.dtype;
    }
  refuse("its dtype '" + std::string(name.substr(0, 40)) +
         "' is none that is read; save bool, integers, floats or complex numbers");
}

// Reads the header, a Python dict of three keys. It accepts only the forms that numpy.save writes: strings, True,
// False, a tuple of integers.
class DictReader {
 public:
  explicit DictReader(std::string_view text) : text_(text) {}

  NpyHeader read() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && !has_descr) {
        has_descr = true;
        header.dtype = dtype_named(string());
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran_order = truth();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = tuple();
      } else {
        refuse("its header has an unknown or repeated key; save it with numpy.save");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (!text_.empty()) refuse("its header goes on after the dict; save it with numpy.save");
    if (!has_descr || !has_order || !has_shape)
      refuse("its header lacks descr, fortran_order or shape; save it with numpy.save");
    return header;
  }

 private:
  void skip() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n' || text_.front() == '\t'))
      text_.remove_prefix(1);
  }
  bool accept(char c) {
    skip();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(std::string("its header lacks a '") + c + "'; save it with numpy.save");
  }
  bool accept(std::string_view word) {
    skip();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::string_view string() {
    skip();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"'))
      refuse("its header has something else where a string is needed; structured arrays are not read");
    const size_t end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) refuse("a string in its header does not end; save it with numpy.save");
    const std::string_view s = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return s;
  }
  bool truth() {
    if (accept("True")) return true;
    if (accept("False")) return false;
    refuse("fortran_order in its header is neither True nor False; save it with numpy.save");
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> numbers;
    expect('(');
    while (!accept(')')) {
      skip();
      int64_t n = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), n);
      if (error != std::errc() || n < 0)
        refuse("an extent in its header is no number of elements; save it with numpy.save");
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      numbers.push_back(n);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    if (numbers.size() > 64) refuse("it has more than 64 axes; reshape it");
    return numbers;
  }

  std::string_view text_;
};

// Converts a value to another dtype. Returns whether nothing is lost.
bool converts_exactly(Dtype from, ConstantBits bits, Dtype to, ConstantBits& result) {
  result = convert(from, bits, to);
  if (is_complex(from)) {
    const auto before = to_complex(from, bits), after = to_complex(to, result);
    const auto same = [](double a, double b) { return a == b || (a != a && b != b); };
    return same(before.real(), after.real()) && same(before.imag(), after.imag());
  }
  if (is_floating(from)) {
    const double before = to_double(from, bits);
    if (before != before) return has_nan(to) || is_complex(to);
    if (is_integer(to) || is_boolean(to)) return is_exact(to, before);
    return to_double(to, result) == before;
  }
  // Integers and bool. Beyond 2^63 equal bits may mean numbers of different signs.
  if (is_floating(to) || is_complex(to))
    return convert(to, {result.low, result.high}, from) == bits && is_exact(to, to_double(from, bits));
  const bool from_negative = is_signed(from) && static_cast<int64_t>(bits.low) < 0;
  const bool to_negative = is_signed(to) && static_cast<int64_t>(result.low) < 0;
  return result.low == bits.low && from_negative == to_negative;
}

std::string shown(Dtype dtype, ConstantBits bits) {
  if (dtype == Dtype::kUint64) return std::to_string(bits.low);
  return is_integer(dtype) ? std::to_string(to_int64(dtype, bits)) : std::to_string(to_double(dtype, bits));
}

}  // namespace

NpyHeader parse_npy_header(std::span<const std::byte> bytes) {
  const auto byte = [&](size_t i) { return static_cast<size_t>(bytes[i]); };
  if (bytes.size() < 10 || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    refuse("it does not start as a .npy file does; save it with numpy.save");
  const size_t version = byte(6);
  if (version < 1 || version > 3)
    refuse("its format version " + std::to_string(version) + " is not read; save it as version 1 to 3");
  const size_t begin = version == 1 ? 10 : 12;
  if (bytes.size() < begin) refuse("it ends within its header; copy it again");
  const size_t length =
      version == 1 ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > kMostHeaderBytes || bytes.size() - begin < length)
    refuse("its header is longer than it may be, or cut off; copy it again");
  NpyHeader header = DictReader({reinterpret_cast<const char*>(bytes.data()) + begin, length}).read();
  header.data_begin = begin + length;
  // The file has to hold the elements, so nothing larger than the file is ever allocated.
  const size_t size = static_cast<size_t>(size_bytes(header.dtype));
  unsigned __int128 elements = 1;
  for (int64_t e : header.shape) {
    elements *= static_cast<uint64_t>(e);
    if (elements > bytes.size()) elements = bytes.size() + 1;
  }
  // An extent of 0 may follow extents whose product was cut off.
  if (std::find(header.shape.begin(), header.shape.end(), 0) != header.shape.end()) elements = 0;
  if (elements * size != bytes.size() - header.data_begin)
    refuse("its elements take another number of bytes than its header says; copy it again");
  return header;
}

TensorData parse_npy(std::span<const std::byte> bytes, std::optional<Dtype> wanted, std::string_view name) {
  const auto place = std::string(name);
  try {
    const NpyHeader header = parse_npy_header(bytes);
    std::vector<int64_t> strides = contiguous_strides(header.shape);
    if (header.fortran_order) {
      int64_t step = 1;
      for (size_t i = 0; i < strides.size(); ++i) {
        strides[i] = step;
        step *= std::max<int64_t>(header.shape[i], 1);
      }
    }
    TensorData file = allocate_tensor(header.dtype, header.shape, strides);
    if (element_count(header.shape) > 0)
      std::memcpy(file.storage.get(), bytes.data() + header.data_begin, bytes.size() - header.data_begin);
    if (header.dtype == Dtype::kBool)
      for (int64_t i = 0; i < file.storage_elems; ++i)
        if (static_cast<uint8_t>(file.storage.get()[i]) > 1)
          refuse("a bool in it is neither 0 nor 1; save it with numpy.save");
    if (!wanted || *wanted == header.dtype) return file;
    if (*wanted == Dtype::kIndex && header.dtype == Dtype::kInt64) {
      file.dtype = Dtype::kIndex;
      return file;
    }
    if (*wanted == Dtype::kFloat4E2m1x2) travelling(*wanted);
    TensorData result = allocate_tensor(*wanted, header.shape, strides);
    for (int64_t i = 0; i < file.storage_elems; ++i) {
      ConstantBits value;
      const ConstantBits bits = load_element(file, i);
      if (!converts_exactly(header.dtype, bits, *wanted, value))
        refuse("its value " + shown(header.dtype, bits) + " is none of " + std::string(text(*wanted)) +
               "; round it before it is saved");
      store_element(result, i, value);
    }
    return result;
  } catch (Error& e) {
    if (e.code == ErrorCode::kBadNpy) throw Error(e.code, std::string(name) + " cannot be used: " + e.what(), place);
    throw;
  }
}

TensorData read_npy(const std::string& path, std::optional<Dtype> wanted) {
  return parse_npy(read_file(path), wanted, path);
}

std::vector<std::byte> format_npy(const TensorData& t) {
  const Dtype travels = travelling(t.dtype);
  std::string header = "{'descr': '" + std::string(name_of(travels)) + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < t.shape.size(); ++i) header += (i > 0 ? " " : "") + std::to_string(t.shape[i]) + ",";
  if (t.shape.size() > 1) header.pop_back();
  header += "), }";
  // The elements start at a multiple of 64 bytes.
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  TensorData elements;
  if (travels == t.dtype || t.dtype == Dtype::kIndex)
    elements = contiguous_copy(t);
  else
    elements = converted_copy(t, travels);
  const auto size = static_cast<size_t>(element_count(t.shape) * size_bytes(travels));
  std::vector<std::byte> bytes(10 + header.size() + size);
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  bytes[6] = std::byte{1};
  bytes[8] = static_cast<std::byte>(header.size() & 0xff);
  bytes[9] = static_cast<std::byte>(header.size() >> 8);
  std::memcpy(bytes.data() + 10, header.data(), header.size());
  if (size > 0) std::memcpy(bytes.data() + 10 + header.size(), elements.data(), size);
  return bytes;
}

void write_npy(const std::string& path, const TensorData& t) { write_file(path, format_npy(t)); }

}  // namespace fusebox
