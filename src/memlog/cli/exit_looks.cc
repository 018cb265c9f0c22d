#include "cli/exit_looks.h"

#include <map>
#include <utility>

#include "cli/heap_scan.h"
#include "live/ledger_state.h"
#include "profile/text.h"
#include "target/ledgers.h"

namespace mtrace::cli {
namespace {

constexpr std::chrono::milliseconds kOften{5};
// Other threads of the process may run between the looks, and the process waits for them.
constexpr std::chrono::milliseconds kPause{1};

// The state of a process that holds only what is definitely lost.
live::LedgerState lost_state(const live::LedgerFile& ledger, const HeapScan& scan) {
  std::map<uint32_t, live::LedgerCounts> lost;
  for (size_t i = 0; i < scan.blocks().size(); ++i) {
    if (scan.reach(i) != analyze::Reach::kDefinite) continue;
    live::LedgerCounts& counts = lost[scan.blocks()[i].stack];
    counts.allocated_bytes += scan.blocks()[i].size;
    ++counts.allocated_blocks;
  }
  live::LedgerState state = live::read_ledger(ledger);
  std::erase_if(state.stacks, [&](const auto& stack) { return !lost.contains(stack.index); });
  for (live::LedgerStackState& stack : state.stacks) {
    stack.now = lost.at(stack.index);
    stack.reported = {};
    stack.slack = stack.share = 0;
    stack.shortest = stack.longest = 0;
  }
  return state;
}

}  // namespace

target::Tick ExitLooks::tick() {
  if (!active_) return {};
  return {kOften, [this](pid_t) {
            holds_.serve([this](pid_t pid, live::LedgerFile& ledger) { look(pid, ledger); });
          }};
}

void ExitLooks::look(pid_t pid, live::LedgerFile& ledger) {
  ExitLook found;
  found.name = profile::array_text(ledger.header().name);
  found.pid = pid;
  try {
    HeapScanSettings settings;
    settings.pause = kPause;
    const HeapScan scan(pid, ledger, settings);
    found.unknown = scan.unknown();
    found.blocks = scan.blocks().size();
    found.lost = target::memlog_of(ledger, lost_state(ledger, scan),
                                   {.trigger = "snapshot",
                                    .taken = target::real_time_now(),
                                    .label = "definitely lost",
                                    .notes = {}});
    for (profile::Entry& entry : found.lost.entries) {
      entry.peak = 0;
      entry.tells_live = false;
    }
    found.lost.header.peak.reset();
  } catch (const std::exception& error) {
    found.trouble = error.what();
  }
  found_.push_back(std::move(found));
}

}  // namespace mtrace::cli
