#include "surface/serve/snapshots.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "format/memlog.h"
#include "model/profile/report_file.h"
#include "model/profile/writer.h"
#include "process/inspect/clock.h"
#include "process/inspect/ledgers.h"
#include "util/error.h"
#include "util/file.h"

namespace mtrace::serve {
namespace {

profile::Memlog named(const Heap& heap, const ledger::LedgerState& state) {
  profile::Memlog memlog = process::memlog_of(
      heap.ledger(), state,
      {.trigger = "snapshot", .taken = process::real_time_now(), .label = "", .notes = {}});
  heap.symbolizer().resolve(memlog);
  return memlog;
}

}  // namespace

SnapshotFile::SnapshotFile(const util::TemporaryDirectory& directory, profile::Memlog& memlog)
    : path_(fmt::format("{}/{}-{}-{}{}", directory.path(), util::base_name(memlog.header.program),
                        memlog.header.pid, memlog.header.seq, format::kSuffix)) {
  profile::write_report(path_, profile::write(memlog), false);
}

SnapshotFile::~SnapshotFile() { ::unlink(path_.c_str()); }

profile::Memlog since_start(const Heap& heap) {
  ledger::LedgerState state = heap.state();
  for (ledger::LedgerStackState& stack : state.stacks) {
    stack.reported = {};
    // They are those since the last report.
    if (heap.ledger().header().seq != 0) stack.shortest = stack.longest = 0;
  }
  profile::Memlog memlog = named(heap, state);
  memlog.header.seq = 1;
  return memlog;
}

profile::Memlog since(const ledger::LedgerState& before, const Heap& heap) {
  absl::flat_hash_map<uint32_t, ledger::LedgerCounts> base;
  for (const ledger::LedgerStackState& stack : before.stacks) base[stack.ordinal] = stack.now;
  ledger::LedgerState now = heap.state();
  for (ledger::LedgerStackState& stack : now.stacks) {
    stack.reported = base[stack.ordinal];
    stack.shortest = stack.longest = 0;
  }
  return named(heap, now);
}

}  // namespace mtrace::serve
