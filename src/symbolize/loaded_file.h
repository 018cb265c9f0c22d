// What an ELF file looks like in a process that has it mapped.
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

struct LoadedFile {
  Extent all;                    // from the first segment to the end of the last
  std::vector<Extent> code;      // executable segments
  uint64_t eh_frame_header = 0;  // address; 0: none
  std::vector<ExportedFunction> functions;
};

// Of the file behind `descriptor`, whose offset `map_offset` is mapped at `map_address`. Nothing if
// it is no ELF file for this processor, or has no segment there.
std::optional<LoadedFile> loaded_file(int descriptor, uint64_t map_address, uint64_t map_offset);

}  // namespace mtrace::symbolize
