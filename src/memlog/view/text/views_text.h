// Histograms of block sizes as text.
#pragma once

#include <string>

#include "view/heap/block_sizes.h"
#include "view/text/style.h"

namespace mtrace::text {

// Returns "72,000 bytes in 1,000 blocks of 72 bytes on average".
std::string sizes_line(const analyze::SizeHistogram& sizes, const Style& style);

// Returns a line for each class from the least to the largest block: sizes, blocks, bytes, and a
// bar. A bar of n characters stands for 2^(n-1) to 2^n - 1 blocks.
std::string sizes_text(const analyze::SizeHistogram& sizes, const Style& style);

}  // namespace mtrace::text
