#include "report/header_writer.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/machine.h"
#include "base/valgrind.h"
#include "events/ring.h"
#include "format/escape.h"
#include "format/memlog.h"
#include "ledger/kind_names.h"
#include "ledger/region_table.h"
#include "ledger/resource_table.h"
#include "modules/modules.h"
#include "python/code.h"
#include "report/coverage.h"
#include "report/host.h"
#include "report/jit_files.h"
#include "report/mapped_ledger.h"
#include "report/memory_use.h"
#include "report/misuse.h"
#include "report/own_cost.h"
#include "report/resident_memory.h"

namespace mtrace::report {
namespace {

Writer& meta(Writer& out, const char* key) { return out.text("# ").text(key).text(": "); }

void text_line(Writer& out, const char* key, const char* value) {
  meta(out, key).escaped(value, strlen(value), format::kReservedNone).put('\n');
}

void amount_line(Writer& out, const char* key, uint64_t bytes, uint64_t blocks) {
  meta(out, key).number(bytes).text(" bytes ").number(blocks).text(" blocks\n");
}

void number_line(Writer& out, const char* key, uint64_t number) {
  meta(out, key).number(number).put('\n');
}

void bytes_line(Writer& out, const char* key, uint64_t bytes) {
  meta(out, key).number(bytes).text(" bytes\n");
}

// "1.250 ms" of nanoseconds.
void milliseconds_line(Writer& out, const char* key, uint64_t nanoseconds) {
  const uint64_t microseconds = nanoseconds / 1000;
  meta(out, key).number(microseconds / 1000).put('.').padded(microseconds % 1000, 3);
  out.text(" ms\n");
}

void write_peak(Writer& out, const Occasion& occasion, const Snapshot& snapshot) {
  const PeakSeen& peak = snapshot.peak();
  // Relative to the start, not to now: every report then has the same time for the same peak.
  const uint64_t when = g_host.tick_zero + ledger::nanoseconds_of(peak.when);
  meta(out, format::kKeyPeak).number(peak.bytes).text(" bytes ");
  out.time(std::clamp(when, g_host.started, std::max(g_host.started, occasion.taken))).put('\n');
  if (peak.error != 0) bytes_line(out, format::kKeyPeakError, peak.error);
}

void write_lost(Writer& out, const ledger::Ledger& ledger) {
  meta(out, format::kKeyLost).text("frames=").number(ledger.stacks.lost_frames());
  out.text(" stacks=").number(ledger.stacks.lost_stacks());
  out.text(" blocks=").number(ledger.blocks.lost_blocks());
  out.text(" inflight=").number(ledger.lost_inflight);
  if (load(ledger.lost_frees) != 0) out.text(" frees=").number(load(ledger.lost_frees));
  // Modules without a place in the list; their frames have no name.
  if (unwind::lost_modules() != 0) out.text(" modules=").number(unwind::lost_modules());
  if (dropped_notes() != 0) out.text(" notes=").number(dropped_notes());
  if (ledger::g_resources.lost() != 0) out.text(" resources=").number(ledger::g_resources.lost());
  if (ledger::g_regions.lost() != 0) out.text(" regions=").number(ledger::g_regions.lost());
  if (events::lost_events() != 0) out.text(" events=").number(events::lost_events());
  // Frames of functions that found no room in the list of code objects.
  if (unwind::lost_python_frames() != 0) out.text(" python=").number(unwind::lost_python_frames());
  out.put('\n');
}

void write_calls(Writer& out, const ledger::ThreadTotals& totals) {
  const char* between = "# calls: ";
  for (unsigned call = 0; call < ledger::kCalls; ++call) {
    if (totals.calls[call] == 0) continue;
    out.text(between).text(format::kCallNames[call]).put('=').number(totals.calls[call]);
    between = " ";
  }
  if (*between == ' ') out.put('\n');
}

// Whether the ledger has all live blocks.
bool has_all_blocks(const Occasion& occasion, const ledger::Ledger& ledger) {
  return occasion.recording && ledger.sampling.mean == 0 && ledger.blocks.lost_blocks() == 0 &&
         !began_late() && !g_host.began_anew;
}

void write_memory_use(Writer& out, uint64_t live, const Occasion& occasion,
                      const ledger::Ledger& ledger) {
  const MemoryUse use = memory_use();
  if (use.resident == 0) return;
  // Under valgrind most of the process is valgrind's.
  if (!sys::on_valgrind()) {
    write_resident(out, use.resident, live, occasion.regions, has_all_blocks(occasion, ledger),
                   ledger);
  }
  bytes_line(out, format::kKeyRss, use.resident);
  bytes_line(out, format::kKeyRssMax, use.resident_max);
  bytes_line(out, format::kKeyVirtual, use.address_space);
}

}  // namespace

void write_head(Writer& out, const Occasion& occasion, const Snapshot& snapshot,
                const ledger::Ledger& ledger) {
  const Host& host = g_host;
  out.text(format::kMagicLine).put('\n');
  text_line(out, format::kKeyProgram, host.program);
  if (host.command != nullptr) {
    meta(out, format::kKeyCommand).text(host.command).put('\n');  // escaped when it was copied
  }
  number_line(out, format::kKeyPid, host.pid);
  if (host.parent != 0) number_line(out, format::kKeyParent, host.parent);
  number_line(out, format::kKeySeq, occasion.seq);
  text_line(out, format::kKeyTrigger, occasion.trigger);
  if (occasion.label != nullptr) text_line(out, format::kKeyLabel, occasion.label);
  meta(out, format::kKeyStarted).time(host.started).put('\n');
  meta(out, format::kKeyTaken).time(occasion.taken).put('\n');
  if (host.parent != 0 && !host.began_anew) {
    amount_line(out, format::kKeyInherited, ledger.inherited.bytes, ledger.inherited.blocks);
  }
  if (ledger.sampling.mean != 0) bytes_line(out, format::kKeySampled, ledger.sampling.mean);
  const ledger::Counters& change = snapshot.change();
  meta(out, format::kKeyDelta).signed_number(change.live_bytes());
  out.text(" bytes ").signed_number(change.live_blocks()).text(" blocks\n");
  const ledger::Counters& total = snapshot.total();
  amount_line(out, format::kKeyLive, ledger::live_bytes(total), ledger::live_blocks(total));
  bytes_line(out, format::kKeyUsable, ledger::live_bytes(total) + snapshot.slack());
  write_peak(out, occasion, snapshot);
  amount_line(out, format::kKeyAllocated, total.allocated_bytes, total.allocated_blocks);
  amount_line(out, format::kKeyFreed, total.freed_bytes, total.freed_blocks);
  write_lost(out, ledger);
  if (!occasion.recording) text_line(out, format::kKeyRecording, "stopped");
  if (occasion.note != nullptr) text_line(out, format::kKeyNote, occasion.note);
  write_ledger_notes(out);
  write_full_since(out);
  write_coverage(out, ledger.threads.totals());
  write_notes(out, occasion.notes);
}

void write_end(Writer& out, const Occasion& occasion, const Snapshot& snapshot,
               const ledger::Ledger& ledger, const ModuleSet& modules) {
  const Host& host = g_host;
  for (unsigned kind = 1; kind < Snapshot::kKinds; ++kind) {
    const char* name = ledger::kind_name(kind);
    if (name == nullptr) break;
    const ledger::Totals& live = snapshot.live_of_kind(kind);
    meta(out, format::kKeyKind).text(name).put(' ').number(live.bytes).text(" bytes ");
    out.number(live.blocks).text(" blocks\n");
  }
  write_modules(out, modules);
  meta(out, format::kKeyHost).escaped(host.node, strlen(host.node), " ");
  if (host.boot_id[0] != '\0') out.text(" boot-id=").text(host.boot_id);
  out.text(" arch=").text(machine::kName).text("\n");
  const ledger::ThreadTotals totals = ledger.threads.totals();
  const bool every = ledger.sampling.mean == 0;  // otherwise the hooks have not seen all calls
  if (every) write_calls(out, totals);
  write_misuse(out);
  if (every) {
    number_line(out, format::kKeyFailed, totals.failed_allocations);
    number_line(out, format::kKeyUnknownFrees, totals.unknown_frees);
  }
  meta(out, format::kKeyReports).text("written=").number(occasion.seq);
  out.text(" failed=").number(occasion.failures).put('\n');
  write_memory_use(out, ledger::live_bytes(snapshot.total()), occasion, ledger);
  uint64_t calls = 0;
  for (const uint64_t count : totals.calls) calls += count;
  write_cost(out, ledger, every ? calls : 0);
  write_jit_files(out, host.pid);
  milliseconds_line(out, format::kKeyResolution,
                    std::max(sys::coarse_resolution(),
                             ledger::nanoseconds_of(ledger::packed_step(snapshot.ticks()))));
  const uint64_t uptime = (occasion.taken_monotonic - host.started_monotonic) / 1'000'000u;
  meta(out, format::kKeyUptime).number(uptime / 1000).put('.').padded(uptime % 1000, 3);
  out.text(" seconds\n");
  const bool has_names = snapshot.size() != 0;
  text_line(out, format::kKeyResolved, has_names ? "no" : "yes");
  meta(out, format::kKeyLibrary).text("mtrace " MTRACE_VERSION " ").text(occasion.library);
  out.put('\n').text(format::kEndLine).put('\n');
}

}  // namespace mtrace::report
