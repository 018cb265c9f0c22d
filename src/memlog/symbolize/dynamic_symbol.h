// Finds an exported object of a loaded ELF file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mtrace::symbolize {

// Returns the address of the exported symbol `name` in a process that has mapped offset
// `map_offset` of the file behind `descriptor` at `map_address`. Stores the symbol's size in bytes
// in `size`. Returns nothing when the file is no ELF file, exports no such symbol, or has no
// segment there.
std::optional<uint64_t> exported_address(int descriptor, const std::string& name,
                                         uint64_t map_address, uint64_t map_offset, uint64_t* size);

}  // namespace mtrace::symbolize
