// What another process has mapped, from /proc.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include "model/ledger/ledger_file.h"
#include "util/machine.h"
#include "util/prelude.h"

namespace mtrace::process {

// Of this machine's kernel: arm64 has pages of 4, 16 or 64 KiB.
inline const uint64_t kPageBytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));

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

// Tells what glibc has mapped, heaps of malloc and stacks of threads, from other mappings.

// Heaps besides the first begin at multiples of this (malloc/arena.c, HEAP_MAX_SIZE).
inline constexpr uint64_t kArenaHeap = 64 << 20;

// Copies memory of the process; returns false when it cannot be read.
using ReadMemory = std::function<bool(uint64_t address, void* to, size_t size)>;

// Returns whether `region`, one of `map`, is the first heap, or the beginning of another.
bool is_malloc_heap(const Mapping& region, const std::vector<Mapping>& map, const ReadMemory& read);
// Returns `region`, one of `map`, in parts: each heap but the first, and what the kernel has joined
// with it, as it does with neighbours that are alike. The numbers of a part are those of the whole.
std::vector<Mapping> heaps_apart(const Mapping& region, const std::vector<Mapping>& map,
                                 const ReadMemory& read);

// Returns where the thread's descriptor at the end of a thread's stack begins, or somewhat before
// that; 0 if `region` is no stack. glibc keeps stacks of threads that have ended for others.
// `names_itself`: as util::machine::kBlockNamesItself.
uint64_t descriptor_at_end(const Mapping& region, const ReadMemory& read,
                           bool names_itself = util::machine::kBlockNamesItself);

// The mappings that a process has made itself, with their stacks, as the library keeps them with
// MTRACE_MMAP=1.

struct OwnMapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint32_t stack = 0;  // ledger::LedgerStackState::index
};

// Returns the mappings by address; of a process that maps and unmaps all the time, perhaps without
// some that it had. Empty: the library records none.
std::vector<OwnMapping> own_mappings(pid_t pid, const ledger::LedgerFile& ledger);

// What the mappings of a process are for.

enum class RegionKind : uint8_t {
  kHeap,        // malloc's first heap, which brk moves
  kArena,       // malloc's other heaps
  kLargeBlock,  // a block of malloc with a mapping of its own; see AddressSpace
  kStack,       // of a thread
  kAnonymous,   // all else without a file
  kData,        // variables of a file, and other private pages of it that may be written
  kFile,        // code and other pages of a file
  kShared,      // shared memory: of a file in memory, or anonymous
  kTables,      // of libmtrace.so: the ledger
  kReserved,    // no access: address space only
  kKernel,      // vdso and the like
};
inline constexpr size_t kRegionKinds = 11;

// Returns the kind of each mapping. A running process may change its memory meanwhile.
std::vector<RegionKind> region_kinds(pid_t pid, const std::vector<Mapping>& map);

}  // namespace mtrace::process
