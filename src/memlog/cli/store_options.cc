#include "cli/store_options.h"

#include <fmt/format.h>

#include "text/quantity.h"

namespace mtrace::cli {

fleet::StoreLimits read_store_limits(const std::string& command, const Arguments& arguments) {
  constexpr uint64_t kLeastDisk = 1 << 20;
  constexpr uint64_t kMillisecond = 1'000'000;
  constexpr uint64_t kMostAge = uint64_t{100} * 365 * 24 * 3600 * 1000;  // milliseconds
  fleet::StoreLimits limits;
  if (arguments.has("--max-disk")) {
    const std::string text = arguments.value("--max-disk");
    const auto size = text::read_size(text);
    if (!size || *size < kLeastDisk) {
      throw UsageError(
          fmt::format("{}: --max-disk {} is not a size from 1M, like 50G", command, text));
    }
    limits.bytes = *size;
  }
  if (arguments.has("--max-age")) {
    const std::string text = arguments.value("--max-age");
    const auto age = text::read_duration(text, 1000);
    if (!age || *age == 0 || *age > kMostAge) {
      throw UsageError(fmt::format("{}: --max-age {} is not a time like 30d", command, text));
    }
    limits.age = *age * kMillisecond;
  }
  return limits;
}

}  // namespace mtrace::cli
