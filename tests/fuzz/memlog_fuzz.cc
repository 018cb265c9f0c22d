// Files that claim to be memlogs. What the strict reader accepts must come through the writer
// unchanged, and every view must manage with it.
#include <stddef.h>
#include <stdint.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "model/profile/reader.h"
#include "model/profile/writer.h"
#include "util/error.h"
#include "view/analyze/table.h"
#include "view/json/views.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mtrace;
  const std::string text(reinterpret_cast<const char*>(data), size);
  profile::Memlog memlog;
  try {
    memlog = profile::read("f", text);
  } catch (const util::FormatError&) {
    return 0;
  }
  const std::string written = profile::write(memlog);
  const profile::Memlog again = profile::read("written", written);
  if (profile::write(again) != written) __builtin_trap();
  profile::KnownStacks known;
  profile::read("first", written, &known);
  if (profile::write(profile::read("next", written, &known)) != written) __builtin_trap();

  try {
    analyze::sum_processes({memlog});
    const std::vector<analyze::ProcessSum> twice = analyze::sum_processes({memlog, again});
    __builtin_trap();  // one report twice
  } catch (const std::runtime_error&) {
  }
  for (const analyze::FrameRange range : {analyze::FrameRange{}, {1, 1}, {1, 3}, {2, 0}}) {
    analyze::Table merged;
    try {
      merged.merge(memlog, range);
      merged.merge(again, range);
    } catch (const std::runtime_error&) {
      continue;  // a sum does not fit
    }
    std::vector<analyze::Row> rows = merged.rows();
    for (int order = 0; order <= static_cast<int>(analyze::Order::kStack); ++order) {
      analyze::sort(rows, static_cast<analyze::Order>(order));
    }
    analyze::gross_growth(rows);
    json::text(json::report(memlog, merged, 2));
  }
  analyze::Table own = analyze::Table::of(memlog);
  json::text(json::report(memlog, own, 0));
  return 0;
}
