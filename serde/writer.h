// The shared parts of the encoder: values to FlatBuffers fields. The same value gives the same bytes, because empty
// strings and lists are left out, fields are written in the order of the schema, and nothing is shared.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/module/module.h"
#include "ir/table/defect.h"
#include "ir/table/error.h"
#include "serde/limits.h"
#include "serde/module_generated.h"
#include "serde/place.h"

namespace fusebox {

class Writer {
 public:
  template <class T>
  using Offset = flatbuffers::Offset<T>;
  template <class T>
  using Tables = Offset<flatbuffers::Vector<Offset<T>>>;

  flatbuffers::FlatBufferBuilder b{1024};
  Defects defects = {};

  // Refuses a list that would make the file too long. FlatBuffers stops the program at 2 GiB, so every list asks first.
  void room(size_t bytes, const Place& place) {
    if (bytes > limits::kFileBytes || b.GetSize() + bytes > limits::kFileBytes)
      throw Error(
          ErrorCode::kTooLarge,
          "the file would be longer than " + std::to_string(limits::kFileBytes) + " bytes; record inputs by seed",
          place.text());
  }
  static void at_most(size_t count, size_t limit, const Place& place) {
    if (count > limit)
      throw Error(ErrorCode::kTooLarge,
                  "has " + std::to_string(count) + " elements or bytes; the limit is " + std::to_string(limit),
                  place.text());
  }

  Offset<flatbuffers::String> required(std::string_view text, const Place& place, size_t limit = limits::kNameBytes) {
    at_most(text.size(), limit, place);
    room(text.size() + 64, place);
    return b.CreateString(text.data(), text.size());
  }
  Offset<flatbuffers::String> string(std::string_view text, const Place& place, size_t limit = limits::kNameBytes) {
    return text.empty() ? Offset<flatbuffers::String>() : required(text, place, limit);
  }

  template <class T>
  Offset<flatbuffers::Vector<T>> numbers(const std::vector<T>& from, const Place& place, size_t limit) {
    if (from.empty()) return 0;
    at_most(from.size(), limit, place);
    room(from.size() * sizeof(T) + 64, place);
    return b.CreateVector(from);
  }
  Offset<flatbuffers::Vector<int64_t>> integers(const std::vector<int64_t>& from, const Place& place,
                                                size_t limit = limits::kIntegers) {
    return numbers(from, place, limit);
  }
  template <class T>
  Offset<flatbuffers::Vector<uint32_t>> ids(const std::vector<Id<T>>& from, const Place& place) {
    std::vector<uint32_t> to;
    to.reserve(from.size());
    for (Id<T> id : from) to.push_back(id.index);
    return numbers(to, place, limits::kNodes);
  }
  template <class E>
  Offset<flatbuffers::Vector<uint16_t>> rows(const std::vector<E>& from, const Place& place) {
    std::vector<uint16_t> to;
    to.reserve(from.size());
    for (E e : from) to.push_back(static_cast<uint16_t>(e));
    return numbers(to, place, limits::kNodes);
  }

  // A list of tables, each made by `write(item, place)`.
  template <class T, class Write>
  auto list(const std::vector<T>& from, const Place& place, size_t limit, Write write)
      -> Offset<flatbuffers::Vector<decltype(write(from[0], place))>> {
    if (from.empty()) return 0;
    at_most(from.size(), limit, place);
    std::vector<decltype(write(from[0], place))> to;
    to.reserve(from.size());
    for (size_t i = 0; i < from.size(); ++i) {
      room(256, place);
      to.push_back(write(from[i], Place(place, i)));
    }
    room(to.size() * 4 + 64, place);
    return b.CreateVector(to);
  }
  Tables<wire::Name> names(const std::vector<std::string>& from, const Place& place) {
    return list(from, place, limits::kNodes,
                [&](const std::string& name, const Place& at) { return wire::CreateName(b, required(name, at)); });
  }

  template <class Table>
  std::string finish(Offset<Table> root, const char* identifier) {
    b.Finish(root, identifier);
    return std::string(reinterpret_cast<const char*>(b.GetBufferPointer()), b.GetSize());
  }
};

wire::Constant write_constant(ConstantBits bits);
Writer::Tables<wire::Attr> write_attrs(Writer& w, const Attrs& attrs, const Place& place);
flatbuffers::Offset<wire::StepList> write_step_list(Writer& w, const StepList& list, const Place& place);
flatbuffers::Offset<wire::InputSpec> write_input_spec(Writer& w, const InputSpec& spec, const Place& place);
flatbuffers::Offset<wire::Module> write_module(Writer& w, const Module& m, const Place& place);

}  // namespace fusebox
