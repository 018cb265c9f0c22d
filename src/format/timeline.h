// The timeline of a process: what memlog run samples from its ledger. doc/memlog-format.md is the
// same in prose.
//
//   file    = "# timeline 1\n" *meta columns *sample "# end\n"
//   meta    = "# " key ": " value "\n"        ; program, pid, started as in a memlog; interval
//   columns = "# columns: milliseconds live blocks resident allocations\n"
//   sample  = number 4("\t" number) "\n"      ; decimal, without leading zeros
//
// Each sample stands for the `interval` that ends at its time, in milliseconds since `started`;
// times increase. live: bytes that malloc held, the most in the interval; blocks: at that moment;
// resident: bytes of the process in memory, the most in the interval; allocations: calls of malloc
// and its kin in the interval. So a coarser timeline keeps every peak that a finer one has.
#pragma once

#include <cstddef>

namespace mtrace::format {

inline constexpr char kTimelineMagic[] = "# timeline 1";
inline constexpr char kTimelineColumns[] =
    "# columns: milliseconds live blocks resident allocations";
inline constexpr char kTimelineSuffix[] = ".timeline";
inline constexpr char kKeyInterval[] = "interval";  // N ms
inline constexpr size_t kMostSamples = 1024;  // that memlog writes to a file; a reader accepts more

}  // namespace mtrace::format
