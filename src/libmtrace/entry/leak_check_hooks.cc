// LeakSanitizer's interface (<sanitizer/lsan_interface.h>), for programs that declare it weak. The
// hooks call the next definition if there is one, a sanitizer's or the program's own: under a
// sanitizer this library records nothing, and only passes on.
#include <cstdint>
#include <cstring>

#include "base/table_file.h"
#include "ledger/root_regions.h"
#include "ledger/ticks.h"
#include "life/environment.h"
#include "life/exit_hold.h"
#include "life/lifecycle.h"
#include "next/export.h"
#include "next/next_functions.h"
#include "record/call_stack.h"
#include "record/tracker.h"

namespace mtrace::hook {
namespace {

// The value of LSAN_OPTIONS as the program was started with it; nullptr: it is not set.
const char* lsan_options() {
  static const char kVariable[] = "LSAN_OPTIONS=";
  constexpr size_t kLength = sizeof kVariable - 1;
  char** const environment = initial_arguments().envp;
  if (environment == nullptr) return nullptr;
  for (char** one = environment; *one != nullptr; ++one) {
    if (strncmp(*one, kVariable, kLength) == 0) return *one + kLength;
  }
  return nullptr;
}

// Whether a setting begins at `at`: at the start of `all`, or after a separator.
bool begins_setting(const char* all, const char* at) {
  return at == all || strchr(":, ", at[-1]) != nullptr;
}

// Exit status of a program with leaks: LSAN_OPTIONS=exitcode=N, or 23; 0: the program goes on.
int leak_status() {
  constexpr int kUsual = 23;
  static const char kName[] = "exitcode=";
  const char* const options = lsan_options();
  if (options == nullptr) return kUsual;
  for (const char* at = options; (at = strstr(at, kName)) != nullptr; ++at) {
    if (!begins_setting(options, at)) continue;
    int status = 0;
    const char* digit = at + sizeof kName - 1;
    for (; *digit >= '0' && *digit <= '9' && status < 256; ++digit) {
      status = 10 * status + *digit - '0';
    }
    return status & 0xff;  // as the kernel keeps it
  }
  return kUsual;
}

void ignore_more(int change) {
  if (!counting()) return;
  this_slot();
  if (change < 0 && t_thread.ignoring == 0) return;
  t_thread.ignoring += static_cast<uint32_t>(change);
  choose_walks(t_thread, t_thread.slot);
}

bool has_leaks() {
  const uint32_t found = counting() ? check_leaks() : format::kLedgerUnchecked;
  return found != 0 && found != format::kLedgerUnchecked;
}

}  // namespace
}  // namespace mtrace::hook

using namespace mtrace;
using namespace mtrace::hook;

MTRACE_EXPORT void __lsan_ignore_object(const void* object) noexcept {
  start();
  if (g_next.lsan_ignore_object != nullptr) g_next.lsan_ignore_object(object);
  if (sys::g_table_header == nullptr || !counting()) return;
  const auto address = reinterpret_cast<uintptr_t>(object);
  if (!ledger::g_ledger.ignored.put(address, ledger::ticks_now())) {
    sys::count_loss(&format::LedgerHeader::lost_ignored);
  }
}

MTRACE_EXPORT void __lsan_register_root_region(const void* begin, size_t size) noexcept {
  start();
  if (g_next.lsan_register_root != nullptr) g_next.lsan_register_root(begin, size);
  if (!counting()) return;
  if (!ledger::g_root_regions.put(reinterpret_cast<uintptr_t>(begin), size)) {
    sys::count_loss(&format::LedgerHeader::lost_root_regions);
  }
}

MTRACE_EXPORT void __lsan_unregister_root_region(const void* begin, size_t size) noexcept {
  start();
  if (g_next.lsan_unregister_root != nullptr) g_next.lsan_unregister_root(begin, size);
  ledger::g_root_regions.take(reinterpret_cast<uintptr_t>(begin), size);
}

MTRACE_EXPORT void __lsan_disable() noexcept {
  start();
  if (g_next.lsan_disable != nullptr) g_next.lsan_disable();
  ignore_more(1);
}

MTRACE_EXPORT void __lsan_enable() noexcept {
  start();
  if (g_next.lsan_enable != nullptr) g_next.lsan_enable();
  ignore_more(-1);
}

// Ends the program if it has leaks. Takes the place of the check at exit.
MTRACE_EXPORT void __lsan_do_leak_check() noexcept {
  start();
  if (g_next.lsan_check != nullptr) return g_next.lsan_check();
  const bool leaks = has_leaks();
  skip_exit_hold();
  const int status = leaks ? leak_status() : 0;
  if (status != 0) leave(status);
}

MTRACE_EXPORT int __lsan_do_recoverable_leak_check() noexcept {
  start();
  if (g_next.lsan_recoverable_check != nullptr) return g_next.lsan_recoverable_check();
  return has_leaks() ? 1 : 0;
}
