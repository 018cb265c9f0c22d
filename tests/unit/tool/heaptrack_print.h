// What heaptrack's own reader says of an exported file.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tool_test.h"

namespace mtrace::test {

// Numbers of stacks, largest first.
inline std::string sorted(std::vector<uint64_t> numbers) {
  std::erase(numbers, 0u);
  std::sort(numbers.rbegin(), numbers.rend());
  return fmt::format("{}\n", fmt::join(numbers, " "));
}

inline std::string heaptrack_print(const std::string& options) {
  return shell("heaptrack_print --disable-builtin-suppressions -a0 -p0 -T0 " + options);
}

// What heaptrack finds in `file` of each stack.
inline std::string in_heaptrack(const std::string& file, const std::string& cost) {
  heaptrack_print(fmt::format("--flamegraph-cost-type {0} -F {1}.{0} {1} >/dev/null", cost,
                              shell_quoted(file)));
  return shell("awk '$NF > 0 {{ print $NF }}' {}.{} | sort -nr | paste -sd ' '", file, cost);
}

}  // namespace mtrace::test
