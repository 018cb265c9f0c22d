#include "cli/view_options.h"

#include <fmt/format.h>

#include <cstdlib>

namespace mtrace::cli {
namespace {

using analyze::Order;

struct Key {
  const char* name;
  Order order;
};

constexpr Key kKeys[] = {
    {"bytes", Order::kBytes},
    {"blocks", Order::kBlocks},
    {"live", Order::kLive},
    {"allocs", Order::kAllocations},
    {"temporary", Order::kTemporary},
    {"lifetime", Order::kLifetime},
    {"slack", Order::kSlack},
    {"peak", Order::kPeak},
    {"age", Order::kAge},
    {"size", Order::kSize},
    {"failed", Order::kFailed},
    {"stack", Order::kStack},
};

}  // namespace

Order read_order(const char* command, const Arguments& arguments) {
  const std::string by = arguments.choice("--by");
  if (arguments.has("--peak")) {
    if (arguments.has("--by") && by != "peak") {
      throw UsageError(
          fmt::format("{}: --peak means --by peak: it cannot be used with another --by", command));
    }
    return Order::kPeak;
  }
  for (const Key& key : kKeys) {
    if (by == key.name) return key.order;
  }
  return Order::kBytes;
}

text::Style read_style(const Arguments& arguments, const Streams& streams) {
  text::Style style;
  const std::string colour = arguments.choice("--color");
  const char* no_colour = std::getenv("NO_COLOR");
  style.colour = colour == "always" || (colour == "auto" && streams.terminal &&
                                        (no_colour == nullptr || *no_colour == '\0'));
  style.units = streams.terminal;
  style.columns = streams.columns;
  style.oneline = arguments.has("--oneline");
  style.full_names = arguments.has("--full-names");
  style.header = !arguments.has("--no-header");
  return style;
}

}  // namespace mtrace::cli
