// The functions that include/mtrace.h calls and documents. They work before main, in exit handlers
// and in any thread; in a process that is not traced they return 0.
#include <cstring>

#include "base/file.h"
#include "base/machine.h"
#include "ledger/block_table.h"
#include "ledger/ledger.h"
#include "ledger/resource_table.h"
#include "life/lifecycle.h"
#include "life/reporting.h"
#include "record/call_stack.h"
#include "record/recorder.h"
#include "report/frame_writer.h"
#include "report/host.h"
#include "report/notes.h"
#include "report/savepoints.h"

using namespace mtrace;

namespace {

using ledger::g_ledger;
using ledger::g_resources;
using report::count_misuse;
using report::Misuse;

constexpr int kStandardError = 2;

// The calls of a vfork child count as its parent's, as its allocations do.
bool is_counting() { return life::start() && record::counting(); }
// Savepoints and output belong to the parent of a vfork child, which waits meanwhile.
bool is_own_process() { return life::start() && life::is_own_process(); }

int64_t compare(report::SavepointHandle handle) {
  report::Growth growth;
  return report::compare_savepoint(handle, &growth) ? growth.bytes : 0;
}

int64_t check(report::SavepointHandle handle) {
  report::Growth growth;
  if (!report::compare_savepoint(handle, &growth)) return 0;
  if (growth.bytes > 0) report::write_growth(growth, kStandardError);
  return growth.bytes > 0 ? growth.bytes : 0;
}

// Resources of the program's own go the way of blocks, and are never part of the heap. Both
// functions return 0, or -1 when there is no room or the call is invalid, which is counted
// (report/notes.h).

void book_end(const ledger::Resource& resource) {
  ledger::count_released(g_ledger.stacks.record(resource.stack), resource.size);
}

int record_resource(const char* kind, uint64_t id, int64_t size, const unwind::Registers& caller) {
  if (!ledger::is_kind_name(kind)) {
    count_misuse(Misuse::kKind);
    return -1;
  }
  if (size < 0 || static_cast<uint64_t>(size) > ledger::kMostBytes) {
    count_misuse(Misuse::kSize);
    return -1;
  }
  const unsigned number = ledger::find_or_add_kind(kind);
  if (number == 0) {
    count_misuse(Misuse::kKinds);
    return -1;
  }
  ledger::Operation operation(g_ledger.threads.slot(record::this_slot()));
  const uint32_t index = record::intern_of_kind(number, caller);
  if (index == 0) return -1;
  ledger::StackRecord& stack = g_ledger.stacks.record(index);
  const ledger::Resource resource = {static_cast<uint64_t>(size), index};
  // Counted before another thread can release it: no stack may release more than it recorded.
  ledger::count_recorded(stack, resource.size);
  ledger::Resource ended;
  const bool known = g_resources.put(number, id, resource, &ended);
  if (ended.stack != 0) {
    count_misuse(Misuse::kDuplicate);
    book_end(ended);
  }
  if (!known) book_end(resource);
  return known ? 0 : -1;
}

int release_resource(const char* kind, uint64_t id) {
  if (!ledger::is_kind_name(kind)) {
    count_misuse(Misuse::kKind);
    return -1;
  }
  ledger::Operation operation(g_ledger.threads.slot(record::this_slot()));
  const unsigned number = ledger::find_kind(kind);
  ledger::Resource resource;
  if (number == 0 || !g_resources.take(number, id, &resource)) {
    if (report::g_host.began_anew) return 0;  // it may be the parent's
    count_misuse(Misuse::kRelease);
    return -1;
  }
  if (resource.stack != 0) book_end(resource);
  return 0;
}

}  // namespace

MTRACE_EXPORT int mtrace_report() { return life::trigger_report(report::Trigger::kApi, nullptr); }

MTRACE_EXPORT int mtrace_report_label(const char* label) {
  return life::trigger_report(report::Trigger::kApi, label);
}

MTRACE_EXPORT size_t mtrace_live_bytes() {
  return is_counting() ? ledger::g_ledger.threads.totals().live_bytes : 0;
}
MTRACE_EXPORT size_t mtrace_live_blocks() {
  return is_counting() ? ledger::g_ledger.threads.totals().live_blocks : 0;
}
MTRACE_EXPORT size_t mtrace_peak_bytes() {
  return is_counting() ? ledger::g_ledger.peak.height_now(ledger::g_ledger.threads) : 0;
}

// The layout is that of mtrace.h.
struct MtraceUsage {
  size_t requested;
  size_t usable;
  size_t blocks;
};
MTRACE_EXPORT int mtrace_usage(MtraceUsage* usage) {
  if (!is_counting()) return 0;
  const ledger::Usage now = ledger::usage();
  *usage = {now.requested, now.usable, now.blocks};
  return 0;
}

MTRACE_EXPORT int mtrace_start() { return is_counting() && life::set_recording(true) ? 1 : 0; }
MTRACE_EXPORT int mtrace_stop() { return is_counting() && life::set_recording(false) ? 1 : 0; }

MTRACE_EXPORT int mtrace_note_text(const char* text, int cut) {
  if (!is_counting()) return 0;
  const size_t length = text != nullptr ? strnlen(text, report::kMostNote + 1) : 0;
  if (length == 0 || length > report::kMostNote || cut != 0) {
    report::count_misuse(report::Misuse::kNote);
  }
  return length != 0 && report::add_note(text, cut != 0) ? 0 : -1;
}

MTRACE_EXPORT int mtrace_save(const char* name) {
  return !is_own_process() || report::save_savepoint(name) ? 0 : -1;
}

MTRACE_EXPORT int mtrace_update(const char* name) {
  if (!is_own_process()) return 0;
  const report::SavepointHandle handle = report::find_savepoint(name);
  return handle != 0 && report::update_savepoint(handle) ? 0 : -1;
}

MTRACE_EXPORT int64_t mtrace_compare(const char* name) {
  if (!is_own_process()) return 0;
  const report::SavepointHandle handle = report::find_savepoint(name);
  return handle != 0 ? compare(handle) : 0;
}

MTRACE_EXPORT int64_t mtrace_check(const char* name) {
  if (!is_own_process()) return 0;
  const report::SavepointHandle handle = report::find_savepoint(name);
  return handle != 0 ? check(handle) : 0;
}

MTRACE_EXPORT uint64_t mtrace_savepoint_new() {
  return is_own_process() ? report::make_savepoint() : 0;
}

MTRACE_EXPORT int mtrace_savepoint_label(uint64_t handle, const char* label) {
  return !is_own_process() || report::label_savepoint(handle, label) ? 0 : -1;
}

MTRACE_EXPORT int mtrace_savepoint_update(uint64_t handle) {
  return !is_own_process() || report::update_savepoint(handle) ? 0 : -1;
}

MTRACE_EXPORT int64_t mtrace_savepoint_compare(uint64_t handle) {
  return is_own_process() ? compare(handle) : 0;
}

MTRACE_EXPORT int64_t mtrace_savepoint_check(uint64_t handle) {
  return is_own_process() ? check(handle) : 0;
}

MTRACE_EXPORT int mtrace_savepoint_explain(uint64_t handle, int fd) {
  if (!is_own_process()) return 0;
  report::Growth growth;
  return report::compare_savepoint(handle, &growth) && report::write_growth(growth, fd) ? 0 : -1;
}

MTRACE_EXPORT int mtrace_savepoint_free(uint64_t handle) {
  return !is_own_process() || report::free_savepoint(handle) ? 0 : -1;
}

MTRACE_EXPORT int mtrace_record(const char* kind, uint64_t id, int64_t size) {
  return is_counting() ? record_resource(kind, id, size, MTRACE_CALLER_REGISTERS()) : 0;
}

MTRACE_EXPORT int mtrace_release(const char* kind, uint64_t id) {
  return is_counting() ? release_resource(kind, id) : 0;
}

MTRACE_EXPORT int mtrace_backtrace(int fd) {
  if (!is_own_process()) return 0;
  if (record::modules_changed()) record::retire_unloaded();
  return report::write_backtrace(MTRACE_CALLER_REGISTERS(), fd);
}
