// `DeviceProperties`: what planning knows of a GPU. It is a value, so a schedule for a GPU can be planned, recorded and
// replayed without one.
//
//   DeviceProperties h200 = *find_device("h200");
//   h200.multiprocessors   // 132
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fusebox {

struct DeviceProperties {
  std::string name;          // a preset's name, or what the driver says
  std::string architecture;  // "sm_90"
  int64_t multiprocessors = 0;
  int64_t l2_bytes = 0;
  int64_t shared_bytes = 0;        // of a multiprocessor
  int64_t shared_block_bytes = 0;  // the most that one block may ask for
  int64_t memory_bytes = 0;
  int64_t clock_khz = 0;
  int64_t bytes_per_second = 0;  // of device memory
  // The same on every architecture from sm_80 on.
  int64_t registers = 65536;  // of 32 bits, of a multiprocessor
  int64_t threads = 2048;     // that a multiprocessor holds
  int64_t block_threads = 1024;
  int64_t warp = 32;
  bool operator==(const DeviceProperties&) const = default;
};

// The GPUs that are known by name: "a100", "h100", "h200", "b200".
std::span<const DeviceProperties> device_presets();
std::optional<DeviceProperties> find_device(std::string_view name);
// The GPU that schedules are made for where there is none.
const DeviceProperties& default_device();

}  // namespace fusebox
