// Whole files: read at once, and replaced atomically.
#pragma once

#include <string>
#include <string_view>

#include "profile/descriptor.h"

namespace mtrace::profile {

// The content of the file at `path`; "-" is the standard input. Throws FileError, also for a
// directory.
std::string read_file(const std::string& path);

// How the names of files begin that are about to replace others.
inline constexpr char kTemporaryPrefix[] = ".memlog-";

// Writes to a file without a name in the same directory (where the file system has none: to
// .memlog-XXXXXX), which then takes the place of `path` (through symbolic links), so that a reader
// sees the old file or the new one. The mode of an existing file is kept; a new one gets 0600. What
// is not a regular file (a device, a pipe) is never replaced but written to. All throw FileError;
// then, and without finish(), a regular file at `path` stays as it was.
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
  std::string target_;     // behind the links
  std::string directory_;  // of the new file; empty: `path` itself is written to
  std::string temporary_;  // name of the new file; empty: none yet, or no more
  Descriptor file_;
};

void replace_file(const std::string& path, std::string_view content);

}  // namespace mtrace::profile
