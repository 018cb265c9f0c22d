// What another process has mapped, as /proc says.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtrace::target {

// Of a file, a piece with one kind of access.
struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t offset = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  std::string path;   // as the process names it
  std::string inode;  // device and inode: tells files apart
};

// The mapped files, piece by piece, by address. Nothing: the process is gone, or not to be read.
std::optional<std::vector<Mapping>> file_mappings(pid_t pid);

// Each of the files once, at its lowest address: says which there are, not where a library lies
// that may be mapped several times.
std::optional<std::vector<Mapping>> mapped_files(pid_t pid);

// A descriptor of a mapped file, also when it has been deleted or lies in another root directory;
// -1 if that is not possible.
int open_mapped(pid_t pid, const Mapping& mapping);

}  // namespace mtrace::target
