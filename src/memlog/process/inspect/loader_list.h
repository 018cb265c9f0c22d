// Reads the dynamic loader's list of loaded objects from a process's memory. Every other mapping,
// even a second copy of a library, is data: the process does not run it as a library.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "process/inspect/target_memory.h"

namespace mtrace::process {

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

}  // namespace mtrace::process
