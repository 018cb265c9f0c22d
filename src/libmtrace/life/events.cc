
#include <unistd.h>

#include <cstring>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/writer.h"
#include "events/logging.h"
#include "format/escape.h"
#include "format/ledger.h"
#include "life/fork.h"
#include "life/lifecycle.h"
#include "life/options.h"
#include "record/recorder.h"
#include "report/event_writer.h"
#include "report/host.h"
#include "report/notes.h"
#include "report/output.h"

namespace mtrace::life {
namespace {

const char* g_why_none = nullptr;
int g_file_error = 0;  // errno of the log's file, if that is why

void set_logging(bool on) {
  events::set_logging(on);
  record::watch_mappings_for_events(on);
}

// Starts a log. Returns nullptr, or why there is no log.
const char* start_log() {
  events::begin_log();
  const char* why = report::start_event_writer({g_options.events, g_options.events_drop != 0,
                                                g_options.ledger == format::kLedgerPlace,
                                                g_options.events_full != 0, g_options.events_max,
                                                static_cast<uint32_t>(g_options.events_files),
                                                static_cast<uint32_t>(g_options.events_cull_ms)});
  set_logging(why == nullptr);
  return why;
}

// Writes why there is no log.
Writer& put_why(Writer& out, const char* why) {
  out.text("no event log: ").text(why);
  if (g_file_error == 0) return out;
  const bool beside_reports = strcmp(g_options.events, "1") == 0;
  const char* const place = beside_reports ? report::output_directory() : g_options.events;
  return out.escaped(place).text(": ").reason(g_file_error);
}

// The next report says so, too.
void note_absence(const char* why) {
  char text[report::kMostNote];
  Writer out(text, sizeof text);
  report::add_note(text, put_why(out, why).finish() != 0);
}

}  // namespace

void begin_events() {
  base::find_stamps();
  record::g_free_stacks = g_options.events_free_stacks;
  g_why_none = start_log();
  // During an attach the process's threads are stopped.
  if (g_why_none == nullptr && !is_late()) report::await_event_log(&g_why_none, &g_file_error);
  if (g_why_none == nullptr) return;
  set_logging(false);
  note_absence(g_why_none);
}

void say_when_not_logged() {
  if (g_why_none == nullptr) return;
  char line[2 * report::kPathCapacity];
  Writer out(line, sizeof line, STDERR_FILENO);
  put_why(out.text("mtrace: MTRACE_EVENTS: "), g_why_none).put('\n').finish();
}

void end_events(format::EventsState how) {
  if (!events::logs()) return;
  set_logging(false);
  switch_recording(is_recording_on());
  report::finish_event_writer(how, g_options.exit_wait);
  if (how == format::EventsState::kReplaced) report::keep_ledger_open();
}

void resume_events() {
  if (g_options.events[0] == '\0' || g_why_none != nullptr || events::logs()) return;
  if (const char* const why = start_log()) return note_absence(why);
  switch_recording(is_recording_on());
}

void log_fork() {
  if (!events::logs()) return;
  report::await_event_log(nullptr, nullptr);
  report::note_fork();
  record::t_thread.fork = events::fork_begins(record::t_thread.slot);
}

void leave_parents_events(bool logged) {
  report::leave_event_writer(logged ? record::t_thread.fork : 0);
}

void begin_childs_events() {
  if (!events::logs()) return;
  set_logging(false);
  events::unmap_rings();
  // This may be a vfork child of the fork's child, which cannot start a writer.
  if (base::process_id() != report::g_host.pid) return;
  if (const char* const why = start_log()) return note_absence(why);
  if (record::t_thread.slot != 0) events::thread_begins(record::t_thread.slot, base::thread_id());
}

}  // namespace mtrace::life
