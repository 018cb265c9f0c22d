#include "json/sizes.h"

namespace mtrace::json {

void put_sizes(Value& out, const analyze::SizeHistogram& sizes) {
  out["bytes"] = sizes.bytes();
  out["blocks"] = sizes.blocks();
  out["average_bytes"] = sizes.average();
  Value classes = Value::array();
  for (size_t i = 0; i < analyze::SizeHistogram::kClasses; ++i) {
    const analyze::SizeClass& one = sizes.classes()[i];
    if (one.blocks == 0) continue;
    classes.push_back({{"least_bytes", analyze::SizeHistogram::least(i)},
                       {"most_bytes", analyze::SizeHistogram::most(i)},
                       {"blocks", one.blocks},
                       {"bytes", one.bytes}});
  }
  out["sizes"] = std::move(classes);
}

}  // namespace mtrace::json
