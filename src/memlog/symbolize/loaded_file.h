// The layout of an ELF file in a process that has mapped it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtrace::symbolize {

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

}  // namespace mtrace::symbolize
