#include "ledger/kind_names.h"

#include <cstdint>
#include <cstring>

#include "base/atomic.h"
#include "base/table_file.h"
#include "ledger/resource_table.h"

namespace mtrace::ledger {
namespace {

constexpr unsigned kMost = ResourceTable::kMostKinds;
static_assert(format::kLedgerKinds == kMost && format::kLedgerKindName == kMostKindName + 1);
// A name is written to a private copy and published by one compare-and-swap, so that no thread
// waits for a writer. The loser's copy is wasted: there is room for some.
constexpr uint32_t kCopies = 256;

char g_copies[kCopies][kMostKindName + 1];
uint32_t g_used_copies = 0;
uint32_t g_kinds[kMost];  // number of the copy + 1, 0: none yet; filled from the front

bool is_kind(uint32_t copy, const char* name) { return strcmp(g_copies[copy - 1], name) == 0; }

}  // namespace

bool is_kind_name(const char* name) {
  if (name == nullptr) return false;
  size_t length = 0;
  for (; name[length] != '\0'; ++length) {
    const char c = name[length];
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!good || length == kMostKindName) return false;
  }
  return length != 0;
}

unsigned find_kind(const char* name) {
  for (unsigned i = 0; i < kMost; ++i) {
    const uint32_t copy = load_acquire(g_kinds[i]);
    if (copy == 0) break;
    if (is_kind(copy, name)) return i + 1;
  }
  return 0;
}

unsigned find_or_add_kind(const char* name) {
  uint32_t own = 0;
  for (unsigned i = 0; i < kMost; ++i) {
    uint32_t copy = load_acquire(g_kinds[i]);
    if (copy == 0) {
      if (own == 0) {
        if (load(g_used_copies) >= kCopies) return 0;
        const uint32_t place = fetch_add(g_used_copies, 1u);
        if (place >= kCopies) return 0;
        strncpy(g_copies[place], name, kMostKindName);
        own = place + 1;
      }
      if (compare_exchange(g_kinds[i], copy, own)) {
        if (sys::g_table_header != nullptr) show_kinds(*sys::g_table_header);
        return i + 1;
      }
    }
    if (is_kind(copy, name)) return i + 1;  // the loser compares its name with the winner's
  }
  return 0;
}

void show_kinds(format::LedgerHeader& header) {
  for (unsigned number = 1; const char* name = kind_name(number); ++number) {
    strncpy(header.kinds[number - 1], name, kMostKindName);
  }
}

const char* kind_name(unsigned number) {
  const uint32_t copy = number >= 1 && number <= kMost ? load_acquire(g_kinds[number - 1]) : 0;
  return copy != 0 ? g_copies[copy - 1] : nullptr;
}

}  // namespace mtrace::ledger
