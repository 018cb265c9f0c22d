// Computes the load bias of a mapped ELF file.
#pragma once

#include <gelf.h>

#include <cstdint>
#include <optional>

namespace mtrace::symbolize {

// Returns the number to add to addresses in the file, given that its offset `map_offset` is mapped
// at `map_address`. Returns nothing when the file has no segment there.
std::optional<uint64_t> load_bias(Elf* elf, uint64_t map_address, uint64_t map_offset);

}  // namespace mtrace::symbolize
