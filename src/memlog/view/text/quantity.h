// Reads sizes, times and ranges as people type them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "view/analyze/filter.h"

namespace mtrace::text {

// Reads "64K", "1.5M", "4096" as bytes. K, M, G and T are powers of 1024, and so are KiB and the
// like.
std::optional<uint64_t> read_size(std::string_view text);

// Reads "250ms", "10s", "5min", "2h", "1d", "1.5s" as milliseconds. A number without unit counts
// units of `unit` milliseconds.
std::optional<uint64_t> read_duration(std::string_view text, uint64_t unit);

// Reads "A..B", "A..", "..B" or "A", each end with `read`. Rejects a range with B below A.
template <typename Read>
std::optional<analyze::Span> read_span(std::string_view text, Read read) {
  const size_t dots = text.find("..");
  const std::string_view from = text.substr(0, dots);
  const std::string_view to = dots == std::string_view::npos ? from : text.substr(dots + 2);
  analyze::Span span;
  if (from.empty() && to.empty()) return std::nullopt;
  if (!from.empty()) {
    const auto least = read(from);
    if (!least) return std::nullopt;
    span.least = *least;
  }
  if (!to.empty()) {
    const auto most = read(to);
    if (!most) return std::nullopt;
    span.most = *most;
  }
  if (span.most < span.least) return std::nullopt;
  return span;
}

}  // namespace mtrace::text
