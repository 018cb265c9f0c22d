// The first rows of a table, and how many there were besides.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "analyze/row.h"

namespace mtrace::analyze {

struct Rest {
  size_t rows = 0;
  __int128 bytes = 0;  // net; of 64-bit numbers: cannot overflow
};

// Sorts `rows`. Those of a kind beyond its first `limit` (0: all are kept) go, and are added to the
// rest of the kind.
void keep_first(std::vector<Row>& rows, Order order, size_t limit,
                std::map<std::string, Rest>& rest);

}  // namespace mtrace::analyze
