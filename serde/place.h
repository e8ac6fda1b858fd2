// Where a field stands in a file, for messages. It lives on the stack and becomes text only when an error needs it.
//
//   Place root("module"), graphs(root, "graphs"), second(graphs, 1), ops(second, "ops");
//   ops.text() == "module.graphs[1].ops"
#pragma once

#include <cstddef>
#include <string>

namespace fusebox {

class Place {
 public:
  explicit Place(const char* root) : field_(root) {}
  Place(const Place& parent, const char* field) : parent_(&parent), field_(field) {}
  Place(const Place& parent, size_t index) : parent_(&parent), index_(index) {}

  std::string text() const {
    const std::string before = parent_ ? parent_->text() : std::string();
    if (!field_) return before + "[" + std::to_string(index_) + "]";
    return before.empty() ? field_ : before + "." + field_;
  }

 private:
  const Place* parent_ = nullptr;
  const char* field_ = nullptr;
  size_t index_ = 0;
};

}  // namespace fusebox
