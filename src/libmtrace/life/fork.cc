#include "life/fork.h"

#include <errno.h>

#include <algorithm>
#include <cstring>

#include "base/filters.h"
#include "base/machine.h"
#include "base/probe.h"
#include "base/process.h"
#include "base/syscall.h"
#include "base/table_file.h"
#include "base/turn.h"
#include "events/logging.h"
#include "ledger/block.h"
#include "ledger/region_table.h"
#include "ledger/resource_table.h"
#include "life/lifecycle.h"
#include "life/options.h"
#include "life/reporting.h"
#include "modules/c_library.h"
#include "modules/modules.h"
#include "next/interfaces.h"
#include "next/next_functions.h"
#include "python/code.h"
#include "record/call_stack.h"
#include "record/recorder.h"
#include "record/sampler.h"
#include "report/host.h"
#include "report/memory_use.h"
#include "report/notes.h"
#include "report/output.h"
#include "report/report.h"
#include "report/resolver_process.h"
#include "report/savepoints.h"
#include "report/status.h"

namespace mtrace::life {

namespace {

using ledger::g_ledger;

// A page that is wiped on fork, or else g_fork_words. Word 0: a Counting. Word 1: the pid of the
// child that libc's fork has made; wiped by a fork that bypasses libc.
uint64_t* g_fork_page = nullptr;
uint64_t g_fork_words[2];
uint64_t g_decided = record::kRecording;  // word 0 once this process is set up
uint32_t g_forked = 0;                    // the last process that libc's fork made, or this one
uint32_t g_forker = 0;                    // the process that called that fork
bool g_has_forked = false;
ledger::Totals g_at_fork = {};  // live in this process at its last fork; with a ledger in a file
bool g_left_ledger = false;     // the tables are a copy of the parent's file, of no use

// atfork handler in the child. A process between parent and child that never allocated (a daemon's)
// leaves its pid here. Where the kernel cannot wipe a page, only this handler shows a fork; _Fork
// and raw clone then stay unseen.
void fork_child_handler() {
  base::processes_can_start();
  g_forker = g_forked;
  g_forked = base::process_id();
  if (g_fork_page != nullptr) {
    // qemu-user up to 7.2 says that it wipes the page, and does not.
    const bool wiped = load(*g_fork_page) == record::kUndecided;
    if (!wiped && report::g_host.pid != g_forked) store(*g_fork_page, uint64_t{record::kUndecided});
    g_fork_page[1] = g_forked;
  }
  leave_parents_tables();
}

// atfork handler in the parent. After a fork in daemon(), libc ends the parent by an _exit of its
// own, which no hook sees. libc also calls this handler when the fork has failed and errno is set.
void fork_parent_handler() {
  base::processes_can_start();
  if (record::t_thread.becomes_daemon && errno == 0) report_exit();
}

uint64_t when_recording() { return events::logs() ? record::kLogging : record::kRecording; }

void find_fork_page() {
  g_fork_page = base::map_wiped_on_fork();
  if (g_fork_page == nullptr) g_fork_page = g_fork_words;
}

// Another process has requested a report through the ledger.
void answer_question() { trigger_report(report::Trigger::kRequest, nullptr); }

bool fill_tables() {
  limit_tables();
  g_ledger.threads.answer_with(answer_question);
  return g_ledger.init(record::modules_came_back);
}

bool map_tables() {
  // A child that shares a file with its parent must notice the fork at once: by the wiped page.
  report::map_ledger(g_fork_page != g_fork_words ? g_options.ledger : "");
  return fill_tables();
}

// For a child whose tables are the parent's file: sets up other tables. False: no memory.
bool begin_anew(uint32_t pid) {
  g_left_ledger = false;
  g_ledger.blocks.drop_index();
  report::map_ledger_after_fork();
  if (!fill_tables()) return false;
  // The last block's place was in the old tables.
  record::t_thread.counted = nullptr;
  record::t_thread.last = {};
  g_ledger.begin_after_fork(record::t_thread.slot, pid);
  reset(Reset::kTables);
  return true;
}

void note_inheritance() {
  char text[report::kMostNote];
  Writer(text, sizeof text)
      .text("inherited ")
      .number(g_at_fork.bytes)
      .text(" bytes in ")
      .number(g_at_fork.blocks)
      .text(g_at_fork.blocks == 1 ? " block" : " blocks")
      .text(" at the fork, which no report of this process counts: its ledger begins there")
      .finish();
  report::add_note(text, false);
}

// Sets up the child's tables. False: no memory.
bool set_tables_up(uint32_t pid) {
  const bool mapped = base::has_table_file() || g_left_ledger;
  report::g_host.began_anew = mapped;
  const bool good = !mapped || begin_anew(pid);
  reset(Reset::kFork);  // not before: what is reset may have been the parent's until now
  if (!good) return false;
  if (mapped) note_inheritance();
  record::sample_after_fork();
  if (!mapped) g_ledger.rebase_after_fork(record::t_thread.slot, pid);
  show_ledger(is_recording_on());
  return true;
}

// In a fork's child, before anything else there touches the tables, by the child's only thread.
void after_fork() {
  const uint64_t mask = base::block_signals();
  if (load(*g_fork_page) != record::kUndecided) {  // a signal handler did it just now
    base::restore_signals(mask);
    return;
  }
  // This may run in a vfork child of the fork's child, in that child's memory: word 1, which libc's
  // fork has set, names the owner. After a clone by a raw system call word 1 is 0.
  const bool forked_by_libc = g_forked != report::g_host.pid && g_fork_page[1] == g_forked;
  const uint32_t pid = forked_by_libc ? g_forked : base::process_id();
  report::host_after_fork(pid, forked_by_libc ? g_forker : g_forked);
  g_forked = pid;
  store(g_has_forked, false);
  base::orphan_turns();
  leave_parents_events(false);
  if (set_tables_up(pid)) {
    begin_reporting();
    begin_childs_events();
    if (load(g_decided) != record::kStopped) g_decided = when_recording();
    store(*g_fork_page, load(g_decided));
  } else {
    go_quiet("no memory for the tables");
  }
  base::restore_signals(mask);
}

}  // namespace

bool make_tables() {
  find_fork_page();
  return map_tables();
}

bool move_tables() {
  if (g_options.ledger[0] == '\0' || base::table_file_has_name()) return true;
  if (base::has_table_file()) {
    report::map_ledger(g_options.ledger);
    return true;
  }
  constexpr size_t kBytes = sizeof(ledger::ThreadSlots);
  auto* before = static_cast<ledger::ThreadSlots*>(base::map_memory(kBytes));
  if (before == nullptr) return false;
  memcpy(static_cast<void*>(before), &g_ledger.threads, kBytes);
  // The tables begin anew even if no file can be made: by then the old ones may be gone.
  memset(static_cast<void*>(&g_ledger), 0, sizeof g_ledger);
  const bool good = map_tables();
  g_ledger.threads.hold_again(*before);
  base::unmap_memory(before, kBytes);
  if (!good) return false;
  ++ledger::g_births;
  ledger::g_resources.clear();
  ledger::g_regions.clear();
  g_ledger.peak.restart(0, ledger::ticks_now());
  reset(Reset::kTables);
  return true;
}

void limit_tables() {
  using Granules = ledger::HeapShadow::Granules;
  g_ledger.stacks.limit_to(g_options.max_stacks);
  // A sample is a few blocks of the whole heap, too far from each other. And a program with limited
  // address space needs all of it.
  const bool no_shadow = g_options.sample != 0 || base::address_space_limit() != ~0ul;
  const bool is_libc = next::allocator_is_libc() && !next::interfaces_have_another_allocator();
  g_ledger.use_shadow(no_shadow ? Granules::kUnused : is_libc ? Granules::kOwn : Granules::kShared);
}

void begin_counting(bool recording) {
  g_forked = report::g_host.pid;
  *g_fork_page = g_decided = recording ? when_recording() : record::kStopped;
  record::count_by(g_fork_page, after_fork);
}

void go_quiet(const char* why) {
  record::count_by(nullptr, nullptr);
  report::status_mode(format::Mode::kQuiet, why);
}

void prepare_fork() {
  log_fork();
  store(g_has_forked, true);
  if (base::has_table_file()) {
    const ledger::ThreadTotals now = g_ledger.threads.totals();
    g_at_fork = {now.live_bytes, now.live_blocks};
  }
  // Read now: in the child the slots may be those of the parent, which goes on.
  record::t_thread.forks_inside =
      record::t_thread.slot != 0 && load(g_ledger.threads.slot(record::t_thread.slot).busy) != 0;
  if (record::t_thread.becomes_daemon) errno = 0;
}

// A signal handler that forks may have interrupted malloc. In the child that malloc goes on, past
// the test for a fork, and would write into the parent's file.
void leave_parents_tables() {
  base::set_user_dispatch(false, nullptr);  // not inherited
  if (report::g_host.pid != base::process_id()) leave_parents_events(true);
  // An atfork handler before this one may have set up the child's own tables.
  if (!base::has_table_file() || base::g_table_header->pid == base::process_id() ||
      base::may_be_filtered()) {
    return;
  }
  // If memory was short, only a part was detached; such tables are of no use either.
  g_left_ledger = base::detach_table_file(record::t_thread.forks_inside) || !base::has_table_file();
  // The child is inside an operation on its parent's tables, which it must not modify and cannot
  // replace.
  if (g_left_ledger && record::t_thread.forks_inside) {
    go_quiet("forked inside an operation on a mapped ledger");
  }
}

void watch_forks() { modules::at_fork(prepare_fork, fork_parent_handler, fork_child_handler); }

bool has_forked() { return load(g_has_forked); }

bool is_set_up() {
  return record::g_counting == g_fork_page && g_fork_page != nullptr && record::counting();
}

bool is_new_child() {
  return record::g_counting == g_fork_page && load(*g_fork_page) == record::kUndecided;
}

bool switch_recording(bool recording) {
  const uint64_t before =
      exchange<uint64_t>(g_decided, recording ? when_recording() : record::kStopped);
  store(*g_fork_page, load(g_decided));
  return before != record::kStopped;
}
bool is_recording_on() { return load(g_decided) != record::kStopped; }

namespace {

// Called at each growth beyond the mark, inside an operation on the tables, which ends as it began.
// If several threads come here at once, each measures.
void look_at_memory() {
  const uint64_t most = g_options.max_memory;
  const uint64_t memory = report::measure_cost(g_ledger).memory;
  if (memory < most) {
    // At least a sixteenth further, so that a process that stays close to the limit does not
    // measure at each growth.
    const uint64_t more = std::max(most - memory, most / 16);
    return base::watch_table_growth(load(base::g_table_growth.bytes) + more, look_at_memory);
  }
  uint64_t expected = record::kRecording;
  if (!compare_exchange(*g_fork_page, expected, uint64_t{record::kFull})) return;
  store(g_decided, uint64_t{record::kFull});
  report::full_since(base::real_time());
}

}  // namespace

void limit_memory() { base::watch_table_growth(g_options.max_memory, look_at_memory); }

void show_ledger(bool recording) {
  format::LedgerHeader& header = *base::g_table_header;
  header.thread_state = record::thread_state_offset();
  header.thread_state_size = sizeof record::t_thread;
  header.late = is_late();
  report::describe_ledger(recording);
}

namespace {

constexpr unsigned kFork = static_cast<unsigned>(Reset::kFork);
constexpr unsigned kSession = static_cast<unsigned>(Reset::kSession);
constexpr unsigned kTables = static_cast<unsigned>(Reset::kTables);

struct Row {
  void (*forget)();
  unsigned when;
};

constexpr Row kRows[] = {
    {report::reset_reports, kFork | kSession},
    {report::reset_notes, kFork | kSession},
    {report::reset_output, kFork | kSession},
    {report::reset_status, kFork | kSession},
    {report::reset_resolver, kFork},
    {report::empty_savepoints, kTables},
    {report::forget_savepoints, kSession},
    {record::forget_samples, kSession},
    // They lead to stacks of tables that are gone.
    {record::forget_walks, kSession | kTables},
    // Readers of the file behind the tables find the same in the next one.
    {modules::log_modules_again, kTables},
    {unwind::log_python_again, kTables},
};

}  // namespace

void reset(Reset why) {
  for (const Row& row : kRows) {
    if ((row.when & static_cast<unsigned>(why)) != 0) row.forget();
  }
}

}  // namespace mtrace::life
