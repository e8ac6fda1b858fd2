// The numbers of `DeviceProperties`, in the order in which keys and records write them.
#pragma once

#include "ir/module/device_properties.h"

namespace fusebox {

inline constexpr int64_t DeviceProperties::* kDeviceNumbers[] = {
    &DeviceProperties::multiprocessors,    &DeviceProperties::l2_bytes,     &DeviceProperties::shared_bytes,
    &DeviceProperties::shared_block_bytes, &DeviceProperties::memory_bytes, &DeviceProperties::clock_khz,
    &DeviceProperties::bytes_per_second,   &DeviceProperties::registers,    &DeviceProperties::threads,
    &DeviceProperties::block_threads,      &DeviceProperties::warp};

}  // namespace fusebox
