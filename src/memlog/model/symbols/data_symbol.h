// The variable at an address of a loaded file: its name, where DWARF says that it is declared, and
// what types pointers lead to from it.
#pragma once

#include <gelf.h>

#include "model/symbols/module_symbols.h"
#include "util/prelude.h"

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

struct DataType {
  std::string source;  // "app.cc:41"; empty: not known
  // Of the variable, then of the block that its pointer points to, and so on, as far as the types
  // in the program tell: not through void*, a union or a cast.
  std::vector<std::string> types;
};

// Describes the variable that holds `place`. `offsets`: of the pointer in each block on the way,
// the first block being what the variable points to. Takes the descriptor over. Reads the file, or
// its debug file, in a child process, for at most ten seconds of processor time; then, and without
// debugging information, nothing is known.
DataType data_type_of(const DataFile& file, const DataPlace& place,
                      const std::vector<uint64_t>& offsets);

}  // namespace mtrace::symbols
