#include "ir/module/device_properties.h"

#include <algorithm>

namespace fusebox {

std::span<const DeviceProperties> device_presets() {
  static const DeviceProperties kPresets[] = {
#define FUSEBOX_DEVICE(name, architecture, multiprocessors, l2, shared, shared_block, memory, clock, bandwidth) \
  {name, architecture, multiprocessors, l2, shared, shared_block, memory, clock, bandwidth},
#include "ir/module/device_table.inc"
#undef FUSEBOX_DEVICE
  };
  return kPresets;
}

std::optional<DeviceProperties> find_device(std::string_view name) {
  const auto presets = device_presets();
  const auto it = std::ranges::find(presets, name, &DeviceProperties::name);
  if (it == presets.end()) return std::nullopt;
  return *it;
}

const DeviceProperties& default_device() {
  return *std::ranges::find(device_presets(), "h200", &DeviceProperties::name);
}

}  // namespace fusebox
