// The bank conflicts of each access to shared memory, beside the access in a kernel's text. The host executor counts
// them on the program's default host inputs, or on the inputs that a bundle records.
//
//   BankNotes notes(programs.at(Stage::kHost), arguments);
//   notes.beside("transpose", print(kernel))   // "…  %v = load %s at %i : f32  // bank conflicts: 32-way, …"
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/module/module.h"
#include "replay/data/tensor_data.h"
#include "replay/host/bank_conflicts.h"

namespace fusebox::cli {

class BankNotes {
 public:
  // `executable` is a host program and the kernels that it launches. Runs it only if a kernel has shared memory. If it
  // cannot run, or `inputs` throws, the error becomes a note.
  BankNotes(const Module& executable, const std::function<std::vector<Argument>()>& inputs);

  // The text with a comment behind each line that touches shared memory, and one above the kernel. Existing comments
  // stay.
  std::string beside(const std::string& kernel, const std::string& text) const;

 private:
  std::vector<BankCounter> counted_;
  std::string failure_;  // why nothing was counted
};

}  // namespace fusebox::cli
