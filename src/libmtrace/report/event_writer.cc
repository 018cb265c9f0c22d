#include "report/event_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/syscall.h"
#include "base/table_file.h"
#include "base/writer.h"
#include "events/ring.h"
#include "ledger/thread_slots.h"
#include "report/host.h"
#include "report/launcher.h"
#include "report/output.h"
#include "report/report.h"

namespace mtrace::report {
namespace {

using events::g_header;
using format::EventRingHeader;
using format::EventsState;

constexpr uint64_t kNoLimit = ~uint64_t{0};
constexpr uint64_t kLongestStart = 20'000'000'000u;  // nanoseconds, until the log is open
constexpr unsigned kShare = 16;  // the part of a limited address space that rings may take

struct EventWriter : Launch {
  EventRingHeader* header;
};

EventWriter* g_writer = nullptr;
char g_parent_log[kPathCapacity];
uint64_t g_fork_time = 0;  // nanoseconds since 1970
uint32_t g_parent_fork = 0;
bool g_left_parents = false;
EventSettings g_settings;
long g_kept_ledger = -1;  // descriptor; before an exec, which takes the file's name

void write_events(Launch& launch) {
  run_tool(launch);
  EventRingHeader& header = *static_cast<EventWriter&>(launch).header;
  if (load(header.done) == 0) store_release(header.done, 2u);
  fetch_add(header.taken, 1u);
  base::wake_all_as_helper(header.taken);
  store_release(launch.state, 0u);
}

// Makes the rings, fewer of them under a limit of address space or file size: threads without a
// ring share one.
bool make_memory(int fd) {
  const uint64_t most =
      std::min<uint64_t>(base::address_space_limit() / kShare, base::file_size_limit());
  for (uint32_t rings = ledger::ThreadSlots::kMost + 1; rings >= 1; rings /= 8) {
    const uint64_t size = events::ring_file_size(rings);
    if (size > most) continue;
    if (base::failed(base::set_file_size(fd, size))) continue;
    if (events::map_rings(fd, rings)) return true;
  }
  return false;
}

// A directory ends with a slash.
void set_place(EventRingHeader& header) {
  const char* wish = g_settings.place;
  Writer out(header.place, sizeof header.place);
  if (strcmp(wish, "1") == 0) {
    out.text(output_directory()).put('/').finish();
    return;
  }
  if (strncmp(wish, "http://", 7) == 0 || strncmp(wish, "https://", 8) == 0) {
    out.text(wish).finish();
    return;
  }
  if (wish[0] != '/') out.text(g_host.directory).put('/');
  out.text(wish);
  if (out.finish() != 0 || !base::is_directory(header.place)) return;
  const size_t length = out.size();
  if (length + 1 < sizeof header.place) memcpy(header.place + length, "/", 2);
}

void describe(EventRingHeader& header) {
  header.parent_time = g_host.parent != 0 ? g_fork_time : 0;
  header.counter = base::stamps_are_counted();
  header.drop = g_settings.drop;
  header.owns_ledger = g_settings.owns_ledger;
  header.cull = g_settings.cull_ms;
  header.compact = !g_settings.full;
  header.most_bytes = g_settings.most_bytes;
  header.files = g_settings.files;
  set_place(header);
  const bool inherits = g_parent_log[0] != '\0';  // this is the first log of a fork's child
  events::count_anew(header, inherits);
  if (inherits) Writer(header.parent_log, sizeof header.parent_log).text(g_parent_log).finish();
  if (inherits) header.parent_fork = g_parent_fork;
  header.zero_stamp = base::stamp();
  header.zero_real = base::real_time();
  store_release(header.magic, format::kEventRingMagic);
}

// The supervisor gets the descriptors; this process keeps none.
bool start_supervisor(int rings, int ledger) {
  if (g_writer == nullptr) {
    g_writer = static_cast<EventWriter*>(base::map_memory(sizeof(EventWriter)));
  }
  if (g_writer == nullptr) return false;
  EventWriter& writer = *g_writer;
  writer.header = g_header;
  static constexpr const char* kArguments[] = {"memlog", "events", "--write-log", nullptr};
  // The program waits for it, so no lower priority.
  prepare(writer, base::Helper::kEventWriter, write_events, kArguments, kNoLimit, 0);
  writer.program.input = rings;
  writer.program.output = ledger;
  return start(writer) && wait_for_zero(writer.shares, kLongestStart);
}

const char* start_writer_alone(long kept) {
  if (!may_start_tool()) return "the memlog program that writes it was not found or may not run";
  const long ledger = kept >= 0                     ? kept
                      : base::table_file_has_name() ? base::open_for_helper(base::table_file_path())
                                                    : -1;
  if (base::failed(ledger)) return "there is no ledger, which it needs";
  const long rings = base::create_memory_file();
  const char* why = "no memory that can be shared";
  if (!base::failed(rings) && make_memory(static_cast<int>(rings))) {
    describe(*g_header);
    why = start_supervisor(static_cast<int>(rings), static_cast<int>(ledger))
              ? nullptr
              : "no process can be started";
  }
  if (!base::failed(rings)) base::close_file(static_cast<int>(rings));
  if (kept < 0) base::close_file(static_cast<int>(ledger));
  return why;
}

const char* start_writer() {
  const char* why = nullptr;
  const long kept = std::exchange(g_kept_ledger, -1);
  base::with_own_files([&] { why = start_writer_alone(kept); }, static_cast<int>(kept));
  if (kept >= 0) base::close_file(static_cast<int>(kept));
  return why;
}

// Waits until the log is open, at most kLongestStart. False: the writer has ended without it.
bool is_open() {
  const uint64_t end = base::monotonic_time() + kLongestStart;
  for (;;) {
    const uint32_t seen = load_acquire(g_header->taken);
    if (load_acquire(g_header->log[0]) != '\0' || load(g_header->done) != 0) break;
    const uint64_t now = base::monotonic_time();
    if (now >= end) break;
    base::wait_on(g_header->taken, seen, end - now);
  }
  return load(g_header->done) == 0;
}

}  // namespace

const char* start_event_writer(const EventSettings& settings) {
  g_settings = settings;
  g_left_parents = false;
  const char* const why = start_writer();
  if (why != nullptr && g_header != nullptr) {
    store(g_header->done, 2u);
    finish_event_writer(EventsState::kEnded, 0);
  }
  return why;
}

void keep_ledger_open() { g_kept_ledger = base::open_for_helper(base::table_file_path()); }

void note_fork() { g_fork_time = base::real_time(); }

void await_event_log(const char** why, int* error) {
  if (g_header == nullptr || is_open() || why == nullptr) return;
  *error = load(g_header->error);
  *why = *error != 0 ? "cannot write " : "its writer has ended";
  finish_event_writer(EventsState::kEnded, 0);
}

void leave_event_writer(uint32_t fork) {
  if (g_header == nullptr || g_left_parents) return;
  g_left_parents = true;
  g_parent_fork = fork;
  if (fork == 0) g_fork_time = base::real_time();
  if (g_header->log[0] != '\0') memcpy(g_parent_log, g_header->log, sizeof g_parent_log);
  g_parent_log[sizeof g_parent_log - 1] = '\0';
  base::forget(base::Helper::kEventWriter);
  events::leave_rings();
}

void finish_event_writer(EventsState how, uint64_t seconds) {
  if (!base::has_helper(base::Helper::kEventWriter) || g_header == nullptr) return;
  g_parent_log[0] = '\0';  // another log of this process begins later
  store_release(g_header->state, how);
  fetch_add(g_header->bell, 1u);
  base::wake_all(g_header->bell);
  finish(*g_writer, seconds * 1'000'000'000u, 0);
}

}  // namespace mtrace::report
