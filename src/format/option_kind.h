// The types of the options in format/options.def.
#pragma once

#include <cstdint>

namespace mtrace::format {

enum class OptionKind : uint8_t {
  kNumber,    // minimum..maximum, decimal; or a word if it has one as `values`
  kBytes,     // minimum..maximum, decimal, or a smaller number followed by K, M or G
  kChoice,    // one of the values
  kText,      // any text
  kPatterns,  // any text but an empty one
  kSignal,    // a signal's name or number, or none
  kMoment,    // none, peak, +BYTES, rss:BYTES or rss:N%
  kByte,      // 0..255, decimal or 0x, zero, or none
};

}  // namespace mtrace::format
