#include "report/status.h"

#include <cstring>

#include "base/atomic.h"
#include "base/filters.h"
#include "base/process.h"
#include "base/writer.h"
#include "ledger/ledger.h"
#include "python/runtime.h"
#include "report/host.h"
#include "report/mapped_ledger.h"

using mtrace::format::StatusBlock;

[[gnu::visibility("default")]] constinit StatusBlock mtrace_status_block = {};

namespace mtrace::report {
namespace {

constexpr uint64_t kLook = 1'000'000u;               // nanoseconds from one look to the next
constexpr uint64_t kLongestSignal = 2'000'000'000u;  // a memlog that was killed meanwhile

template <size_t N>
void set_text(char (&field)[N], const char* text) {
  Writer(field, N).text(text).finish();
}

}  // namespace

void status_start(uint32_t pid, int signal, const char* directory) {
  mtrace_status_block.size = sizeof(StatusBlock);
  set_text(mtrace_status_block.directory, directory);
  store(mtrace_status_block.signal, int32_t{signal});
  store(mtrace_status_block.pid, pid);
  store_release(mtrace_status_block.magic, format::kStatusMagic);
}

void status_tables(const ledger::Ledger& ledger) {
  const format::LedgerRoots roots = ledger::Layout::roots(ledger);
  store(mtrace_status_block.python, reinterpret_cast<uint64_t>(&unwind::python_coverage()));
  store(mtrace_status_block.threads_used, roots.threads_used);
  store_release(mtrace_status_block.threads, roots.threads);
}

void status_mode(format::Mode mode, const char* reason) {
  set_text(mtrace_status_block.reason, reason);
  store_release(mtrace_status_block.mode, mode);
}

void status_handler(format::Handler handler) {
  store_release(mtrace_status_block.handler, handler);
}

void status_ledger(const char* path) { set_text(mtrace_status_block.ledger, path); }

void status_reported(uint32_t seq, const char* path) {
  set_text(mtrace_status_block.path, path);
  store_release(mtrace_status_block.seq, seq);
}

void status_named(uint32_t seq) {
  ledger_named(seq);
  if (seq > load(mtrace_status_block.named_seq)) store_release(mtrace_status_block.named_seq, seq);
}

void status_failed(int error_number, const char* what, const char* path) {
  constexpr size_t kSize = sizeof mtrace_status_block.error;
  Writer(mtrace_status_block.error, kSize).text(what).text(" ").text(path).finish();
  store(mtrace_status_block.error_number, int32_t{error_number});
  store_release(mtrace_status_block.failures, load(mtrace_status_block.failures) + 1);
}

void status_withheld(const char* path) {
  constexpr size_t kSize = sizeof mtrace_status_block.error;
  Writer(mtrace_status_block.error, kSize)
      .text(sys::is_dispatched() ? "a thread hands over its system calls (syscall user dispatch)"
                                 : "the program has added a filter of system calls (seccomp)")
      .text(", so no report goes to ")
      .text(path)
      .finish();
  store(mtrace_status_block.error_number, 0);
  store(mtrace_status_block.withheld, load(mtrace_status_block.withheld) + 1);
  store_release(mtrace_status_block.failures, load(mtrace_status_block.failures) + 1);
}

void status_filters(uint32_t known) { store_release(mtrace_status_block.filters, known); }

size_t status_take_label(char* buffer, size_t capacity) {
  size_t length = load_acquire(mtrace_status_block.label_length);
  if (length == 0) return 0;
  if (length > sizeof mtrace_status_block.label) length = sizeof mtrace_status_block.label;
  if (length >= capacity) length = capacity - 1;
  memcpy(buffer, mtrace_status_block.label, length);
  buffer[length] = '\0';
  store_release(mtrace_status_block.label_length, 0u);
  return length;
}

void reset_status() {
  StatusBlock& block = mtrace_status_block;
  block.seq = block.named_seq = block.failures = block.withheld = 0;
  block.label_length = block.leaving = block.signaller = 0;
  block.path[0] = block.error[0] = '\0';
  store_release(block.pid, g_host.pid);
}

void status_leaves(bool wait) {
  uint32_t& signaller = mtrace_status_block.signaller;
  // Before the look at `signaller`: a memlog that sets it afterwards sees that a thread leaves.
  fetch_add(mtrace_status_block.leaving, 1u);
  uint32_t who = wait ? load_acquire(signaller) : 0;
  if (who == 0) return;
  const uint64_t end = sys::monotonic_time() + kLongestSignal;
  while (who != 0 && sys::monotonic_time() < end) {
    sys::wait_on(signaller, who, kLook);
    who = load_acquire(signaller);
  }
  store(signaller, 0u);
}

// Not below 0: a fork's child may have begun its own block in the meantime.
void status_stays() {
  uint32_t& leaving = mtrace_status_block.leaving;
  uint32_t threads = load(leaving);
  while (threads != 0 && !compare_exchange(leaving, threads, threads - 1)) {
  }
}

}  // namespace mtrace::report
