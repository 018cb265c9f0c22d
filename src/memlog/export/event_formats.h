// Event logs in the formats of other tools, with the true times of each block.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "analyze/table.h"
#include "export/event_stream.h"
#include "export/stacks.h"

namespace mtrace::exporting {

// Gets the text part by part.
using WriteText = std::function<void(std::string_view text)>;

// heaptrack's data file: each allocation and free with its millisecond, in their order.
void heaptrack_of_events(const EventStream& stream, const Stacks& stacks,
                         const analyze::Table& table, const WriteText& write);

// Massif's format: up to 100 snapshots at equal distances, and the peak.
std::string massif_of_events(const EventStream& stream, const Stacks& stacks);

// Chrome's trace event format (Trace Event Format, JSON object format), for Perfetto and
// chrome://tracing: live bytes, also of the ten largest functions, what is allocated and freed, and
// resident memory as counters at up to 2,000 moments; threads, notes and reports; and the lives of
// the 1,000 largest blocks. The first location of `stacks` must be the responsible one.
void chrome_trace(const EventStream& stream, const Stacks& stacks, const WriteText& write);

// Firefox Profiler's processed profile format, version 54: all allocations and frees as native
// allocations, live bytes as its memory track. Throws std::runtime_error for more than
// kMostFirefoxEvents.
constexpr uint64_t kMostFirefoxEvents = 10'000'000;
void firefox_profile(const EventStream& stream, const Stacks& stacks, const analyze::Table& table,
                     const WriteText& write);

}  // namespace mtrace::exporting
