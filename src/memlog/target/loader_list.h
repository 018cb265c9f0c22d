// The objects that a process's dynamic loader has listed, read from the process's memory. What else
// is mapped, a second copy of a library too, is data: the process does not run it as a library.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "target/target_memory.h"

namespace mtrace::target {

struct ListedObject {
  uint64_t bias = 0;     // what the object's addresses are relative to
  uint64_t dynamic = 0;  // address of its dynamic section
  bool in_first = true;  // in the program's own namespace, not in one of dlmopen
  bool operator==(const ListedObject&) const = default;
};

// What the kernel told the program at its start.
struct StartFacts {
  uint64_t program_headers = 0;  // of the program, or of the loader when that was run as a program
  uint64_t header_count = 0;
  uint64_t loader = 0;  // the loader's bias; 0: none, or it was run as a program
};

// Nothing: the process is gone, or not to be read.
std::optional<StartFacts> start_facts(pid_t pid);

// Address of the loader's `r_debug`, from the program's DT_DEBUG. 0: it has none, because it is
// static, not ready yet, or the loader itself.
uint64_t debug_address(const TargetMemory& memory, const StartFacts& facts);

// The objects of all namespaces, in the loader's order. Empty: the loader has listed none yet, or
// is about to change its list. Certain only while the process is held outside the loader.
std::vector<ListedObject> listed_objects(const TargetMemory& memory, uint64_t r_debug);

}  // namespace mtrace::target
