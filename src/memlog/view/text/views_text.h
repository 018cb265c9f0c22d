// Smaller views as text: how full pages are, sizes of blocks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "view/heap/block_sizes.h"
#include "view/heap/heap_pages.h"
#include "view/text/style.h"

namespace mtrace::text {

// How full the pages of each block size are, as text.

// Returns a table with a row for each of the first `rows` sizes. `unit`: the bytes that a
// figure counts.
std::string pages_by_size_text(const std::vector<analyze::PagesOfSize>& sizes, size_t rows,
                               uint64_t unit);

// Histograms of block sizes as text.

// Returns "72,000 bytes in 1,000 blocks of 72 bytes on average".
std::string sizes_line(const analyze::SizeHistogram& sizes, const Style& style);

// Returns a line for each class from the least to the largest block: sizes, blocks, bytes, and a
// bar. A bar of n characters stands for 2^(n-1) to 2^n - 1 blocks.
std::string sizes_text(const analyze::SizeHistogram& sizes, const Style& style);

}  // namespace mtrace::text
