// Where a loaded ELF file has an exported object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace mtrace::symbolize {

// The address that the exported symbol `name` of the ELF file behind `descriptor` has in a process
// that mapped the file's offset `map_offset` at `map_address`. Nothing if the file is no ELF file,
// exports no such symbol, or has no segment there. `size` gets the symbol's size.
std::optional<uint64_t> exported_address(int descriptor, const std::string& name,
                                         uint64_t map_address, uint64_t map_offset, uint64_t* size);

}  // namespace mtrace::symbolize
