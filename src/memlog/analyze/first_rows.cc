#include "analyze/first_rows.h"

namespace mtrace::analyze {

void keep_first(std::vector<Row>& rows, Order order, size_t limit,
                std::map<std::string, Rest>& rest) {
  sort(rows, order);
  if (limit == 0) return;
  std::map<std::string, size_t> kept;
  std::erase_if(rows, [&](const Row& row) {
    if (kept[row.kind]++ < limit) return false;
    Rest& more = rest[row.kind];
    ++more.rows;
    more.bytes += row.bytes;
    return true;
  });
}

}  // namespace mtrace::analyze
