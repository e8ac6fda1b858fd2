// Where a cache keeps its records: files of a folder, or memory. A store knows names and bytes, and nothing of records.
//
// Invariants: `read` and `write` may be called from any thread and, for a folder, from any process. Neither throws. A
// reader gets the bytes of one `write` as a whole, or nothing.
//
//   auto store = make_memory_store();  store->write("a.fusion", bytes);  store->read("a.fusion")
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace fusebox {

class RecordStore {
 public:
  virtual ~RecordStore() = default;
  // Nothing if it is not there or cannot be read.
  virtual std::optional<std::string> read(const std::string& name) = 0;
  // False if it cannot be written: a full or read-only disk.
  virtual bool write(const std::string& name, std::string_view bytes) = 0;
};

// For tests and oracles: they look at the bytes and change them.
class MemoryStore : public RecordStore {
 public:
  std::optional<std::string> read(const std::string& name) override {
    const std::lock_guard lock(using_);
    const auto it = records.find(name);
    return it == records.end() ? std::nullopt : std::optional(it->second);
  }
  bool write(const std::string& name, std::string_view bytes) override {
    const std::lock_guard lock(using_);
    records[name] = bytes;
    return true;
  }

  std::map<std::string, std::string> records;

 private:
  std::mutex using_;
};

}  // namespace fusebox
