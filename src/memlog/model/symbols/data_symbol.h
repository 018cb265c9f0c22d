// Names the variable at an address of a loaded file.
#pragma once

#include <gelf.h>

#include <cstdint>
#include <optional>
#include <string>

#include "model/symbols/module_symbols.h"

namespace mtrace::symbols {

// A file that a process has loaded.
struct DataFile {
  const SearchPath& where;  // of its symbols and debugging information, if these are separate
  std::string path;
  int descriptor;        // of the file; -1: nothing is known
  uint64_t map_address;  // where the beginning of the file is mapped
};

// Where a variable of a loaded file lies.

struct DataPlace {
  uint64_t address;
  // 0, or the thread pointer of the thread in whose storage the address is: only the program's own
  // file has its thread-local variables right below it.
  uint64_t thread_pointer = 0;

  bool in_thread() const { return thread_pointer != 0; }
};

// Returns the place as the file's symbols have it: an address before loading, or an offset in the
// segment of thread-local variables. Nothing: it is not in this file. `map_address`: where the
// beginning of the file is mapped.
std::optional<uint64_t> value_in_file(Elf* elf, uint64_t map_address, const DataPlace& place);

// Returns the variable that holds `place`, demangled, with "+0x10" behind it where that is not its
// beginning; empty: none is known. Takes the descriptor over. Reads the file, and where that has
// only dynamic symbols those of its debug file, in a child process.
std::string data_symbol_of(const DataFile& file, const DataPlace& place);

}  // namespace mtrace::symbols
