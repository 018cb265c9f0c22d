#include "report/memlog_writer.h"

#include <algorithm>
#include <cstring>

#include "format/calls.h"
#include "format/mapping_form.h"
#include "format/memlog.h"
#include "ledger/kind_names.h"
#include "ledger/stack_counters.h"
#include "report/frame_writer.h"
#include "report/header_writer.h"
#include "report/prefetch.h"

namespace mtrace::report {
namespace {

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
