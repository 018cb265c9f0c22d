// Keeps the first rows of a table and counts the rest.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "analyze/row.h"

namespace mtrace::analyze {

struct Rest {
  size_t rows = 0;
  __int128 bytes = 0;  // net sum of 64-bit numbers, so it cannot overflow
};

// Sorts `rows` and keeps the first `limit` of each kind (0: all). Adds the others to the rest of
// their kind.
void keep_first(std::vector<Row>& rows, Order order, size_t limit,
                std::map<std::string, Rest>& rest);

}  // namespace mtrace::analyze
