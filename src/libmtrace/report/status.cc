#include "report/status.h"

#include <errno.h>

#include <cstring>

#include "base/atomic.h"
#include "base/file.h"
#include "base/filters.h"
#include "base/machine.h"
#include "base/own_memory.h"
#include "base/process.h"
#include "base/table_file.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "ledger/ledger.h"
#include "ledger/region_table.h"
#include "report/host.h"
#include "report/output.h"

using mtrace::format::StatusBlock;

[[gnu::visibility("default")]] constinit StatusBlock mtrace_status_block = {};

namespace mtrace::report {
namespace {

using ledger::g_ledger;

constexpr uint64_t kFromLookToLook = 1'000'000u;     // nanoseconds from one look to the next
constexpr uint64_t kLongestSignal = 2'000'000'000u;  // a memlog that was killed meanwhile
constexpr uint32_t kMostNames = 1000;                // of one program and pid

char g_place[kPathCapacity];  // absolute; "": no file is asked for
bool g_is_directory = false;
int g_error = 0;
bool g_begun_at_fork = false;

template <size_t N>
void set_text(char (&field)[N], const char* text) {
  Writer(field, N).text(text).finish();
}

// Attempt 1 is the plain name.
long name_file(char* path, uint32_t attempt) {
  Writer out(path, kPathCapacity);
  out.text(g_place);
  if (g_is_directory) {
    out.put('/')
        .bytes(base::g_table_header->name, strnlen(base::g_table_header->name, kNameLimit))
        .put('-')
        .number(g_host.pid);
    if (attempt > 1) out.put('.').number(attempt);
    out.text(format::kLedgerSuffix);
  } else if (attempt > 1) {
    out.put('.').number(g_host.pid);
    if (attempt > 2) out.put('.').number(attempt - 1);
  }
  return out.finish();
}

// Returns 0 or an errno.
int make_file() {
  long result = -EEXIST;
  for (uint32_t attempt = 1; result == -EEXIST && attempt <= kMostNames; ++attempt) {
    char path[kPathCapacity];
    result = name_file(path, attempt);
    if (result == 0) result = base::create_table_file(path, &g_ledger, sizeof g_ledger);
  }
  return static_cast<int>(-result);
}

void put_command(format::LedgerHeader& header) {
  const size_t length = g_host.command != nullptr ? strlen(g_host.command) : 0;
  if (length == 0) return;
  base::TableTurn turn;
  void* copy = length < 4096 ? turn.grow_little(length) : turn.grow(length);
  if (copy == nullptr) return;
  memcpy(copy, g_host.command, length);
  header.command = reinterpret_cast<uint64_t>(copy);
  header.command_length = length;
}

}  // namespace

void status_start(int signal) {
  StatusBlock& block = mtrace_status_block;
  format::LedgerHeader& header = *base::g_table_header;
  header.version = format::kLedgerVersion;
  set_text(header.directory, output_directory());
  store(header.pid, g_host.pid);
  block.size = sizeof block;
  block.header = reinterpret_cast<uint64_t>(&base::g_table_header);
  store(block.signal, int32_t{signal});
  store_release(block.magic, format::kStatusMagic);
}

void status_mode(format::Mode mode, const char* reason) {
  set_text(mtrace_status_block.reason, reason);
  store_release(mtrace_status_block.mode, mode);
}

void status_handler(format::Handler handler) {
  store_release(mtrace_status_block.handler, handler);
}

void status_filters(uint32_t known) { store_release(mtrace_status_block.filters, known); }

void reset_status() {
  StatusBlock& block = mtrace_status_block;
  block.withheld = block.leaving = block.signaller = 0;
  block.error[0] = '\0';
}

void status_leaves(bool wait) {
  uint32_t& signaller = mtrace_status_block.signaller;
  // Before the look at `signaller`: a memlog that sets it afterwards sees that a thread leaves.
  fetch_add(mtrace_status_block.leaving, 1u);
  uint32_t who = wait ? load_acquire(signaller) : 0;
  if (who == 0) return;
  const uint64_t end = base::monotonic_time() + kLongestSignal;
  while (who != 0 && base::monotonic_time() < end) {
    base::wait_on(signaller, who, kFromLookToLook);
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

void map_ledger(const char* option) {
  if (option[0] == '\0') return;
  Writer out(g_place, sizeof g_place);
  const bool here = strcmp(option, ".") == 0 || strcmp(option, "./") == 0;
  if (option[0] != '/') out.text(g_host.directory);
  if (option[0] != '/' && !here) out.put('/');
  // Without "./": the path is shown to people.
  if (!here) out.text(option[0] == '.' && option[1] == '/' ? option + 2 : option);
  const bool named = out.finish() == 0 && (option[0] == '/' || g_host.directory[0] != '\0');
  g_is_directory = named && (option[strlen(option) - 1] == '/' || base::is_directory(g_place));
  // Without slashes at the end: the paths of its files are shown to people.
  for (size_t end = strlen(g_place); end > 1 && g_place[end - 1] == '/'; --end) {
    g_place[end - 1] = '\0';
  }
  g_error = named ? make_file() : ENAMETOOLONG;
}

void map_ledger_after_fork() {
  base::drop_table_file();
  g_begun_at_fork = true;
  g_error = make_file();
}

void describe_ledger(bool recording) {
  format::LedgerHeader& header = *base::g_table_header;
  header.seq = header.named_seq = header.reporting = header.failures = 0;
  header.names_offered = header.names_left = header.label_length = header.extremes_renewed = 0;
  header.exit_hold = header.late_hold = format::ExitHold::kNone;
  header.cost.stopped = header.cost.full_since = 0;
  header.report_path[0] = '\0';
  set_text(header.path, base::table_file_path());
  header.parent = g_host.parent;
  header.started = g_host.started;
  header.tick_zero = g_host.tick_zero;
  header.clock_zero = base::g_time_zero;
  header.sampled = ledger::g_sample_mean;
  header.recording = recording;
  header.was_off = !recording;
  header.roots = ledger::Layout::roots(g_ledger);
  header.notes = reinterpret_cast<uint64_t>(g_ledger.notes);
  header.shadow = ledger::Layout::shadow(g_ledger);
  header.regions = ledger::Layout::regions();
  header.own_ranges = base::own_ranges();
  header.lost_frees = reinterpret_cast<uint64_t>(&g_ledger.lost_frees);
  header.machine = machine::kElfMachine;
  put_command(header);
  store_release(header.pid, g_host.pid);
  store(header.state, format::LedgerState::kRunning);
  if (base::has_table_file()) store_release(header.magic, format::kLedgerMagic);
}

void ledger_recording(bool on) {
  store(base::g_table_header->recording, uint32_t{on});
  if (!on) store(base::g_table_header->was_off, uint64_t{1});
}

void ledger_reporting(uint32_t seq) { store_release(base::g_table_header->reporting, seq); }

void ledger_reported(uint32_t seq, const char* path) {
  format::LedgerHeader& header = *base::g_table_header;
  set_text(header.report_path, path);
  store_release(header.seq, seq);
  store_release(header.reporting, 0u);
}

void ledger_failed(int error_number, const char* what) {
  constexpr size_t kSize = sizeof mtrace_status_block.error;
  Writer(mtrace_status_block.error, kSize).text(what).put(' ').text(output_directory()).finish();
  store(mtrace_status_block.error_number, int32_t{error_number});
  fetch_add(base::g_table_header->failures, 1u);
  store_release(base::g_table_header->reporting, 0u);
}

void ledger_withheld(bool mine) {
  constexpr size_t kSize = sizeof mtrace_status_block.error;
  Writer(mtrace_status_block.error, kSize)
      .text(base::is_dispatched() ? "a thread hands over its system calls (syscall user dispatch)"
                                  : "the program has added a filter of system calls (seccomp)")
      .text(", so no report goes to ")
      .text(output_directory())
      .finish();
  store(mtrace_status_block.error_number, 0);
  fetch_add(mtrace_status_block.withheld, 1u);
  if (mine) fetch_add(base::g_table_header->failures, 1u);
}

void ledger_named(uint32_t seq) {
  uint32_t& named = base::g_table_header->named_seq;
  if (seq > load(named)) store_release(named, seq);
}

size_t take_label(char* buffer, size_t capacity) {
  format::LedgerHeader& header = *base::g_table_header;
  size_t length = load_acquire(header.label_length);
  if (length == 0) return 0;
  if (length > sizeof header.label) length = sizeof header.label;
  if (length >= capacity) length = capacity - 1;
  memcpy(buffer, header.label, length);
  buffer[length] = '\0';
  store_release(header.label_length, 0u);
  return length;
}

bool take_names_offer() { return exchange(base::g_table_header->names_offered, 0u) != 0; }

void ledger_renews_extremes() { fetch_add(base::g_table_header->extremes_renewed, 1u); }

void end_ledger(format::LedgerState how) {
  store_release(base::g_table_header->state, how);
  if (how != format::LedgerState::kUnreported) base::remove_table_file();
}

void ledger_goes_on() { store_release(base::g_table_header->state, format::LedgerState::kRunning); }

void leave_ledger() { store_release(base::g_table_header->state, format::LedgerState::kDetached); }

void end_detached_ledger() {
  const format::LedgerHeader& header = *base::g_table_header;
  // Not in a child that was forked meanwhile: it still has its parent's ledger.
  if (load(header.state) == format::LedgerState::kDetached && header.pid == base::process_id()) {
    end_ledger(format::LedgerState::kEnded);
  }
}

void write_ledger_notes(Writer& out) {
  if (g_begun_at_fork) {
    out.meta(format::kKeyNote)
        .text("its ledger is its own and begins at the fork (MTRACE_LEDGER): blocks from before ");
    out.text("it are not counted, and frees of them stand in unknown-frees\n");
  }
  if (g_error != 0) {
    out.meta(format::kKeyNote).text("no ledger was made at ").escaped(g_place);
    out.text(" (").reason(g_error).text(")\n");
  }
  const format::LedgerHeader& header = *base::g_table_header;
  if (load(header.missing) == 0) return;
  out.meta(format::kKeyNote)
      .text("the ledger file lacks ")
      .number(load(header.missing))
      .text(" bytes of tables");
  out.text(" (")
      .reason(static_cast<int>(load(header.missing_error)))
      .text("); this report is complete\n");
}

}  // namespace mtrace::report
