// Whole files: read at once, and replaced atomically.
#pragma once

#include <string>
#include <string_view>

#include "profile/descriptor.h"

namespace mtrace::profile {

// The content of the file at `path`; "-" is the standard input. Throws FileError, also for a
// directory.
std::string read_file(const std::string& path);

// Writes to a temporary name in the same directory and renames it over `path` (through symbolic
// links), so that a reader sees the old file or the new one. The mode of an existing file is
// kept; a new one gets 0600. What is not a regular file (a device, a pipe) is never replaced but
// written to. All throw FileError; then, and without finish(), a regular file at `path` stays as it
// was.
class Replacement {
 public:
  explicit Replacement(const std::string& path);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void write(std::string_view content);
  void finish();

 private:
  std::string path_;
  std::string target_;     // behind the links
  std::string temporary_;  // empty: it is written to itself, or finished
  Descriptor file_;
};

void replace_file(const std::string& path, std::string_view content);

}  // namespace mtrace::profile
