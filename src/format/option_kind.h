// What the values of an option in format/options.def are.
#pragma once

#include <cstdint>

namespace mtrace::format {

enum class OptionKind : uint8_t {
  kNumber,    // minimum..maximum, decimal
  kBytes,     // minimum..maximum, decimal, or a smaller number and K, M or G
  kChoice,    // one of the values
  kText,      // anything
  kPatterns,  // anything but nothing
  kSignal,    // a signal's name or number, or none
  kByte,      // 0..255, decimal or 0x, zero, or none
};

}  // namespace mtrace::format
