// The shared parts of the decoder: FlatBuffers fields to values, each checked against its table and limit. The bytes
// have passed FlatBuffers' Verifier and may still be hostile.
//
// Invariants: memory is taken from the budget before it is allocated. Vectors of 8-byte elements are copied, because
// the Verifier does not check their alignment.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "ir/module/module.h"
#include "ir/table/defect.h"
#include "ir/table/error.h"
#include "serde/limits.h"
#include "serde/module_generated.h"
#include "serde/place.h"

namespace fusebox {

static_assert(std::endian::native == std::endian::little, "vectors are copied as they lie in the file");

[[noreturn]] inline void invalid_field(const Place& place, const std::string& message) {
  throw Error(ErrorCode::kInvalidField, message, place.text());
}

// The number of rows in the enumeration's table.
template <class E>
size_t row_count() {
  if constexpr (kIsProgramEnum<E>)
    return enum_texts<E>().size();
  else if constexpr (std::is_same_v<E, Dtype>)
    return dtype_rows().size();
  else if constexpr (std::is_same_v<E, OpKind>)
    return op_rows().size();
  else if constexpr (std::is_same_v<E, AttrKey>)
    return attr_rows().size();
  else
    return step_rows().size();
}

class Reader {
 public:
  explicit Reader(size_t file_bytes, const Defects& with = {})
      : defects(with), left_(limits::kMemoryFactor * file_bytes + limits::kMemoryBase) {}

  const Defects defects;

  // Takes the memory of `count` things of `each` bytes from the budget, before they are allocated.
  void take(size_t count, size_t each, const Place& place) {
    constexpr size_t kAllocationBytes = 16;
    const size_t bytes = count * each + kAllocationBytes;
    if (bytes > left_)
      throw Error(ErrorCode::kTooLarge,
                  "the file asks for more memory than one of its size may; its fields share objects", place.text());
    left_ -= bytes;
  }

  static void at_most(size_t count, size_t limit, const Place& place) {
    if (count > limit)
      throw Error(ErrorCode::kTooLarge,
                  "has " + std::to_string(count) + " elements or bytes; the limit is " + std::to_string(limit),
                  place.text());
  }

  std::string string(const flatbuffers::String* text, const Place& place, size_t limit = limits::kNameBytes) {
    if (!text) return {};
    at_most(text->size(), limit, place);
    take(text->size(), 1, place);
    return text->str();
  }

  // The row of this number; a missing number is refused.
  template <class E>
  E row(flatbuffers::Optional<uint16_t> number, const Place& place) const {
    if (!number && defects.has(Defect::kDecodeNull)) return E{};
    if (!number) invalid_field(place, "the field is missing");
    return row<E>(*number, place);
  }
  template <class E>
  E row(uint64_t number, const Place& place) const {
    if (number >= row_count<E>() && defects.has(Defect::kDecodeEnum)) return E{};
    if (number >= row_count<E>())
      invalid_field(place, std::to_string(number) + " is no row; the table has " + std::to_string(row_count<E>()));
    return static_cast<E>(number);
  }
  template <class T>
  static T present(flatbuffers::Optional<T> value, const Place& place) {
    if (!value) invalid_field(place, "the field is missing");
    return *value;
  }
  template <class T>
  static const T& present(const T* object, const Place& place) {
    if (!object) invalid_field(place, "the field is missing");
    return *object;
  }

  template <class T>
  std::vector<Id<T>> ids(const flatbuffers::Vector<uint32_t>* from, const Place& place) {
    std::vector<Id<T>> to;
    if (!from) return to;
    at_most(from->size(), limits::kNodes, place);
    take(from->size(), sizeof(Id<T>), place);
    to.reserve(from->size());
    for (uint32_t i = 0; i < from->size(); ++i) to.emplace_back(from->Get(i));
    return to;
  }

  std::vector<int64_t> integers(const flatbuffers::Vector<int64_t>* from, const Place& place,
                                size_t limit = limits::kIntegers) {
    if (!from) return {};
    at_most(from->size(), limit, place);
    take(from->size(), sizeof(int64_t), place);
    std::vector<int64_t> to(from->size());
    if (!to.empty()) std::memcpy(to.data(), from->Data(), to.size() * sizeof(int64_t));
    return to;
  }

  template <class E>
  std::vector<E> rows(const flatbuffers::Vector<uint16_t>* from, const Place& place) {
    std::vector<E> to;
    if (!from) return to;
    at_most(from->size(), limits::kNodes, place);
    take(from->size(), sizeof(E), place);
    to.reserve(from->size());
    for (uint32_t i = 0; i < from->size(); ++i) to.push_back(row<E>(uint64_t{from->Get(i)}, Place(place, i)));
    return to;
  }

  // A list of tables, each read by `read(table, place)`.
  template <class T, class Table, class Read>
  std::vector<T> list(const flatbuffers::Vector<flatbuffers::Offset<Table>>* from, const Place& place, size_t limit,
                      Read read) {
    std::vector<T> to;
    if (!from) return to;
    at_most(from->size(), limit, place);
    take(from->size(), sizeof(T), place);
    to.reserve(from->size());
    for (uint32_t i = 0; i < from->size(); ++i) to.push_back(read(*from->Get(i), Place(place, i)));
    return to;
  }

  std::vector<std::string> names(const flatbuffers::Vector<flatbuffers::Offset<wire::Name>>* from, const Place& place) {
    return list<std::string>(from, place, limits::kNodes,
                             [&](const wire::Name& name, const Place& at) { return string(name.text(), at); });
  }

 private:
  size_t left_;
};

// -- parts of a file, without the checks that relate one node to another (structure.h)
Attrs read_attrs(Reader& reader, const flatbuffers::Vector<flatbuffers::Offset<wire::Attr>>* from, const Place& place);
ConstantBits read_constant(const wire::Constant& from);
StepList read_step_list(Reader& reader, const wire::StepList& from, const Place& place);
InputSpec read_input_spec(Reader& reader, const wire::InputSpec& from, const Place& place);
Module read_module(Reader& reader, const wire::Module& from, const Place& place);

}  // namespace fusebox
