// Reads and writes whole files. Nobody ever sees a half-written one.
//
//   write_file("out.fuse", bytes);  read_file("out.fuse") == bytes
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox {

// Throws kFileRead, kTooLarge beyond `limit_bytes`.
std::vector<std::byte> read_file(const std::string& path, size_t limit_bytes = size_t{1} << 40);
std::string read_text_file(const std::string& path, size_t limit_bytes = size_t{1} << 32);

// Writes a private file in the same folder, flushes it to the disk and renames it. On any failure it removes the
// private file, leaves an existing file of the name as it is, and throws kFileWrite. A link stays, and the file that it
// leads to is replaced. A device, a pipe, and a file that this process has open, such as /dev/stdout, are written in place.
void write_file(const std::string& path, std::span<const std::byte> bytes);
void write_file(const std::string& path, std::string_view text);

// Makes the folder, and those above it, if it is not there. Throws kFileWrite.
void make_folder(const std::string& path);

}  // namespace fusebox
