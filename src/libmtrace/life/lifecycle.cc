#include "life/lifecycle.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>

#include "base/clock.h"
#include "base/file.h"
#include "base/filters.h"
#include "base/machine.h"
#include "base/process.h"
#include "base/table_file.h"
#include "base/writer.h"
#include "events/logging.h"
#include "format/escape.h"
#include "life/environment.h"
#include "life/fork.h"
#include "life/options.h"
#include "life/reporting.h"
#include "life/triggers.h"
#include "modules/c_library.h"
#include "modules/linkage.h"
#include "next/interfaces.h"
#include "next/next_functions.h"
#include "python/runtime.h"
#include "record/call_stack.h"
#include "record/recorder.h"
#include "record/sampler.h"
#include "record/usable_size.h"
#include "report/host.h"
#include "report/launcher.h"
#include "report/output.h"
#include "report/resolver_process.h"
#include "report/status.h"

namespace mtrace::life {

namespace {

using format::Mode;

uint32_t g_started = 0;
bool g_interfaces_found = false;

// Calls the allocator's usable size once, so that it sets itself up before blocks are counted.
void ask_allocator_once() {
  if (next::interfaces_have_another_allocator()) record::always_ask_for_usable_size();
  if (next::g_next.usable_size == nullptr || next::malloc_is_replaced()) return;
  void* block = next::g_next.malloc(1);
  if (block != nullptr) next::g_next.usable_size(block);
  next::g_next.free(block);
}

report::Listed listed_entries() {
  if (strcmp(g_options.entries, "active") == 0) return report::Listed::kActive;
  return strcmp(g_options.entries, "all") == 0 ? report::Listed::kAll : report::Listed::kNet;
}

void set_library_line() {
  format::LedgerHeader& header = *base::g_table_header;
  Writer out(header.library, sizeof header.library);
  const char* name = report::last_component(next::allocator_path());
  out.text("allocator=");
  if (*name == '\0') name = base::g_table_header->name;  // malloc is part of the program
  write_options(out.escaped(name, " "));
  out.finish();
}

// Learns about host and filters. After read_options(), before the first of many system calls.
void learn(const Arguments& arguments) {
  // memlog attach has already examined the filters of a process that it attaches to.
  if (g_started != 2) base::find_inherited_filters(!is_late());
  base::use_vdso_clock(modules::vdso_function(base::kVdsoClock));
  report::learn_host(arguments.argv, g_options.command);
  learn_own_path();
}

unwind::PythonFrames python_frames() {
  if (strcmp(g_options.python, "0") == 0) return unwind::PythonFrames::kOff;
  return strcmp(g_options.python, "1") == 0 ? unwind::PythonFrames::kTried
                                            : unwind::PythonFrames::kUntried;
}

// The phases of begin(), in their order. Each may use what earlier ones have set up; until
// begin_counting() nothing is counted.

// Makes the tables. Returns why it cannot; nullptr: done. `again`: the tables of the last session
// are used again.
const char* set_up_tables(const char* tool, bool again) {
  // Memory that the library takes at its start; under a lower limit the program needs all of it.
  constexpr unsigned long kLeastData = 32ul << 20;
  if (!again && base::data_limit() < kLeastData) {
    return "less than 32 MiB of data allowed (ulimit -d)";
  }
  if (!again && base::is_trial_due() && is_started_by(tool)) {
    base::processes_can_start();
    base::try_inherited_filters();  // now, because a ledger takes calls that not every program
                                    // makes
  }
  if (!report::prepare_reports() || !(again ? move_tables() : make_tables())) {
    return "no memory for the tables";
  }
  ledger::start_ticks();
  report::g_host.tick_zero = base::real_time();
  return nullptr;
}

void set_up_records() {
  record::set_depth(static_cast<unsigned>(g_options.depth));
  unwind::read_python_frames(python_frames());
  record::set_short_lived(g_options.temporary_ms);
  record::count_missed_frees();
}

void set_up_reports(const char* tool, char* const* envp, bool again) {
  set_library_line();
  report::set_contents(listed_entries(), g_options.mmap != 0);
  report::status_filters(base::known_filters());
  if (!again) report::set_tool(tool, envp, g_options.signal);
  report::set_compressing(static_cast<report::Compressed>(g_options.compress));
}

void look_at_program() {
  find_entry_points(is_late());
  record::find_loader();
  ask_allocator_once();
}

// Chooses what the hooks of malloc and free do.
void choose_path() {
  record::g_fill = g_options.fill;
  record::g_unknown_frees_have_stacks =
      strcmp(g_options.unknown, "stacks") == 0 && g_options.sample == 0;
  if (g_options.sample != 0) {
    record::start_sampling(g_options.sample);
    record::g_path = {record::sampled_malloc, record::sampled_free};
  }
  if (record::g_fill >= 0) record::g_path.malloc = record::checked_malloc;
  limit_memory();
  watch_for_moments();
}

// Starts counting with the options that were read. `dormant`: the reason not to, or nullptr.
void begin(const char* dormant, const char* temporary, char* const* envp) {
  report::set_output(g_options.output, temporary);
  report::status_start(g_options.signal);
  if (dormant != nullptr) return report::status_mode(Mode::kDormant, dormant);
  const bool again = g_started == 2;
  const char* const tool = again ? nullptr : find_tool();
  if (const char* none = set_up_tables(tool, again)) return report::status_mode(Mode::kQuiet, none);
  set_up_records();
  set_up_reports(tool, envp, again);
  report::status_mode(Mode::kActive, "");
  look_at_program();
  choose_path();
  show_ledger(g_options.start);
  if (g_options.events[0] != '\0') begin_events();  // its writer reads the ledger
  if (modules::at_fork_allocates()) watch_forks();  // what it allocates is not counted yet
  begin_counting(g_options.start);
  if (!is_late() && g_interfaces_found) next::redirect_interfaces();
  if (g_options.mmap != 0) record::watch_regions(g_options.mmap > 1);
}

// Forgets the last session, before the library is attached again. No other thread is inside the
// library.
void forget_session() {
  const uint32_t pid = base::process_id();
  record::retire_unloaded();
  ledger::g_ledger.forget_all(pid != report::g_host.pid ? pid : 0);
  limit_tables();
  reset(Reset::kSession);
}

void say_when_quiet() {
  if (mtrace_status_block.mode != Mode::kQuiet) return;
  char line[256];
  Writer out(line, sizeof line, STDERR_FILENO);
  out.text("mtrace: not traced: ").text(mtrace_status_block.reason).put('\n').finish();
}

// For an attached library: runs after all exit handlers, including destructors of static objects.
// In a library preloaded into a program with glibc the handler of at_last_exit runs later still.
[[gnu::destructor]] void finish() {
  if (!is_late()) return modules::end_last();
  report_exit();
  report::end_detached_ledger();
}

[[gnu::constructor]] void construct() {
  if (!start()) return;
  if (getauxval(AT_SECURE) != 0) return;
  const Arguments arguments = initial_arguments();
  rewrite_environment(arguments.envp, own_path(), report::g_host.pid);
  say_when_quiet();
  const bool active = mtrace_status_block.mode == Mode::kActive;
  install_triggers(g_options.signal, g_options.toggle_signal, active,
                   active && g_options.report_on_fatal);
  if (!active) return say_when_aside();
  complain(arguments.envp);
  say_when_not_logged();
  say_when_output_fails(arguments.envp);
  say_when_hidden();
  // If libunwind cannot be loaded, the default unwinder stays.
  if (strcmp(g_options.unwinder, "libunwind") == 0 && !unwind::use_libunwind()) {
    constexpr char kLine[] =
        "mtrace: MTRACE_UNWINDER=libunwind: libunwind.so.8 cannot be loaded; using cfi\n";
    base::write_all(STDERR_FILENO, kLine, sizeof kLine - 1);
  }
  modules::at_last_exit(report_exit);
  modules::at_last_quick_exit(report_exit);
  if (!modules::at_fork_allocates()) watch_forks();
}

}  // namespace

MTRACE_REALIGN bool start() {
  if (load_acquire(g_started) == 2) return true;
  if (!next::is_relocated() || is_late() || !next::find_next_functions()) return false;
  uint32_t expected = 0;
  if (!compare_exchange(g_started, expected, 1u)) return expected == 2;
  record::g_path = {record::exact_malloc, record::exact_free};
  g_interfaces_found = next::find_interfaces();
  const Arguments arguments = initial_arguments();
  // A program with raised privileges takes no options from who started it.
  const bool secure = getauxval(AT_SECURE) != 0;
  read_options(secure ? nullptr : arguments.envp);
  if (!secure) catch_trigger(g_options.signal);
  learn(arguments);
  begin(why_dormant(), secure ? nullptr : find_variable(arguments.envp, "TMPDIR"), arguments.envp);
  store_release(g_started, 2u);
  return true;
}

bool ready_slowly() { return start() && record::g_path.malloc != nullptr; }

bool is_late() {
  static uint32_t known = 0;  // 1: no, 2: yes
  if (load(known) == 0) {
    const link_map* own = modules::object_of(&g_started);
    store(known, own != nullptr && modules::is_loaded_late(*own) ? 2u : 1u);
  }
  return load(known) == 2;
}

const char* start_late(const char* options) {
  next::find_real_late();
  record::g_path = {record::exact_malloc, record::exact_free};
  next::find_interfaces();
  const Arguments arguments = late_arguments(options);
  read_options(arguments.envp);
  const bool again = g_started == 2;
  if (again) forget_session();
  learn(arguments);
  if (is_memlog()) return "this is memlog itself";
  if (const char* reason = sanitizer(); reason != nullptr) return reason;
  begin(nullptr, find_variable(arguments.envp, "TMPDIR"), arguments.envp);
  g_started = 2;
  if (mtrace_status_block.mode != Mode::kActive) return mtrace_status_block.reason;
  install_triggers(g_options.signal, g_options.toggle_signal, true, g_options.report_on_fatal);
  begin_reporting();
  if (!again) watch_forks();
  return nullptr;
}

void stop_late() {
  remove_triggers();
  record::g_path = {record::exact_malloc, record::exact_free};
  ledger::g_sample_mean = 0;
  record::g_fill = -1;
  record::stop_watching_regions();
  end_events(format::EventsState::kDetached);
  report::leave_ledger();
  go_quiet(format::kDetachedReason);
}

bool set_recording(bool on) {
  if (!is_own_process()) return false;
  const bool before = switch_recording(on);
  if (events::logs()) events::recording(on);
  report::ledger_recording(on);
  return before;
}

void toggle_recording() { set_recording(!is_recording_on()); }

bool is_own_process() { return is_set_up() && base::process_id() == report::g_host.pid; }

}  // namespace mtrace::life
