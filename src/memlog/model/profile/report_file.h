// Writes reports to files, compressed or not.
#pragma once

#include <string>
#include <string_view>

#include "util/input.h"

namespace mtrace::profile {

// Returns whether a report of this name is to be compressed: it ends in .zst.
bool is_compressed_name(std::string_view path);

// Replaces the file at `path` atomically by this report (see Replacement). Throws FileError.
void write_report(const std::string& path, std::string_view text, bool compressed);

// Replaces the report at `path` by `path`.zst, this report compressed. There is one file at any
// time; a process that is killed meanwhile may leave the compressed report at `path`. If there is a
// `path`.zst already, it stays, and `path` gets the report uncompressed. Returns the name of the
// file. Throws FileError, and std::runtime_error unless `path` is a regular file.
std::string compress_report(const std::string& path, std::string_view text);

// What memlog run compresses unless told otherwise: a text of more bytes.
inline constexpr size_t kLargeReport = 1 << 20;

// Replaces the report `before` by the text `after`, if that is another. It stays compressed;
// `compress`: it becomes so, with a new name (compress_report()). Throws what that throws, and
// std::runtime_error when the new name is taken.
void replace_report(const util::Text& before, std::string_view after, bool compress);

}  // namespace mtrace::profile
