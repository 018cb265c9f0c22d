// What another process has mapped, from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtrace::target {

inline constexpr uint64_t kPageBytes = 4096;

// A part of the address space with one kind of access.
struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t offset = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  // Only with Detail::kSmaps, as the numbers below:
  bool wiped_by_fork = false;  // MADV_WIPEONFORK
  bool awaits_pages = false;   // userfaultfd: who reads a page that is not there waits for a thread
  bool huge_tlb = false;
  uint64_t resident = 0;  // bytes in memory; those shared with other processes count, too
  uint64_t dirty = 0;     // of it, bytes that were written
  uint64_t huge = 0;      // of it, bytes in huge pages
  uint64_t swapped = 0;   // bytes
  std::string path;   // as the process names it; "[heap]", "[stack]", "[vdso]"; empty: anonymous
  std::string inode;  // device and inode: identifies the file; empty: none
};

// kSmaps: also what only smaps has, for which the kernel walks the process's page tables.
enum class Detail { kUsual, kSmaps };

// Returns all mappings, by address; nothing when the process is gone or not readable.
std::optional<std::vector<Mapping>> memory_map(pid_t pid, Detail detail = Detail::kUsual);

// Returns all mapped parts of files, by address; nothing when the process is gone or not readable.
std::optional<std::vector<Mapping>> file_mappings(pid_t pid);

// Returns each mapped file once, at its lowest address. Use it for which files are mapped, not for
// where a library is: a library may be mapped several times.
std::optional<std::vector<Mapping>> mapped_files(pid_t pid);

// Opens a mapped file, even when it is deleted or in another root directory. Returns -1 when that
// is impossible.
int open_mapped(pid_t pid, const Mapping& mapping);

}  // namespace mtrace::target
