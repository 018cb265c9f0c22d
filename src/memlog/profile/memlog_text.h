// The text of a memlog while it is written from something else than reports.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

namespace mtrace::profile {

class MemlogText {
 protected:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }
  // A field of an entry; 0 is left out.
  void field(const char* key, uint64_t value) {
    if (value != 0) fmt::format_to(std::back_inserter(out_), "\t{}={}", key, value);
  }

  std::string out_;
};

}  // namespace mtrace::profile
