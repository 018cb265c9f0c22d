// Names the variable at an address of a loaded file.
#pragma once

#include <cstdint>
#include <string>

namespace mtrace::symbolize {

// Returns the variable that holds `address`, demangled, with "+0x10" behind it where the address is
// not its beginning; empty: none is known. `map_address`: where the beginning of the file is
// mapped. Takes the descriptor over; empty also when it is -1. Reads the file in a child process.
std::string data_symbol_of(int descriptor, uint64_t map_address, uint64_t address);

}  // namespace mtrace::symbolize
