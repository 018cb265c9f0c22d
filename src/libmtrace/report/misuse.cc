#include "report/misuse.h"

#include "base/atomic.h"
#include "format/memlog.h"

namespace mtrace::report {
namespace {

constexpr const char* kNames[] = {"kind", "kinds", "size",      "release",   "duplicate",
                                  "note", "name",  "savepoint", "savepoints"};
static_assert(sizeof kNames / sizeof *kNames == kMisuses);

uint64_t g_counts[kMisuses];

}  // namespace

void count_misuse(Misuse cause) { fetch_add<uint64_t>(g_counts[static_cast<uint32_t>(cause)], 1); }

void write_misuse(Writer& out) {
  bool any = false;
  for (unsigned i = 0; i < kMisuses; ++i) {
    const uint64_t count = load(g_counts[i]);
    if (count == 0) continue;
    if (!any) out.text("# ").text(format::kKeyMisuse).put(':');
    out.put(' ').text(kNames[i]).put('=').number(count);
    any = true;
  }
  if (any) out.put('\n');
}

void reset_misuse() {
  for (uint64_t& count : g_counts) count = 0;
}

}  // namespace mtrace::report
