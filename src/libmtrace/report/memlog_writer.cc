#include "report/memlog_writer.h"

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/file.h"
#include "base/machine.h"
#include "base/process.h"
#include "base/syscall.h"
#include "base/table_file.h"
#include "events/ring.h"
#include "format/calls.h"
#include "format/escape.h"
#include "format/mapping_form.h"
#include "format/memlog.h"
#include "ledger/ledger.h"
#include "ledger/region_table.h"
#include "ledger/resource_table.h"
#include "modules/modules.h"
#include "python/code.h"
#include "report/coverage.h"
#include "report/frame_writer.h"
#include "report/host.h"
#include "report/memory_use.h"
#include "report/status.h"
#include "unwind/registered_frames.h"

namespace mtrace::report {
namespace {

void text_line(Writer& out, const char* key, const char* value) {
  out.meta(key).escaped(value).put('\n');
}

void amount_line(Writer& out, const char* key, uint64_t bytes, uint64_t blocks) {
  out.meta(key).number(bytes).text(" bytes ").number(blocks).text(" blocks\n");
}

void number_line(Writer& out, const char* key, uint64_t number) {
  out.meta(key).number(number).put('\n');
}

void bytes_line(Writer& out, const char* key, uint64_t bytes) {
  out.meta(key).number(bytes).text(" bytes\n");
}

// "1.250" and the unit.
void thousandths_line(Writer& out, const char* key, uint64_t thousandths, const char* unit) {
  out.meta(key).number(thousandths / 1000).put('.').padded(thousandths % 1000, 3).text(unit);
}

void write_peak(Writer& out, const Occasion& occasion, const Snapshot& snapshot) {
  const PeakSeen& peak = snapshot.peak();
  // Relative to the start, not to now: every report then has the same time for the same peak.
  const uint64_t when = g_host.tick_zero + ledger::nanoseconds_of(peak.when);
  out.meta(format::kKeyPeak).number(peak.bytes).text(" bytes ");
  out.time(std::clamp(when, g_host.started, std::max(g_host.started, occasion.taken))).put('\n');
  if (peak.error != 0) bytes_line(out, format::kKeyPeakError, peak.error);
}

void write_lost(Writer& out, const ledger::Ledger& ledger) {
  out.meta(format::kKeyLost).text("frames=").number(ledger.stacks.lost_frames());
  out.text(" stacks=").number(ledger.stacks.lost_stacks());
  out.text(" blocks=").number(ledger.blocks.lost_blocks());
  out.text(" inflight=").number(ledger.lost_inflight);
  const format::LedgerHeader& header = *base::g_table_header;
  const auto lost = [&](const char* what, uint64_t count) {
    if (count != 0) out.text(what).number(count);
  };
  lost(" frees=", load(ledger.lost_frees));
  lost(" modules=", load(header.lost_modules));  // without a place in the list: frames unnamed
  lost(" notes=", load(header.lost_notes));
  lost(" resources=", load(header.lost_resources));
  lost(" regions=", load(header.lost_regions));
  lost(" events=", events::lost_events());
  lost(" python=", load(header.lost_python));  // frames of code objects without a number
  out.put('\n');
}

// Whether the ledger has all live blocks.
bool has_all_blocks(const ledger::Ledger& ledger) {
  return load(base::g_table_header->recording) != 0 && ledger::g_sample_mean == 0 &&
         ledger.blocks.lost_blocks() == 0 && !entry_points().late && !g_host.began_anew;
}

void write_memory_use(Writer& out, uint64_t live, const Occasion& occasion,
                      const ledger::Ledger& ledger) {
  const MemoryUse use = memory_use();
  if (use.resident == 0) return;
  // Under valgrind most of the process is valgrind's.
  if (!base::on_valgrind()) {
    write_resident(out, use.resident, live, occasion.regions, has_all_blocks(ledger), ledger);
  }
  bytes_line(out, format::kKeyRss, use.resident);
  bytes_line(out, format::kKeyRssMax, use.resident_max);
  bytes_line(out, format::kKeyVirtual, use.address_space);
}

// Writes "# perf-map: N bytes" if there is a /tmp/perf-PID.map, in which a runtime names the code
// that it makes. Code that is made later may take the addresses of other code: names after the
// first N bytes are later ones.
void write_perf_map(Writer& out, uint32_t pid) {
  char path[48];
  Writer name(path, sizeof path);
  name.text("/tmp/perf-").number(pid).text(".map");
  if (name.finish() != 0) return;
  const long bytes = base::plain_file_size(path);
  if (!base::failed(bytes)) bytes_line(out, format::kKeyPerfMap, static_cast<uint64_t>(bytes));
}

// Finds a mapped file whose path ends in `name` in /proc/PID/maps. True: `path` is set.
bool find_mapped(int maps, const char* name, char* path, size_t capacity) {
  char text[8192];
  const size_t length = strlen(name);
  bool found = false;
  base::each_line(maps, text, [&](const char* line, size_t size) {
    const char* const file = strchr(line, '/');
    const char* const end = line + size;
    const size_t bytes = file == nullptr ? 0 : static_cast<size_t>(end - file);
    found = bytes >= length && bytes < capacity && strcmp(end - length, name) == 0;
    if (found) memcpy(path, file, bytes + 1);
    return !found;
  });
  return found;
}

// Writes "# jit-dump: N bytes PATH" if the process has mapped a jit-PID.dump, of the same use.
// perf's rule is that the runtime maps a page of the file.
void write_jit_dump(Writer& out, uint32_t pid) {
  if (!unwind::has_seen_made_code()) return;
  char name[32];
  Writer writer(name, sizeof name);
  writer.text("/jit-").number(pid).text(".dump");
  if (writer.finish() != 0) return;
  const long maps = base::open_to_read("/proc/thread-self/maps");
  if (base::failed(maps)) return;
  char path[4096];
  const bool found = find_mapped(static_cast<int>(maps), name, path, sizeof path);
  base::close_file(static_cast<int>(maps));
  const long bytes = found ? base::plain_file_size(path) : -1;
  if (base::failed(bytes)) return;
  out.meta(format::kKeyJitDump).number(static_cast<uint64_t>(bytes)).text(" bytes ");
  out.escaped(path).put('\n');
}

// A summary, before the entries.
void write_head(Writer& out, const Occasion& occasion, const Snapshot& snapshot,
                const ledger::Ledger& ledger) {
  const Host& host = g_host;
  out.text(format::kMagicLine).put('\n');
  text_line(out, format::kKeyProgram, base::g_table_header->program);
  if (host.command != nullptr) {
    out.meta(format::kKeyCommand).text(host.command).put('\n');  // escaped when it was copied
  }
  number_line(out, format::kKeyPid, host.pid);
  if (host.parent != 0) number_line(out, format::kKeyParent, host.parent);
  number_line(out, format::kKeySeq, occasion.seq);
  text_line(out, format::kKeyTrigger, occasion.trigger);
  if (occasion.label != nullptr) text_line(out, format::kKeyLabel, occasion.label);
  out.meta(format::kKeyStarted).time(host.started).put('\n');
  out.meta(format::kKeyTaken).time(occasion.taken).put('\n');
  if (host.parent != 0 && !host.began_anew) {
    amount_line(out, format::kKeyInherited, ledger.inherited.bytes, ledger.inherited.blocks);
  }
  if (ledger::g_sample_mean != 0) bytes_line(out, format::kKeySampled, ledger::g_sample_mean);
  const ledger::Counters& change = snapshot.change();
  out.meta(format::kKeyDelta).signed_number(change.live_bytes());
  out.text(" bytes ").signed_number(change.live_blocks()).text(" blocks\n");
  const ledger::Counters& total = snapshot.total();
  amount_line(out, format::kKeyLive, ledger::live_bytes(total), ledger::live_blocks(total));
  bytes_line(out, format::kKeyUsable, ledger::live_bytes(total) + snapshot.slack());
  write_peak(out, occasion, snapshot);
  amount_line(out, format::kKeyAllocated, total.allocated_bytes, total.allocated_blocks);
  amount_line(out, format::kKeyFreed, total.freed_bytes, total.freed_blocks);
  write_lost(out, ledger);
  if (load(base::g_table_header->recording) == 0) text_line(out, format::kKeyRecording, "stopped");
  if (occasion.note != nullptr) text_line(out, format::kKeyNote, occasion.note);
  write_ledger_notes(out);
  write_full_since(out);
  write_coverage(out, ledger.threads.totals());
  write_notes(out, occasion.notes);
}

// Details, after the entries, with the modules that these have named.
void write_end(Writer& out, const Occasion& occasion, const Snapshot& snapshot,
               const ledger::Ledger& ledger, const ModuleSet& modules) {
  const Host& host = g_host;
  const format::LedgerHeader& header = *base::g_table_header;
  for (unsigned kind = 1; kind < Snapshot::kKinds; ++kind) {
    const char* name = ledger::kind_name(kind);
    if (name == nullptr) break;
    const ledger::Totals& live = snapshot.live_of_kind(kind);
    out.meta(format::kKeyKind).text(name).put(' ').number(live.bytes).text(" bytes ");
    out.number(live.blocks).text(" blocks\n");
  }
  write_modules(out, modules);
  out.meta(format::kKeyHost).escaped(header.node, " ");
  if (header.boot_id[0] != '\0') out.text(" boot-id=").text(header.boot_id);
  out.text(" arch=").text(machine::kName).text("\n");
  const ledger::ThreadTotals totals = ledger.threads.totals();
  const bool every = ledger::g_sample_mean == 0;  // otherwise the hooks have not seen all calls
  if (every) write_counts(out, format::kKeyCalls, format::kCallNames, totals.calls, ledger::kCalls);
  write_misuse(out);
  if (every) {
    number_line(out, format::kKeyFailed, totals.failed_allocations);
    number_line(out, format::kKeyUnknownFrees, totals.unknown_frees);
  }
  out.meta(format::kKeyReports).text("written=").number(occasion.seq);
  out.text(" failed=").number(load(base::g_table_header->failures)).put('\n');
  write_memory_use(out, ledger::live_bytes(snapshot.total()), occasion, ledger);
  uint64_t calls = 0;
  for (const uint64_t count : totals.calls) calls += count;
  write_cost(out, ledger, every ? calls : 0);
  write_perf_map(out, host.pid);
  write_jit_dump(out, host.pid);
  const uint64_t resolution = std::max(
      base::coarse_resolution(), ledger::nanoseconds_of(ledger::packed_step(snapshot.ticks())));
  thousandths_line(out, format::kKeyResolution, resolution / 1000, " ms\n");
  const uint64_t uptime = occasion.taken_monotonic - host.started_monotonic;
  thousandths_line(out, format::kKeyUptime, uptime / 1'000'000u, " seconds\n");
  const bool has_names = snapshot.size() != 0;
  text_line(out, format::kKeyResolved, has_names ? "no" : "yes");
  out.meta(format::kKeyLibrary)
      .text("mtrace " MTRACE_VERSION " ")
      .text(base::g_table_header->library);
  out.put('\n').text(format::kEndLine).put('\n');
}

[[gnu::noinline]] void write_field(Writer& out, const char* key, size_t size, uint64_t value) {
  out.bytes(key, size).put('=').number(value).put('\t');
}

template <size_t kSize>
void optional_field(Writer& out, const char (&key)[kSize], uint64_t value) {
  if (value != 0) write_field(out, key, kSize - 1, value);
}

void write_lifetimes(Writer& out, const Entry& entry) {
  if (entry.change.freed_blocks == 0 || entry.lifetimes.longest == 0) return;
  const uint64_t shortest =
      ledger::unpack_ticks(ledger::kMostPackedTicks + 1 - entry.lifetimes.shortest);
  const uint64_t longest = ledger::unpack_ticks(entry.lifetimes.longest - 1);
  // Mean, shortest and longest are not read at one moment.
  const uint64_t mean =
      std::clamp(entry.change.lifetime / entry.change.freed_blocks, shortest, longest);
  optional_field(out, format::kFieldLifetimeMin, ledger::milliseconds_of(shortest));
  optional_field(out, format::kFieldLifetimeMean, ledger::milliseconds_of(mean));
  optional_field(out, format::kFieldLifetimeMax, ledger::milliseconds_of(longest));
}

constexpr uint32_t kAhead = 8;  // entries that are prefetched at a time

// Writes the arguments of a stack's mmap.
void write_mapping_form(Writer& out, const ledger::StackRecord& stack) {
  const uint32_t form = ledger::mapping_form(stack);
  if (form == 0) return;
  out.text(format::kFieldProtection).put('=').text(format::MappingProtection(form).text);
  out.put('\t').text(format::kFieldFlags);
  char before = '=';
  const uint32_t rest = format::each_mapping_flag(form, [&](const char* name) {
    out.put(before).text(name);
    before = ',';
  });
  if (rest != 0) out.put(before).text("0x").hex(rest);
  out.put('\t');
}

bool is_saturated(const Entry& entry) {
  return entry.live == format::kMostFailed && entry.kind != 0 &&
         strcmp(ledger::kind_name(entry.kind), format::kKindFailed) == 0;
}

void write_entry(Writer& out, Snapshot& snapshot, const Entry& entry,
                 const ledger::StackRecord& stack, ModuleSet& modules, FrameLines& lines) {
  if (entry.kind != 0) out.put('@').text(ledger::kind_name(entry.kind)).put('\t');
  out.signed_number(entry.bytes()).put('\t');
  out.text(format::kFieldBlocks).put('=').signed_number(entry.blocks()).put('\t');
  out.text(format::kFieldLive).put('=').number(entry.live).put('\t');
  optional_field(out, format::kFieldAllocations, entry.change.allocated_blocks);
  optional_field(out, format::kFieldAllocated, entry.change.allocated_bytes);
  optional_field(out, format::kFieldFrees, entry.change.freed_blocks);
  optional_field(out, format::kFieldFreed, entry.change.freed_bytes);
  optional_field(out, format::kFieldTemporary, entry.change.temporary);
  optional_field(out, format::kFieldShortLived, entry.change.short_lived);
  write_lifetimes(out, entry);
  const uint64_t now = snapshot.ticks();
  const uint64_t oldest = snapshot.oldest(entry.stack);
  if (oldest < now) optional_field(out, format::kFieldAge, ledger::milliseconds_of(now - oldest));
  optional_field(out, format::kFieldSlack, entry.slack);
  optional_field(out, format::kFieldPeak, entry.share);
  if (is_saturated(entry)) out.text(format::kFieldSaturated).text("=1\t");
  write_mapping_form(out, stack);
  if (const char* call = format::call_name(stack.call)) {
    out.text(format::kFieldCall).put('=').text(call).put('\t');
  }
  out.text(format::kFieldStack).put('=').hex(entry.id, 16).put('\n');
  write_frames(out, entry.stack, modules, lines, snapshot.tails());
}

}  // namespace

void write_memlog(Writer& out, const Occasion& occasion, Snapshot& snapshot,
                  const ledger::Ledger& ledger) {
  ModuleSet modules;
  FrameLines lines;
  write_head(out, occasion, snapshot, ledger);
  // Records are in memory in another order, so they are prefetched.
  const uint32_t count = snapshot.size();
  for (uint32_t i = 0; i < count; ++i) {
    const auto stack = [&](uint32_t at) -> const ledger::StackRecord& {
      return ledger.stacks.record(snapshot.stack(at));
    };
    if (count - i > 2 * kAhead) {
      __builtin_prefetch(&stack(i + 2 * kAhead).hash);
      snapshot.prefetch_oldest(i + 2 * kAhead);
    }
    if (count - i > kAhead) prefetch_frames(stack(i + kAhead));
    write_entry(out, snapshot, snapshot.entry(i), stack(i), modules, lines);
  }
  write_tails(out, modules, lines, snapshot.tails());
  write_end(out, occasion, snapshot, ledger, modules);
}

}  // namespace mtrace::report
