#include "view/text/views_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "util/text.h"
#include "view/text/style.h"

namespace mtrace::text {

namespace {

using analyze::SizeHistogram;

// "64..127", "1 KiB..".
std::string range(size_t number, const Style& style) {
  const uint64_t least = SizeHistogram::least(number);
  if (number < 2) return fmt::format("{}", least);
  if (!style.units || least < 1024) {
    return fmt::format("{}..{}", least, SizeHistogram::most(number));
  }
  return size_text(least, style) + "..";
}

}  // namespace

std::string sizes_line(const SizeHistogram& sizes, const Style& style) {
  return fmt::format("{} in {} of {} on average", size_text(sizes.bytes(), style),
                     count_text(sizes.blocks(), "block"), size_text(sizes.average(), style));
}

std::string sizes_text(const SizeHistogram& sizes, const Style& style) {
  if (sizes.blocks() == 0) return {};
  const auto& classes = sizes.classes();
  size_t first = 0;
  while (classes[first].blocks == 0) ++first;
  size_t last = SizeHistogram::kClasses - 1;
  while (classes[last].blocks == 0) --last;
  std::string out = coloured(fmt::format("  {:>22} {:>13} {:>15}", "block size", "blocks", "bytes"),
                             kFaint, style) +
                    '\n';
  for (size_t i = first; i <= last; ++i) {
    const auto bar = static_cast<size_t>(std::bit_width(classes[i].blocks));
    out += fmt::format(
        "  {:>22} {:>13} {:>15}", range(i, style), util::grouped(classes[i].blocks),
        style.units ? size_text(classes[i].bytes, style) : fmt::format("{}", classes[i].bytes));
    if (bar != 0) out += "  " + std::string(bar, '#');
    out += '\n';
  }
  return out;
}

}  // namespace mtrace::text
