// Where DWARF says that a variable is declared, and what types pointers lead to from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/symbols/data_symbol.h"

namespace mtrace::symbols {

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
