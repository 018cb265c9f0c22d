// The memory of another process. It stays bound to the program that ran when it was opened: after
// an exec nothing more is read or written.
#pragma once

#include <sys/types.h>

#include "model/symbols/elf_file.h"
#include "process/inspect/mappings.h"
#include "util/file.h"
#include "util/prelude.h"

namespace mtrace::process {

class TargetMemory {
 public:
  explicit TargetMemory(pid_t pid);  // throws AttachError when it cannot be opened
  // When it cannot be opened, every read and write returns false with errno of that.
  TargetMemory(pid_t pid, std::nothrow_t);
  ~TargetMemory();
  TargetMemory(const TargetMemory&) = delete;
  TargetMemory& operator=(const TargetMemory&) = delete;

  // Returns false with errno: ESRCH when the program is gone.
  bool read(uint64_t address, void* data, size_t size) const;
  // Also writes where the process itself may only read or execute: its tracer may. Returns false
  // with errno.
  bool write(uint64_t address, const void* data, size_t size) const;

 private:
  bool is_all(ssize_t done, size_t size) const;
  int file_;
  int error_;  // of the opening
};

// Reads memory word by word with one system call per page. Keeps pages until forget().
class PageCache {
 public:
  explicit PageCache(const TargetMemory& memory) : memory_(memory) {}
  bool read_word(uint64_t address, uint64_t* word);
  void forget() { pages_.clear(); }

 private:
  static constexpr uint64_t kPage = 4096;
  const std::string* page(uint64_t begin);
  const TargetMemory& memory_;
  std::unordered_map<uint64_t, std::string> pages_;
};

// Reads the dynamic loader's list of loaded objects from a process's memory. Every other mapping,
// even a second copy of a library, is data: the process does not run it as a library.

struct ListedObject {
  uint64_t bias = 0;     // load bias
  uint64_t dynamic = 0;  // address of its dynamic section
  bool in_first = true;  // in the program's own namespace, not in one made by dlmopen
  bool operator==(const ListedObject&) const = default;
};

// Facts that the kernel gave the program at its start.
struct StartFacts {
  uint64_t program_headers = 0;  // of the program; of the loader if that was run as a program
  uint64_t header_count = 0;
  uint64_t loader = 0;  // the loader's bias; 0: none, or it was run as a program
};

// Returns nothing when the process is gone or not readable.
std::optional<StartFacts> start_facts(pid_t pid);

// Returns the address of the loader's `r_debug`, from the program's DT_DEBUG; 0: the program has
// none, because it is static, not ready yet, or the loader itself.
uint64_t debug_address(const TargetMemory& memory, const StartFacts& facts);

// Returns the objects of all namespaces, in the loader's order. Empty when the loader has listed
// none yet, or is about to change the list. Reliable only while the process is held outside the
// loader.
std::vector<ListedObject> listed_objects(const TargetMemory& memory, uint64_t r_debug);

// The ELF files that a process runs, at the addresses in its loader's list.

// A file that a process has mapped, with the facts needed to find safe points.

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool holds(uint64_t address) const { return address >= begin && address < end; }
};

// A function in which a thread may hold a lock that loading a library needs.
struct Guarded {
  Range code;
  std::string name;
};

enum class Care {
  kFunctions,      // no thread may be stopped inside `guarded`
  kAll,            // nor anywhere in this object (the loader)
  kAllButWaiting,  // nor anywhere in it unless it waits in one of `waits` (an allocator's own
                   // thread, libmtrace.so at the exit of the process)
};

struct Object {
  std::string name;              // last component of its path
  Range file;                    // all of its segments
  std::vector<Range> code;       // the executable segments
  uint64_t eh_frame_header = 0;  // 0: none
  Range tables;                  // the segment that holds it
  Care care = Care::kFunctions;
  std::vector<Guarded> guarded;
  std::vector<Range> waits;   // functions that wait and hold no lock but that of their condition
  std::vector<Range> passes;  // functions that only call the program's code

  bool holds(uint64_t address) const {
    for (const Range& range : code) {
      if (range.holds(address)) return true;
    }
    return false;
  }
};

struct TargetObject {
  std::string name;   // last component of the path
  std::string inode;  // as in Mapping
  symbols::LoadedFile file;
  util::Descriptor descriptor;
  bool is_loader = false;
  bool listed = false;    // by the loader; false: executable memory that the program mapped by
                          // itself
  bool in_first = false;  // in the program's own namespace

  // Returns the address of an exported function; 0: no such function.
  uint64_t function(std::string_view name) const;
};

class TargetObjects {
 public:
  // Throws AttachError when the process may not be examined.
  explicit TargetObjects(pid_t pid);

  const std::vector<TargetObject>& all() const { return objects_; }
  // Where the list was read, and its content, to compare once the process is stopped.
  uint64_t r_debug() const { return r_debug_; }
  const std::vector<ListedObject>& list() const { return list_; }
  // Returns whether the process has mapped a file whose name contains `part`.
  bool maps(std::string_view part) const;
  // Returns whether a loader started the program.
  bool has_loader() const { return has_loader_; }

  // Throws AttachError unless the object's headers in memory equal those of its file.
  void require_same_file(const TargetObject& object) const;
  // Returns the address of a function for a thread of the process to call; 0: no such function.
  // Throws AttachError unless the address is executable and memory equals the file there.
  uint64_t callable(const TargetObject& object, std::string_view name) const;
  // Returns whether the file is mapped at `range`, readable and executable.
  bool is_code(const TargetObject& object, Range range) const;
  // Returns the file's bytes at an address; empty: it has none there.
  std::string file_bytes(const TargetObject& object, uint64_t address, size_t size) const;

 private:
  void read_list(pid_t pid, const StartFacts& facts);
  void add_listed(pid_t pid, const ListedObject& listed, uint64_t loader);
  void add_unlisted(pid_t pid);
  const Mapping* mapping_at(uint64_t address) const;

  std::vector<Mapping> mappings_;
  std::vector<ListedObject> list_;
  std::vector<TargetObject> objects_;
  TargetMemory memory_;
  uint64_t r_debug_ = 0;
  bool has_loader_ = false;
};

// Returns the file name of a path in /proc/PID/maps.
std::string mapped_name(const std::string& path);

}  // namespace mtrace::process
