#include "report/own_cost.h"

#include "base/atomic.h"
#include "base/table_file.h"
#include "base/table_growth.h"
#include "format/memlog.h"
#include "report/status.h"

namespace mtrace::report {
namespace {

using format::OwnCost;

OwnCost& cost() { return mtrace_status_block.cost; }

void show(uint64_t OwnCost::*word, uint64_t value) {
  store(cost().*word, value);
  if (format::LedgerHeader* header = sys::g_table_header) store(header->cost.*word, value);
}

}  // namespace

OwnCost measure_cost(const ledger::Ledger& ledger) {
  show(&OwnCost::shadow, ledger.blocks.shadow_bytes());
  show(&OwnCost::memory,
       load(sys::g_table_growth.bytes) + sizeof ledger + ledger.stacks.bucket_bytes());
  return cost();
}

void add_stopped(uint64_t nanoseconds) {
  show(&OwnCost::stopped, load(cost().stopped) + nanoseconds);
}

void full_since(uint64_t time) { show(&OwnCost::full_since, time); }

void show_cost() {
  if (format::LedgerHeader* header = sys::g_table_header) header->cost = cost();
}

void reset_cost() {
  cost().stopped = cost().full_since = 0;
  show_cost();
}

void write_cost(Writer& out, const ledger::Ledger& ledger, uint64_t calls) {
  const OwnCost now = measure_cost(ledger);
  out.text("# ").text(format::kKeyCost).text(": memory=").number(now.memory);
  out.text(" shadow=").number(now.shadow);
  out.text(" stopped-us=").number(now.stopped / 1000);
  if (calls != 0) {
    const uint64_t nanoseconds = calls * format::kCallNanoseconds + now.stopped;
    out.text(" processor-ms=").number(nanoseconds / 1'000'000u);
  }
  out.put('\n');
}

void write_full_since(Writer& out) {
  const uint64_t since = load(cost().full_since);
  if (since == 0) return;
  out.text("# ").text(format::kKeyNote).text(": new blocks are lost since ").time(since);
  out.text(", when the tables had reached MTRACE_MAX_MEMORY\n");
}

}  // namespace mtrace::report
