#include "ledger/kind_names.h"

#include <cstring>

#include "base/atomic.h"
#include "base/table_file.h"
#include "base/turn.h"
#include "ledger/resource_table.h"

namespace mtrace::ledger {
namespace {

constexpr unsigned kMost = ResourceTable::kMostKinds;
static_assert(format::kLedgerKinds == kMost && format::kLedgerKindName == kMostKindName + 1);

char g_names[kMost][kMostKindName + 1];
unsigned g_count = 0;  // names that are complete
uint64_t g_turn = 0;   // to add one

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
  const unsigned count = load_acquire(g_count);
  for (unsigned i = 0; i < count; ++i) {
    if (strcmp(g_names[i], name) == 0) return i + 1;
  }
  return 0;
}

unsigned find_or_add_kind(const char* name) {
  if (const unsigned known = find_kind(name)) return known;
  const sys::Turn turn(g_turn);
  if (!turn) return 0;
  if (const unsigned known = find_kind(name)) return known;
  if (g_count == kMost) return 0;
  // What a thread that vanished here has left of a name is overwritten.
  strncpy(g_names[g_count], name, kMostKindName);
  store_release(g_count, g_count + 1);
  if (sys::g_table_header != nullptr) show_kinds(*sys::g_table_header);
  return g_count;
}

void show_kinds(format::LedgerHeader& header) {
  for (unsigned number = 1; const char* name = kind_name(number); ++number) {
    strncpy(header.kinds[number - 1], name, kMostKindName);
  }
}

const char* kind_name(unsigned number) {
  return number >= 1 && number <= load_acquire(g_count) ? g_names[number - 1] : nullptr;
}

}  // namespace mtrace::ledger
