#include "life/option_names.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace mtrace::hook {
namespace {

constexpr char kPrefix[] = "MTRACE_";
constexpr size_t kPrefixLength = sizeof kPrefix - 1;
constexpr size_t kMostLetters = 32;  // longer names are near no option

constexpr const char* kNames[] = {
#define MTRACE_OPTION(member, variable, ...) variable,
#include "format/options.def"
#undef MTRACE_OPTION
};

// Damerau-Levenshtein distance (optimal string alignment): letters deleted, inserted, substituted,
// and neighbours swapped. Both words have at most kMostLetters.
unsigned distance(const char* a, size_t a_length, const char* b, size_t b_length) {
  uint8_t rows[3][kMostLetters + 1];  // for the letter before the last one, the last one, this one
  for (size_t j = 0; j <= b_length; ++j) rows[1][j] = static_cast<uint8_t>(j);
  for (size_t i = 1; i <= a_length; ++i) {
    uint8_t* const before = rows[(i + 2) % 3];
    const uint8_t* const last = rows[i % 3];
    uint8_t* const now = rows[(i + 1) % 3];
    now[0] = static_cast<uint8_t>(i);
    for (size_t j = 1; j <= b_length; ++j) {
      const int other = a[i - 1] != b[j - 1];
      int least = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + other});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) least = std::min(least, before[j - 2] + 1);
      now[j] = static_cast<uint8_t>(least);
    }
  }
  return rows[(a_length + 1) % 3][b_length];
}

}  // namespace

bool looks_like_option(const char* name, size_t length) {
  return length > kPrefixLength && memcmp(name, kPrefix, kPrefixLength) == 0;
}

bool is_option(const char* name, size_t length) {
  for (const char* option : kNames) {
    if (strlen(option) == length && memcmp(option, name, length) == 0) return true;
  }
  return false;
}

const char* nearest_option(const char* name, size_t length) {
  if (!looks_like_option(name, length) || length - kPrefixLength > kMostLetters) return nullptr;
  name += kPrefixLength;
  length -= kPrefixLength;
  const char* nearest = nullptr;
  unsigned least = ~0u;
  for (const char* option : kNames) {
    const char* const word = option + kPrefixLength;
    const size_t letters = strlen(word);
    const bool begins = length >= 3 && length < letters && memcmp(word, name, length) == 0;
    const unsigned far = begins ? 1 : distance(name, length, word, letters);
    if (far >= least || far > std::max<size_t>(1, letters / 3)) continue;
    least = far;
    nearest = option;
  }
  return nearest;
}

}  // namespace mtrace::hook
