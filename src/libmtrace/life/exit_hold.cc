
#include <algorithm>
#include <cstring>

#include "base/atomic.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/process.h"
#include "base/table_file.h"
#include "base/writer.h"
#include "format/ledger.h"
#include "life/lifecycle.h"
#include "life/options.h"
#include "report/status.h"

namespace mtrace::life {
namespace {

using format::ExitHold;

constexpr uint64_t kSecond = 1'000'000'000;  // nanoseconds
// Between two reads of the word that memlog writes: an eighth of the time waited, within these.
constexpr uint64_t kLeastPause = kSecond / 10'000;
constexpr uint64_t kMostPause = kSecond / 100;
constexpr uint64_t kUntaken = 60 * kSecond;  // memlog may look at other processes first
constexpr uint64_t kMost = 600 * kSecond;

next::MainFunction* g_main = nullptr;

// False of a zombie: whoever started memlog may reap it late, or never.
bool is_running(uint32_t memlog) {
  char path[32];
  char text[256];
  Writer(path, sizeof path).text("/proc/").number(memlog).text("/stat").finish();
  // "PID (NAME) STATE ..."
  const char* const name_end =
      base::read_file(path, text, sizeof text) == 0 ? nullptr : strrchr(text, ')');
  return name_end == nullptr ? base::task_exists(memlog) : strncmp(name_end, ") Z", 3) != 0;
}

const uint32_t& word_of(const ExitHold& hold) { return reinterpret_cast<const uint32_t&>(hold); }

}  // namespace

// memlog must recognise this frame: a thread in its callees runs the program's code.
MTRACE_EXPORT_AS_IT_IS int mtrace_held_main(int count, char** arguments, char** environment) {
  const int status = g_main(count, arguments, environment);
  hold_exit();
  return status;
}

// memlog takes a thread in this function to be at a safe point (format/attach_protocol.h), so the
// system call is made in it. No wake-up is needed: the pause is short, and memlog may be killed.
MTRACE_EXPORT [[gnu::noinline]] void mtrace_hold_exit(ExitHold* hold, uint32_t memlog) noexcept {
  const uint64_t begun = base::monotonic_time();
  for (;;) {
    ExitHold now = load_acquire(*hold);
    const uint64_t waited = base::monotonic_time() - begun;
    if (now == ExitHold::kOver) return;
    const bool late = waited > (now == ExitHold::kWaits ? kUntaken : kMost);
    // If memlog takes the word at this moment, the exchange fails and the next round waits.
    if (late || !is_running(memlog))
      compare_exchange(*hold, now, ExitHold::kOver);
    else
      base::wait_here(word_of(*hold), static_cast<uint32_t>(now),
                      std::clamp(waited / 8, kLeastPause, kMostPause));
  }
}

namespace {

// Returns the header that has the words to wait on; nullptr: do not wait.
format::LedgerHeader* header_to_wait_in() {
  if (g_options.hold_exit == 0 || !is_own_process()) return nullptr;
  if (mtrace_status_block.mode != format::Mode::kActive) return nullptr;
  // After a failed exec the file has no name, and memlog would not find it.
  return base::table_file_has_name() ? base::g_table_header : nullptr;
}

void hold(ExitHold& word, ExitHold from) {
  compare_exchange(word, from, ExitHold::kWaits);
  mtrace_hold_exit(&word, g_options.hold_exit);
}

}  // namespace

void hold_exit() {
  format::LedgerHeader* const header = header_to_wait_in();
  if (header != nullptr) hold(header->exit_hold, ExitHold::kNone);
}

void hold_after_exit() {
  format::LedgerHeader* const header = header_to_wait_in();
  if (header == nullptr || load(header->late_hold) == ExitHold::kNone) return;
  hold(header->late_hold, ExitHold::kWanted);
}

next::MainFunction* held_main(next::MainFunction* main) {
  if (g_options.hold_exit == 0) return main;
  g_main = main;
  return mtrace_held_main;
}

}  // namespace mtrace::life
