// Reads whole files, and replaces files atomically.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "profile/descriptor.h"

namespace mtrace::profile {

// Returns the content of the file at `path`; "-" is the standard input. Throws FileError, also for
// a directory.
std::string read_file(const std::string& path);

// Writes all of `content` to an open file. Returns false with errno.
bool write_all(int descriptor, std::string_view content);

// Writes all of `content` at a place of an open file. Returns false with errno.
bool write_at(int descriptor, uint64_t offset, std::string_view content);

// Copies bytes at a place of an open file to `to`. Returns how many there were: fewer than `size`
// at the end of the file, or with errno.
size_t read_at(int descriptor, uint64_t offset, void* to, size_t size);

// Prefix of the names of temporary files that will replace others.
inline constexpr char kTemporaryPrefix[] = ".memlog-";

// Replaces a file atomically: a reader sees the old content or the new, never a mixture.
// Writes to an unnamed file in the same directory (.memlog-XXXXXX where the file system has no
// unnamed files). finish() then puts it in the place of `path`, following symbolic links. Keeps the
// mode of an existing file; a new file gets 0600. A device, a pipe or any other non-regular file is
// written to, never replaced.
// All functions throw FileError. After an error, or without finish(), a regular file at `path` is
// unchanged.
class Replacement {
 public:
  explicit Replacement(const std::string& path);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(std::string_view content);
  void finish();

 private:
  void give_name();
  void remove_temporary();

  std::string path_;
  std::string target_;     // `path` with its symbolic links followed
  std::string directory_;  // of the new file; empty: write to `path` itself
  std::string temporary_;  // name of the new file; empty: it has none
  Descriptor file_;
};

void replace_file(const std::string& path, std::string_view content);

}  // namespace mtrace::profile
