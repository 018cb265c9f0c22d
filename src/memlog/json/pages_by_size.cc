#include "json/pages_by_size.h"

namespace mtrace::json {

Value pages_by_size(const std::vector<analyze::PagesOfSize>& sizes, size_t rows) {
  Value out = Value::array();
  for (size_t i = 0; i < rows; ++i) {
    const analyze::PagesOfSize& one = sizes[i];
    out.push_back({{"largest_bytes", one.largest},
                   {"blocks", one.blocks},
                   {"live_bytes", one.live},
                   {"pages", one.pages},
                   {"free_bytes", one.free()}});
  }
  return out;
}

}  // namespace mtrace::json
