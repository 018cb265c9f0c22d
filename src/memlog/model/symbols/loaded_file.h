// The layout of an ELF file in a process that has mapped it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtrace::symbols {

struct Extent {
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct ExportedFunction {
  std::string name;
  Extent code;
};

// A part of the file and its addresses in memory.
struct FilePart {
  Extent memory;
  uint64_t offset = 0;  // in the file
};

struct LoadedFile {
  uint64_t bias = 0;               // what is added to the file's addresses
  Extent all;                      // from the first segment to the end of the last
  std::vector<Extent> code;        // executable segments
  std::vector<FilePart> segments;  // without the parts that are only zeroed
  std::vector<FilePart> marks;     // headers and notes, which tell the file from others
  uint64_t eh_frame_header = 0;    // address; 0: none
  std::vector<ExportedFunction> functions;
};

// Reads the file behind `descriptor`, whose offset `map_offset` is mapped at `map_address`. Returns
// nothing when it is no ELF file for this processor, or has no segment there.
std::optional<LoadedFile> loaded_file(int descriptor, uint64_t map_address, uint64_t map_offset);
// Like loaded_file(), for a file loaded with `bias` added to its addresses.
std::optional<LoadedFile> loaded_file_at(int descriptor, uint64_t bias);

// Finds allocators that are linked into a file, by its symbol table: calls inside the file go past
// libmtrace.so.

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

}  // namespace mtrace::symbols
