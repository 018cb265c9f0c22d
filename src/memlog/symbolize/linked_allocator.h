// Finds allocators that are linked into a file, by its symbol table: calls inside the file go past
// libmtrace.so.
#pragma once

#include <cstdint>
#include <string>

namespace mtrace::symbolize {

// Returns a function of an allocator that the ELF file behind `descriptor` contains, such as
// "_rjem_malloc"; empty: none that is known, or the file has no symbol table. A function that a
// shared library exports does not count: calls by its name are led to libmtrace.so. Untrusted
// files: call it through linked_allocator_of().
std::string linked_allocator(int descriptor);

// The same in a child process (worker.h). Takes the descriptor over; empty also when it is -1.
std::string linked_allocator_of(int descriptor);

// Returns how much of the resident memory may be such an allocator's, because it is not malloc's:
// "; of 50 resident bytes 40 (80.0%) are not malloc's"; empty: no memory.
std::string uncovered_share(uint64_t resident, uint64_t live);

}  // namespace mtrace::symbolize
