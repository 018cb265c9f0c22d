// A report's header as text for people.
#pragma once

#include "model/profile/model.h"
#include "model/profile/reader.h"
#include "util/prelude.h"
#include "view/analyze/table.h"
#include "view/text/style.h"

namespace mtrace::text {

// Returns the command as one would type it; without one, the program. Safe to print.
std::string command_text(const profile::Header& header);

// Returns a few lines: the program, the report, its totals, what the library could not see; without
// resident_remark().
std::string header_text(const profile::Header& header, const Style& style);

// Returns "peak N bytes at TIME\n", or an empty text.
std::string peak_text(const profile::Header& header, const Style& style);

// Returns the header's notes about code that does not call the library, a line each.
std::string coverage_remarks(const profile::Header& header, const Style& style);
// Returns the first of them about the time since the library was loaded; empty: there is none.
std::string not_covered(const profile::Header& header);

// Returns what the library lost, a line each; with_frames: also how many walks ended early.
std::string lost_remarks(const profile::Header& header, const Style& style, bool with_frames);

// Returns what is shown of a file that was cut short; empty for a whole file.
std::string cut_short_remark(const profile::Header& header,
                             const std::optional<profile::CutShort>& cut, const Style& style);

// Why the heaps of malloc are larger than what is live in them. Bytes.
struct HeapUse {
  uint64_t resident = 0;
  uint64_t live = 0;              // requested
  uint64_t free = 0;              // of the resident ones
  std::optional<uint64_t> empty;  // whole pages without a live block; nothing: not glibc's malloc
  uint64_t arenas = 0;            // of threads
  uint64_t arenas_empty = 0;      // of the empty pages
  std::string holder;             // the function whose blocks keep most pages; empty: not known
  uint64_t held = 0;              // that they keep
  std::string process;            // PID, for memlog map

  void add_holder(const std::string& function, uint64_t bytes) {
    if (bytes <= held) return;
    held = bytes;
    holder = function;
  }
};
// Returns it in one line, without the line's end.
std::string heap_text(const HeapUse& use, const Style& style);

// The functions whose blocks keep pages of malloc's heaps resident, by stack id.
using Holders = std::map<uint64_t, std::string>;
// Adds those of stacks in `table`, all or some of a report's.
void add_holders(const profile::Header& header, const analyze::Table& table, const Style& style,
                 Holders& holders);

// Returns what the report tells of it; nothing: not much is free, or the library could not tell.
std::optional<HeapUse> heap_use(const profile::Header& header, const Holders& holders);

// Returns what the library says of malloc's heaps and of resident memory that is not malloc's, or a
// hint at what may hold the memory when far more is resident than malloc holds, now or at the two
// peaks; else empty.
std::string resident_remark(const profile::Header& header, const Holders& holders,
                            const Style& style);

}  // namespace mtrace::text
