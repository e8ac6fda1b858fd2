// File tests of many outcomes: all single changes of a value, all slips in a text, calls with random operands, tables of calls.
// What they give is a list of sentences with counts and checksums (outcome_list.h), so that a refusal that is dropped, moved
// or reworded shows, and so does any other result.
#pragma once

#include <string>
#include <string_view>

#include "ir/module/module.h"

namespace fusebox::fuzz {

// Each change of one member (field_laws/changes.h) of the graph, and whether the verifier takes it; one it takes is printed,
// also as JSON and for Graphviz.
std::string recorded_changes(const Graph& g);
// The same for the parts of a module. They are checked as parts of it.
std::string recorded_module_changes(const Module& m);
// Each step list that differs from the graph's in one member, applied.
std::string recorded_step_changes(const Module& m);
// The launch record of a host program with one byte changed.
std::string recorded_launch_changes(const Graph& host);

// The module's bytes with one byte changed, or cut off, and what reading says.
std::string recorded_byte_changes(const Module& m);
// A bundle of the module, its compiled form and a run, with one member changed: what writing says, and what reading says of the
// bytes, be they written or not. Then records alone, with what their readers must know.
std::string recorded_bundle_changes(const Module& m);

// A text with one token or one character changed, read and verified.
std::string recorded_slips(std::string_view text);

// Each op of the graph's level with operands drawn among its values and constants, and with drawn attributes.
std::string recorded_ops(const Graph& g);
// Each kind of step with operands drawn among the graph's tensors, domains and scalars.
std::string recorded_steps(const Graph& g);

// The file's module with each of the lines that stand below `// lines:` in place of its line `??`; `; ` divides a line into
// several. Gives the error, or the lines of the printed module that are new. `how`: `bind` binds the sizes to the inputs `host`
// too, and gives the scalars that are known then; `steps` applies the line, as steps, to the scheduled graph.
std::string recorded_lines(std::string_view text, std::string_view how);

// The result, or the Error with its sentence, of each of the texts that lines `// next:` divide.
std::string recorded_texts(std::string_view text);

// A table of calls by its name, such as `builder`. Throws kUnknownName.
std::string recorded_calls(std::string_view table);

}  // namespace fusebox::fuzz
