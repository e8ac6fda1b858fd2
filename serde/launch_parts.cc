#include "serde/launch_parts.h"

#include <set>

namespace fusebox {

void check_structure(const LaunchRecord& record, const Place& place) {
  const Place errors(place, "errors");
  for (size_t i = 0; i < record.errors.size(); ++i)
    if (row_of(record.errors[i].code).code != record.errors[i].code)
      invalid_field(Place(Place(errors, i), "code"),
                    std::to_string(static_cast<unsigned>(record.errors[i].code)) + " is no error's number");
  if (const auto why = objection(record)) invalid_field(Place(place, "code"), *why);
}

void check_structure(const InputSignature& signature, const Place& place) {
  std::set<std::string> seen;
  const Place facts(place, "facts");
  for (size_t i = 0; i < signature.facts.size(); ++i)
    if (!seen.insert(signature.facts[i].name).second)
      invalid_field(Place(Place(facts, i), "name"), "two facts have one name");
}

flatbuffers::Offset<wire::LaunchRecord> write_launch(Writer& w, const LaunchRecord& r, const Place& at) {
  const auto inputs = w.list(r.inputs, Place(at, "inputs"), limits::kNodes, [&](const LaunchInput& in, const Place&) {
    return wire::CreateLaunchInput(w.b, static_cast<uint16_t>(in.dtype), in.rank, in.is_scalar, in.is_open);
  });
  const auto allocated =
      w.list(r.allocated, Place(at, "allocated"), limits::kNodes, [&](const LaunchSlot& s, const Place&) {
        return wire::CreateLaunchSlot(w.b, static_cast<uint16_t>(s.dtype), s.rank);
      });
  const auto errors =
      w.list(r.errors, Place(at, "errors"), limits::kNodes, [&](const LaunchError& e, const Place& there) {
        const auto message = w.string(e.message, Place(there, "message"), limits::kTextBytes);
        const auto place = w.string(e.place, Place(there, "place"), limits::kTextBytes);
        return wire::CreateLaunchError(w.b, static_cast<uint16_t>(e.code), message, place);
      });
  const auto names = w.names(r.names, Place(at, "names"));
  const auto code = w.numbers(r.code, Place(at, "code"), limits::kNodes);
  return wire::CreateLaunchRecord(w.b, r.registers, r.kernels, inputs, allocated, errors, names, code);
}

flatbuffers::Offset<wire::InputSignature> write_signature(Writer& w, const InputSignature& s, const Place& at) {
  const auto inputs =
      w.list(s.inputs, Place(at, "inputs"), limits::kNodes, [&](const SignatureInput& in, const Place& there) {
        const auto name = w.string(in.name, Place(there, "name"));
        const auto axes =
            w.list(in.axes, Place(there, "axes"), limits::kAxes, [&](const SignatureAxis& a, const Place&) {
              return wire::CreateSignatureAxis(w.b, a.most, a.divisor, a.stride, a.stride_divisor);
            });
        return wire::CreateSignatureInput(w.b, name, static_cast<uint16_t>(in.dtype), in.is_scalar, in.most, in.divisor,
                                          in.align, axes);
      });
  const auto facts =
      w.list(s.facts, Place(at, "facts"), limits::kRecords, [&](const SignatureFact& f, const Place& there) {
        const auto name = w.required(f.name, Place(there, "name"));
        return wire::CreateSignatureFact(w.b, name, w.string(f.value, Place(there, "value"), limits::kTextBytes));
      });
  return wire::CreateInputSignature(w.b, inputs, facts);
}

LaunchRecord read_launch(Reader& reader, const wire::LaunchRecord& from, const Place& at) {
  LaunchRecord r;
  r.registers = from.registers();
  r.kernels = from.kernels();
  r.inputs = reader.list<LaunchInput>(from.inputs(), Place(at, "inputs"), limits::kNodes,
                                      [&](const wire::LaunchInput& in, const Place& there) {
                                        return LaunchInput{reader.row<Dtype>(in.dtype(), Place(there, "dtype")),
                                                           in.rank(), in.is_scalar(), in.is_open()};
                                      });
  r.allocated = reader.list<LaunchSlot>(
      from.allocated(), Place(at, "allocated"), limits::kNodes, [&](const wire::LaunchSlot& s, const Place& there) {
        return LaunchSlot{reader.row<Dtype>(s.dtype(), Place(there, "dtype")), s.rank()};
      });
  r.errors = reader.list<LaunchError>(
      from.errors(), Place(at, "errors"), limits::kNodes, [&](const wire::LaunchError& e, const Place& there) {
        return LaunchError{static_cast<ErrorCode>(Reader::present(e.code(), Place(there, "code"))),
                           reader.string(e.message(), Place(there, "message"), limits::kTextBytes),
                           reader.string(e.place(), Place(there, "place"), limits::kTextBytes)};
      });
  r.names = reader.list<std::string>(
      from.names(), Place(at, "names"), limits::kNodes,
      [&](const wire::Name& name, const Place& there) { return reader.string(name.text(), there); });
  if (const auto* code = from.code()) {
    const Place there(at, "code");
    Reader::at_most(code->size(), limits::kNodes, there);
    reader.take(code->size(), sizeof(uint64_t), there);
    r.code.resize(code->size());
    if (!r.code.empty()) std::memcpy(r.code.data(), code->Data(), r.code.size() * sizeof(uint64_t));
  }
  return r;
}

InputSignature read_signature(Reader& reader, const wire::InputSignature& from, const Place& at) {
  InputSignature s;
  s.inputs = reader.list<SignatureInput>(
      from.inputs(), Place(at, "inputs"), limits::kNodes, [&](const wire::SignatureInput& in, const Place& there) {
        SignatureInput to;
        to.name = reader.string(in.name(), Place(there, "name"));
        to.dtype = reader.row<Dtype>(in.dtype(), Place(there, "dtype"));
        to.is_scalar = in.is_scalar();
        to.most = in.most(), to.divisor = in.divisor(), to.align = in.align();
        to.axes = reader.list<SignatureAxis>(
            in.axes(), Place(there, "axes"), limits::kAxes, [&](const wire::SignatureAxis& a, const Place&) {
              return SignatureAxis{a.most(), a.divisor(), a.stride(), a.stride_divisor()};
            });
        return to;
      });
  s.facts = reader.list<SignatureFact>(
      from.facts(), Place(at, "facts"), limits::kRecords, [&](const wire::SignatureFact& f, const Place& there) {
        return SignatureFact{reader.string(f.name(), Place(there, "name")),
                             reader.string(f.value(), Place(there, "value"), limits::kTextBytes)};
      });
  return s;
}

}  // namespace fusebox
