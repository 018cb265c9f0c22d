#include "surface/cli/exit_looks.h"

#include "model/ledger/ledger_memlog.h"
#include "process/inspect/ledgers.h"
#include "process/inspect/process.h"
#include "surface/cli/filter_options.h"
#include "util/text.h"
#include "view/text/stack_names.h"

namespace mtrace::cli {
namespace {

constexpr std::chrono::milliseconds kLookEvery{1};
// Other threads of the process may run between the looks, and the process waits for them.
constexpr std::chrono::milliseconds kPause{1};
// Its other threads only: the thread that ends it waits in any case.
constexpr std::chrono::seconds kStopLimit{10};

// The state of a process that holds only what is definitely lost.
ledger::LedgerState lost_state(const ledger::LedgerFile& ledger, const process::HeapScan& scan) {
  std::map<uint32_t, ledger::LedgerCounts> lost;
  for (size_t i = 0; i < scan.blocks().size(); ++i) {
    if (scan.reach(i) != heap::Reach::kDefinite) continue;
    ledger::LedgerCounts& counts = lost[scan.blocks()[i].stack];
    counts.allocated_bytes += scan.blocks()[i].size;
    ++counts.allocated_blocks;
  }
  ledger::LedgerState state = ledger::read_ledger(ledger);
  std::erase_if(state.stacks, [&](const auto& stack) { return !lost.contains(stack.index); });
  for (ledger::LedgerStackState& stack : state.stacks) {
    stack.now = lost.at(stack.index);
    stack.reported = {};
    stack.slack = stack.share = 0;
    stack.shortest = stack.longest = 0;
  }
  return state;
}

// Names are looked up only where there are patterns.
void suppress(process::HeapScan& scan, const ledger::LedgerFile& ledger,
              const std::vector<analyze::StackPattern>& patterns) {
  if (patterns.empty()) return;
  const ledger::KnownLedger known(ledger);
  text::StackNames names(symbols::SearchPath(), std::make_shared<analyze::Responsible>());
  suppress_stacks(scan, ledger, known, names, patterns);
}

analyze::StacksLeftOut suppressed_sum(const process::HeapScan& scan) {
  analyze::StacksLeftOut sum;
  for (size_t i = 0; i < scan.blocks().size(); ++i) {
    if (!scan.suppressed(i)) continue;
    const auto& block = scan.blocks()[i];
    sum.add(block.stack + uint64_t{1}, "", static_cast<int64_t>(block.size));
  }
  return sum;
}

}  // namespace

std::vector<ExitLook> last_looks(std::vector<ExitLook> found) {
  std::vector<ExitLook> last;
  for (ExitLook& look : found) {
    const auto other = std::find_if(last.begin(), last.end(), [&](const ExitLook& one) {
      return one.pid == look.pid && one.lost.header.started == look.lost.header.started;
    });
    if (other == last.end()) {
      last.push_back(std::move(look));
    } else {
      *other = std::move(look);
    }
  }
  return last;
}

std::string other_losses_text(const std::vector<ExitLook>& looks, const text::Style& style) {
  std::string out;
  for (const auto& [reach, name] : {std::pair(heap::Reach::kIndirect, "indirectly"),
                                    std::pair(heap::Reach::kPossible, "possibly")}) {
    process::ReachSum sum;
    for (const ExitLook& look : looks) {
      sum.bytes += look.sums[process::reach_index(reach)].bytes;
      sum.blocks += look.sums[process::reach_index(reach)].blocks;
    }
    if (sum.blocks == 0) continue;
    out += fmt::format("{}{} lost {} in {}", out.empty() ? "also " : ", ", name,
                       text::size_text(sum.bytes, style), text::count_text(sum.blocks, "block"));
  }
  return out.empty() ? out : out + ": see memlog help unreachable\n";
}

ExitLookSettings exit_look_settings(const Arguments& arguments, const std::string& ledgers,
                                    const std::string& program) {
  ExitLookSettings settings;
  settings.ledgers = ledgers;
  settings.after_exit = arguments.has("--after-exit");
  if (ledgers.empty()) return settings;
  add_suppressions(arguments, settings.suppressions);
  const char* options = std::getenv("LSAN_OPTIONS");
  add_lsan_suppressions(arguments.command().c_str(), options == nullptr ? "" : options, ".",
                        program, settings.suppressions);
  return settings;
}

process::Tick ExitLooks::tick() {
  if (settings_.ledgers.empty()) return {};
  return {kLookEvery, [this](pid_t) {
            holds_.serve([this](pid_t pid, ledger::LedgerFile& ledger, ledger::HoldPoint point) {
              look(pid, ledger, point);
            });
          }};
}

void ExitLooks::look(pid_t pid, ledger::LedgerFile& ledger, ledger::HoldPoint point) {
  ExitLook found;
  found.name = util::array_text(ledger.header().name);
  found.pid = pid;
  found.point = point;
  try {
    search(found, ledger);
  } catch (const std::exception& error) {
    found.trouble = error.what();
  }
  found_.push_back(std::move(found));
}

void ExitLooks::search(ExitLook& found, ledger::LedgerFile& ledger) const {
  process::HeapScanSettings settings;
  settings.pause = kPause;
  settings.stop_limit = kStopLimit;
  settings.rests = process::all_tasks(found.pid).size() == 1;  // which waits for this look
  process::HeapScan scan(found.pid, ledger, settings);
  suppress(scan, ledger, settings_.suppressions);
  found.unknown = scan.unknown();
  found.blocks = scan.blocks().size();
  for (size_t i = 0; i < found.blocks; ++i) {
    found.sums[process::reach_index(scan.reach(i))].add(scan.blocks()[i].size);
  }
  found.suppressed = suppressed_sum(scan);
  found.lost = process::memlog_of(ledger, lost_state(ledger, scan),
                                  {.trigger = "snapshot",
                                   .taken = process::real_time_now(),
                                   .label = "definitely lost",
                                   .notes = {}});
  for (profile::Entry& entry : found.lost.entries) {
    entry.peak = 0;
    entry.tells_live = false;
  }
  found.lost.header.peak.reset();
}

}  // namespace mtrace::cli
