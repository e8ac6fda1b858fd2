// Kinds of file tests with more than a few lines: each gives the text that a file expects.
#pragma once

#include <string>

#include "fuzz/known/file_test.h"
#include "ir/module/module.h"
#include "passes/pipeline/pipeline.h"
#include "replay/data/tensor_data.h"

namespace fusebox::fuzz {

// algebra: what the index algebra makes of each line. A line declares, asks, or shows a form:
//
//   symbol n >= 1                    symbol m in 1 .. 9         loop i < n
//   assume 4 divides n               assume n <= m              name a = i * 8 + 3
//   i * 8 / 4                        a form, its least and greatest value
//   i < n      n <= m      a == b    4 divides a
//   0 <= a given n - a, m            a % 8 under n - a          of the points where these are not negative
//   a in terms of i                  a with i = 2               a at i = 1, n = 3        a depends on i
//   clear                            forgets everything
//
// The functions are min, max, xor, ceil, cyclic, symbol (symbol_of), neg; `/` and `%` are Euclidean.
std::string algebra_text(const std::string& input);

// slips: the plan of the scheduled graph, and what reading it says after each change of a line: the line is left out or stands
// twice; a token is left out (with a comma behind it), counts one more or is another name. A comment
// `// slip: OLD => NEW; OLD => NEW` asks for replacements in the whole text.
std::string slips_text(const Graph& scheduled, const std::string& input);

// explain A B …: all that is said of each pair of domains of the scheduled graph; without domains, whether each pair of all
// agrees. explain compiled: of the first segment as it is compiled for the module's inputs `host`.
std::string explain_text(const Graph& scheduled, const FileRequest& r);

// range NAME=SIZE …: the range of each index of the first graph, a kernel, in launches by the second, as the choice of 32 bits
// takes it.
std::string range_text(const std::string& input, const FileRequest& r);

// host [unfused, automatic]: the host program for the module's inputs `host`, its launch record, and the bits of an index; of
// a host program the launch record alone.
std::string host_text(const Module& m, const FileRequest& r);

// bytes KIND: the bytes that the program is kept as, of which each is changed in turn, and what reading them says. KIND is
// module, bundle, record, image, launch or signature; with `kinds`, the bytes of each are read as those of the others.
std::string bytes_text(const Module& m, const FileRequest& r);

// report [DEVICE]: the automatic plan for the module's inputs `host`, with what its segments read and write and why they are not
// merged, and what planning took.
std::string report_text(const Module& m, const FileRequest& r);

// products: of each fusion of the file, whether it is one call of a library, which products may stay wide, by what they are scaled,
// why they stand alone, and which casts give them again.
std::string products_text(const Module& m, const FileRequest& r);

// The GPU that the options name.
DeviceProperties device_of(const FileRequest& r);

// The module's inputs `host` of the graph, and their tensors. Throw kMissingInput without them.
const InputSpecs& host_specs(const Module& m, const Graph& g);
std::vector<Argument> host_arguments(const Module& m, const Graph& g);

// The program compiled for the module's inputs `host`: with the module's steps or, by the words `unfused` and `automatic`,
// without them.
Compiled compiled_for_host(const Module& m, const FileRequest& r);

}  // namespace fusebox::fuzz
