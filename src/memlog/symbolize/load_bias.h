// Where a mapped ELF file lies.
#pragma once

#include <gelf.h>

#include <cstdint>
#include <optional>

namespace mtrace::symbolize {

// What has to be added to the addresses in the file, whose offset `map_offset` is mapped at
// `map_address`. Nothing if it has no segment there.
std::optional<uint64_t> load_bias(Elf* elf, uint64_t map_address, uint64_t map_offset);

}  // namespace mtrace::symbolize
