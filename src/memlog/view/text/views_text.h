// Smaller views as text: how full pages are, memory over time, sizes of blocks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "view/analyze/region_history.h"
#include "view/heap/block_sizes.h"
#include "view/heap/heap_pages.h"
#include "view/text/style.h"

namespace mtrace::text {

// How full the pages of each block size are, as text.

// Returns a table with a row for each of the first `rows` sizes. `unit`: the bytes that a
// figure counts.
std::string pages_by_size_text(const std::vector<analyze::PagesOfSize>& sizes, size_t rows,
                               uint64_t unit);

// The memory of a process over its reports, as text.

// Returns tables of first, last, most and growth in KiB: of the process, of each kind of region and
// file, those with most resident memory first, and of each stack that maps. At most style.limit
// rows of each; 0: all.
std::string region_history_text(const analyze::RegionHistory& history, const Style& style);

// Histograms of block sizes as text.

// Returns "72,000 bytes in 1,000 blocks of 72 bytes on average".
std::string sizes_line(const analyze::SizeHistogram& sizes, const Style& style);

// Returns a line for each class from the least to the largest block: sizes, blocks, bytes, and a
// bar. A bar of n characters stands for 2^(n-1) to 2^n - 1 blocks.
std::string sizes_text(const analyze::SizeHistogram& sizes, const Style& style);

}  // namespace mtrace::text
