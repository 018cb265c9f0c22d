// Names the variable at an address of a loaded file.
#pragma once

#include <cstdint>
#include <string>

#include "symbolize/data_place.h"

namespace mtrace::symbolize {

// Returns the variable that holds `place`, demangled, with "+0x10" behind it where that is not its
// beginning; empty: none is known. `map_address`: where the beginning of the file is
// mapped. Takes the descriptor over; empty also when it is -1. Reads the file in a child process.
std::string data_symbol_of(int descriptor, uint64_t map_address, const DataPlace& place);

}  // namespace mtrace::symbolize
