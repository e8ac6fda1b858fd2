// Launch records and input signatures as parts of a file: of one of their own (launch_file.h), and of a cache record.
#pragma once

#include "ir/module/input_signature.h"
#include "ir/module/launch_record.h"
#include "serde/launch_generated.h"
#include "serde/place.h"
#include "serde/reader.h"
#include "serde/writer.h"

namespace fusebox {

// The invariants of launch_record.h and input_signature.h. Throws kInvalidField.
void check_structure(const LaunchRecord& record, const Place& place);
void check_structure(const InputSignature& signature, const Place& place);

flatbuffers::Offset<wire::LaunchRecord> write_launch(Writer& w, const LaunchRecord& r, const Place& at);
flatbuffers::Offset<wire::InputSignature> write_signature(Writer& w, const InputSignature& s, const Place& at);
// Without the checks above.
LaunchRecord read_launch(Reader& reader, const wire::LaunchRecord& from, const Place& at);
InputSignature read_signature(Reader& reader, const wire::InputSignature& from, const Place& at);

}  // namespace fusebox
