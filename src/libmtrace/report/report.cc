#include "report/report.h"

#include <errno.h>
#include <signal.h>

#include <cstring>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/filters.h"
#include "base/process.h"
#include "base/spawn.h"
#include "base/syscall.h"
#include "base/table_file.h"
#include "base/writer.h"
#include "events/logging.h"
#include "format/memlog.h"
#include "report/launcher.h"
#include "report/memlog_writer.h"
#include "report/memory_use.h"
#include "report/output.h"
#include "report/resolver_process.h"
#include "report/snapshot.h"
#include "report/status.h"

namespace mtrace::report {
namespace {

constexpr size_t kBuffer = 64 * 1024;
constexpr size_t kStack = 256 * 1024;
constexpr size_t kLabel = sizeof format::LedgerHeader::label + 1;
constexpr unsigned kMostAgain = 8;
constexpr uint64_t kLongestWait = 10'000'000'000u;  // nanoseconds
constexpr const char* kTriggers[] = {"signal", "exit", "api", "request", "peak", "growth", "rss"};

enum State : uint32_t { kFree, kBusy, kBusyAndWanted };

uint32_t g_state = kFree;
Trigger g_wanted = Trigger::kSignal;  // of kBusyAndWanted
const char* g_note = nullptr;
bool g_regions = false;
Listed g_listed = Listed::kNet;

// Whether another process may have requested the report, whatever this one is doing.
bool is_asked(Trigger trigger) {
  return trigger == Trigger::kSignal || trigger == Trigger::kRequest;
}

// Whether the report comes after the one that is being written, instead of another that waits.
bool waits(Trigger trigger) { return trigger == Trigger::kExit || trigger == Trigger::kApi; }

struct Workspace {
  char buffer[kBuffer];
  char label[kLabel];
  char note[kPathCapacity];
  OutputFile file;
  Trigger trigger;
  Names names;
  int result;
  alignas(16) char stack[kStack];
};

Workspace* g_space = nullptr;  // for the one report at a time; mapped at the start, because later
                               // the program may have no room left

long write_file(Workspace& space, Occasion& occasion, Snapshot& snapshot) {
  long error = -ENOENT;
  unsigned again = 0;
  const auto is_to_be_tried_again = [&] {
    // The program has closed the file, where it has the same descriptors: see with_own_files().
    const bool closed = error == -ESTALE || error == -EBADF;
    return error == -EAGAIN || (closed && again++ < kMostAgain);
  };
  // A directory where a file can be made may still be full: then the next one is tried.
  for (unsigned place = 0; place < 3; place = space.file.place + !is_to_be_tried_again()) {
    error = open_output(&space.file, place, occasion.seq, occasion.taken);
    if (error != 0) break;
    if (space.file.place != 0) {
      Writer(space.note, sizeof space.note)
          .text(format::kNoteElsewhere)
          .text(output_directory())
          .finish();
      occasion.note = space.note;
    }
    Writer out(space.buffer, kBuffer, space.file.fd, &space.file.own);
    write_memlog(out, occasion, snapshot, ledger::g_ledger);
    error = out.finish();
    if (error != 0) {
      discard_output(&space.file);
    } else {
      error = publish_output(&space.file);
      if (error == 0) break;
    }
    // For a file over the size limit the kernel has sent SIGXFSZ, which is blocked. The host must
    // not get it.
    if (error == -EFBIG) base::discard_signal(SIGXFSZ);
  }
  return error;
}

void write_report(void* argument) {
  auto& space = *static_cast<Workspace*>(argument);
  space.result = -1;
  Snapshot snapshot;
  if (!snapshot.take(ledger::g_ledger, g_listed)) {
    return ledger_failed(ENOMEM, "no memory for a report in");
  }
  const uint32_t seq = load(base::g_table_header->seq) + 1;
  if (is_asked(space.trigger)) take_label(space.label, kLabel);
  if (events::logs()) events::reported(seq, space.label);
  Occasion occasion = {};
  occasion.trigger = kTriggers[static_cast<uint32_t>(space.trigger)];
  occasion.label = space.label[0] != '\0' ? space.label : nullptr;
  occasion.seq = seq;
  occasion.notes = pending_notes();  // none is then later than the report
  occasion.taken = base::real_time();
  occasion.taken_monotonic = base::monotonic_time();
  occasion.regions = g_regions;
  occasion.note = g_note;
  ledger_reporting(seq);
  const long error = write_file(space, occasion, snapshot);
  if (error != 0) {
    return ledger_failed(static_cast<int>(-error), "could not write a report to");
  }
  const bool any = snapshot.size() != 0 || space.names == Names::kTree;
  snapshot.remember(ledger::g_ledger);
  if (space.trigger != Trigger::kExit) ledger::g_ledger.blocks.give_back_empty(false);
  drop_notes(occasion.notes);
  // The requesting memlog may have the debugging information open; a resolver starts from nothing.
  const bool left = is_asked(space.trigger) && take_names_offer() && only_names();
  if (left) store(base::g_table_header->names_left, seq);
  ledger_reported(seq, space.file.path);
  space.result = static_cast<int>(seq);
  if (any && !left && space.names != Names::kLeft) {
    resolve_later(space.file.path, seq, space.trigger == Trigger::kExit,
                  space.names == Names::kTree);
  } else {
    ledger_named(seq);  // no stacks, no names
  }
}

int report_once(Trigger trigger, const char* label, Names names) {
  Workspace* space = g_space;
  space->label[0] = '\0';
  space->trigger = trigger;
  space->names = names;
  const uint64_t begin = base::monotonic_time();
  if (label != nullptr) strncpy(space->label, label, kLabel - 1);
  base::try_inherited_filters();
  base::with_own_files(write_report, space, -1, space->stack + kStack);
  add_stopped(base::monotonic_time() - begin);
  return space->result;
}

// False: another thread writes, and will write one more or does not end.
bool become_reporter(Trigger trigger) {
  const uint64_t end = base::monotonic_time() + kLongestWait;
  for (;;) {
    uint32_t state = kFree;
    if (compare_exchange<uint32_t>(g_state, state, kBusy)) return true;
    if (!waits(trigger)) {
      store(g_wanted, trigger);
      if (state == kBusyAndWanted) return false;
      if (compare_exchange<uint32_t>(g_state, state, kBusyAndWanted)) return false;
      continue;
    }
    const uint64_t now = base::monotonic_time();
    if (now >= end) return false;
    base::wait_on(g_state, state, end - now);
  }
}

// Gives the turn back, after one more report if one was wanted meanwhile.
void end_turn() {
  for (uint32_t state = kBusy; !compare_exchange<uint32_t>(g_state, state, kFree); state = kBusy) {
    store<uint32_t>(g_state, kBusy);
    report_once(load(g_wanted), nullptr, Names::kOwn);
  }
  base::wake_all(g_state);
}

}  // namespace

bool prepare_reports() {
  if (g_space != nullptr) return true;
  g_space = static_cast<Workspace*>(base::map_memory(sizeof(Workspace)));
  return g_space != nullptr;
}

void set_contents(Listed listed, bool regions) {
  g_listed = listed;
  g_regions = regions;
}
void set_note(const char* note) { g_note = note; }

int report(Trigger trigger, const char* label, Names names) {
  const uint64_t mask = base::block_signals();
  int result = waits(trigger) ? -1 : 0;
  if (become_reporter(trigger)) {
    result = report_once(trigger, label, names);
    end_turn();
  }
  base::restore_signals(mask);
  return result;
}

bool hold_reports() { return become_reporter(Trigger::kApi); }

void release_reports() {
  const uint64_t mask = base::block_signals();
  end_turn();
  base::restore_signals(mask);
}

void wait_for_reports() {
  static_assert(kFree == 0);
  wait_for_zero(g_state, kLongestWait);
}

void reset_reports() {
  g_state = kFree;
  reset_memory_use();
}

}  // namespace mtrace::report
