#include "text/pages_by_size_text.h"

#include <fmt/format.h>

#include "profile/text.h"
#include "text/style.h"

namespace mtrace::text {

std::string pages_by_size_text(const std::vector<analyze::PagesOfSize>& sizes, size_t rows) {
  std::string out = fmt::format("\n{:>11} {:>13} {:>11} {:>11}  pages by size of their blocks\n",
                                "pages", "free in them", "blocks", "live");
  for (size_t i = 0; i < rows; ++i) {
    const analyze::PagesOfSize& one = sizes[i];
    out += fmt::format("{:>11} {:>13} {:>11} {:>11}  up to {} bytes\n", profile::grouped(one.pages),
                       kib_text(one.free()), profile::grouped(one.blocks), kib_text(one.live),
                       profile::grouped(one.largest));
  }
  return out;
}

}  // namespace mtrace::text
