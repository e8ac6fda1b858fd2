// The programs in the source tree, which is the folder that tests run in: corpus/programs and the valid inputs of
// tests/filetests/parse. A program with steps is also returned with its steps applied.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "ir/text/parse.h"
#include "ir/verify/verify.h"
#include "passes/schedule/apply_steps.h"
#include "tests/support/program_text.h"

namespace fusebox::testing {

struct RealProgram {
  std::string path;
  Module module;
};

inline std::vector<RealProgram> real_programs() {
  std::vector<std::string> paths;
  for (const char* folder : {"corpus/programs", "tests/filetests/parse"})
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".fir") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  std::vector<RealProgram> programs;
  for (const std::string& path : paths) {
    const std::string text = file_text(path);
    const std::string input = text.substr(0, text.find("// expect:"));
    try {
      RealProgram program{path, parse_module(input)};
      verify(program.module);
      programs.push_back(program);
      if (program.module.graphs.empty()) continue;
      Graph g = main_graph(program.module);
      if (const StepList* list = find_steps(program.module, g.name)) {
        apply_steps(g, list->steps);
        Module scheduled;
        scheduled.graphs.push_back(std::move(g));
        programs.push_back({path + " with its steps", std::move(scheduled)});
      }
    } catch (const Error&) {
      // A filetest that expects an error.
    }
  }
  return programs;
}

}  // namespace fusebox::testing
