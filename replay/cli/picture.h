// `fusebox show --graph`: pictures of scheduled programs in the formats of the command line.
#pragma once

#include <string>
#include <vector>

#include "ir/module/module.h"
#include "passes/identity/id_graphs.h"
#include "replay/picture/picture.h"

namespace fusebox::cli {

// One picture for each scheduled graph. `segmentation`, or null, has the steps that made the graphs, in the same order.
std::vector<picture::Picture> describe_all(const std::vector<Graph>& scheduled, const Segmentation* segmentation,
                                           const Defects& defects = {});
// The whole program with its steps applied, for a schedule that does not compile.
picture::Picture describe_uncompiled(const Module& module, const Defects& defects = {});

// format: text, json (an object for each domain on a line), dot, svg, html.
std::string drawn(const std::vector<picture::Picture>& pictures, IdGraphKind kind, const std::string& format);

}  // namespace fusebox::cli
