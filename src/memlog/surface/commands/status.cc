// memlog status: which processes are traced, or why one is not.
#include <sys/stat.h>
#include <unistd.h>

#include "format/memlog.h"
#include "model/ledger/ledger_file.h"
#include "model/ledger/ledger_memlog.h"
#include "model/symbols/elf_file.h"
#include "process/inspect/ledgers.h"
#include "process/inspect/mappings.h"
#include "process/inspect/process.h"
#include "process/inspect/traced.h"
#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "util/text.h"
#include "view/json/views.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

using format::Handler;
using format::Mode;

constexpr char kStatusHelp[] = R"(
Lists the processes that have libmtrace.so mapped: their state, the signal that makes them write a
report and whether it would work now, the number of the last report, and the directory for reports.
Below a process are the path of its ledger file, if it has one; what tracing costs the process;
since when new blocks are lost because of MTRACE_MAX_MEMORY; what went wrong last; allocators that are linked
into its program or libraries, whose memory is not counted; and Python functions that its stacks
lack. The cost is the memory of the tables (of a process without a ledger file as of its last
report), the time for which its threads have written reports, and an estimate of the processor time:
30 ns for each call of malloc and free. Without an argument, lists all processes that this user may
inspect. For a named process that is not traced, says why. With --clean, instead removes the ledgers
that killed or detached processes have left, and prints their paths.

States: active (counts), starting, dormant (excluded by MTRACE_FOLLOW), quiet (the library gave up
or was detached; the program runs on). After the signal: ready; taken or ignored by the program;
blocked in every thread; lost (no longer caught); swallowed (caught without a report); forbidden (the
program has added a seccomp filter, which may not let a handler return).
)";

std::string state(Mode mode) {
  switch (mode) {
    case Mode::kStarting:
      return "starting";
    case Mode::kActive:
      return "active";
    case Mode::kDormant:
      return "dormant";
    case Mode::kQuiet:
      return "quiet";
  }
  return "?";
}

// The signal that gets a report; empty: none does.
std::string signal_of(const format::StatusBlock& block) {
  return block.signal <= 0 || block.handler == Handler::kNone ? ""
                                                              : process::signal_name(block.signal);
}

// What stands in the way of that signal; "ready": nothing.
const char* signal_state(const process::TracedProcess& process) {
  const format::StatusBlock& block = process.block();
  switch (block.handler) {
    case Handler::kProgram:
      return "taken";
    case Handler::kIgnored:
      return "ignored";
    case Handler::kSwallowed:
      return "swallowed";
    case Handler::kForbidden:
      return "forbidden";
    default:
      break;
  }
  const auto masks = process::signal_masks(process.pid());
  const uint64_t bit = uint64_t{1} << ((block.signal - 1) & 63);
  if (masks && (masks->caught & bit) == 0) return "lost";
  return masks && (masks->blocked & bit) != 0 ? "blocked" : "ready";
}

// What is not covered of processes. Files that have allocators linked into them are looked at once.
class Gaps {
 public:
  // Lines "not covered: FUNCTION of PATH: ...", and one about Python.
  std::vector<std::string> of(const process::TracedProcess& process) {
    std::vector<std::string> lines;
    if (process.block().mode != Mode::kActive) return lines;
    if (std::string python = process.python_gap(); !python.empty()) {
      lines.push_back(std::move(python));
    }
    const auto files = process::mapped_files(process.pid());
    const auto live = process.live_bytes();
    if (!files) return lines;
    for (const process::Mapping& file : *files) {
      const auto [found, is_new] = known_.try_emplace(file.inode);
      if (is_new) {
        found->second = symbols::linked_allocator_of(process::open_mapped(process.pid(), file));
      }
      if (found->second.empty()) continue;
      lines.push_back(fmt::format(
          "{}{} of {}: linked into it, so its calls do not come to the library{}",
          format::kNotCovered, found->second, util::escaped(file.path, ""),
          live ? symbols::uncovered_share(process::resident_bytes(process.pid()), *live) : ""));
    }
    return lines;
  }

 private:
  std::map<std::string, std::string> known_;  // by device and inode
};

// Returns the path of the process's ledger as this process opens it; empty: it has none.
std::string ledger_path(const process::TracedProcess& process) {
  const std::string ledger = util::array_text(process.header().path);
  return ledger.empty() ? "" : fmt::format("/proc/{}/root{}", process.pid(), ledger);
}

// Returns what the process's tables take of memory, or of the disk that their file is on; 0: not
// known.
uint64_t tables_bytes(const process::TracedProcess& process) {
  const std::string path = ledger_path(process);
  struct stat file = {};
  constexpr uint64_t kBlock = 512;  // of st_blocks, whatever the file system
  if (path.empty() || ::stat(path.c_str(), &file) != 0) return process.header().cost.memory;
  return static_cast<uint64_t>(file.st_blocks) * kBlock;
}

void put_cost(json::Value& out, const process::TracedProcess& process) {
  json::put_number(out, "tables_bytes", tables_bytes(process));
  const format::OwnCost& own = process.header().cost;
  const auto calls = process.calls();
  if (!calls) return;
  const ledger::TracingCost cost = ledger::tracing_cost(own, *calls, own.full_since != 0);
  out["shadow_bytes"] = cost.shadow;
  out["reports_us"] = cost.stopped / 1'000;
  json::put_number(out, "processor_ms", cost.processor / 1'000'000);
  if (own.full_since != 0) out["full_since"] = util::time_text(own.full_since);
}

json::Value process_json(const process::TracedProcess& process, Gaps& gaps) {
  const format::StatusBlock& block = process.block();
  json::Value out = {
      {"pid", process.pid()}, {"name", json::plain(process.name())}, {"state", state(block.mode)}};
  const std::string signal = signal_of(block);
  json::put_text(out, "signal", signal);
  out["signal_state"] = signal.empty() ? "none" : signal_state(process);
  out["last_report_seq"] = process.seq();
  out["directory"] = json::plain(util::array_text(process.header().directory));
  json::put_text(out, "reason", json::plain(util::array_text(block.reason)));
  if (process.is_child_without_report()) {
    out["forked_from_pid"] = process.header().pid;
    return out;
  }
  const std::string ledger(util::array_text(process.header().path));
  const std::string place = fmt::format("/proc/{}/root{}", process.pid(), ledger);
  const bool gone = ::access(place.c_str(), F_OK) != 0 && errno == ENOENT;  // after memlog detach
  json::put_text(out, "ledger", gone ? "" : json::plain(ledger));
  put_cost(out, process);
  if (process.header().failures != 0) {
    out["reports_failed"] = process.header().failures;
    out["last_error"] = json::plain(util::array_text(block.error));
    if (block.error_number > 0) out["last_error_reason"] = std::strerror(block.error_number);
  }
  const std::vector<std::string> not_covered = gaps.of(process);
  if (!not_covered.empty()) out["not_covered"] = not_covered;
  return out;
}

constexpr char kBelowProcess[] =
    "[        {reason}\n]"
    "[        forked from {forked_from_pid}, has not reported yet\n]"
    "[        ledger {ledger}\n]"
    "[        tables of the library: {tables_bytes:,} bytes"
    "[, {shadow_bytes:,} of them for the shadow of the heap]\n]"
    "[        time spent writing reports: {reports_us:,} us\n]"
    "[        estimated processor time of tracing: {processor_ms:,} ms\n]"
    "[        new blocks are lost since {full_since}: the tables had reached MTRACE_MAX_MEMORY\n]"
    "[        {reports_failed:report} failed, the last: {last_error}[: {last_error_reason}]\n]"
    "[        {not_covered:\n        }\n]";

// The text that a person reads, or the JSON object.
std::string listing(const json::Value& processes, bool as_json) {
  if (as_json) {
    json::Value answer = json::answer("status");
    answer["processes"] = processes;
    return json::text(answer);
  }
  if (processes.size() == 0) return {};
  return text::table({{"PID", "{pid}"},
                      {"NAME", "{name}"},
                      {"STATE", "{state}"},
                      {"SIGNAL", "[{signal} ]{signal_state}"},
                      {"REPORT", "{last_report_seq}"},
                      {"DIRECTORY", "{directory}"}},
                     processes, {}, [&](size_t i) {
                       return text::filled(kBelowProcess, processes.elements()[i]);
                     });
}

int clean(const Arguments& arguments, const Streams& streams) {
  if (!arguments.operands().empty()) throw UsageError("status: --clean takes no process");
  int status = kGood;
  for (const std::string& path : process::left_ledgers()) {
    if (::unlink(path.c_str()) == 0) {
      print(streams, fmt::format("removed {}\n", util::escaped(path, "")));
    } else {
      complain(streams,
               fmt::format("cannot remove {}: {}", util::escaped(path, ""), std::strerror(errno)));
      status = kFailed;
    }
  }
  process::sweep_ledgers();  // the directories that are empty now
  return status;
}

int run_status(const Arguments& arguments, const Streams& streams) {
  if (arguments.has("--clean")) return clean(arguments, streams);
  json::Value processes = json::Value::array();
  Gaps gaps;
  std::string why;
  if (arguments.operands().empty()) {
    for (const pid_t pid : process::all_processes()) {
      if (const auto process = process::TracedProcess::find(pid, false, why)) {
        processes.push_back(process_json(*process, gaps));
      }
    }
    print(streams, listing(processes, arguments.has("--json")));
    if (processes.size() != 0) return kGood;
    complain(streams, "none of the processes that this user may inspect is traced");
    return kFailed;
  }
  int status = kGood;
  std::set<pid_t> known;
  for (const std::string& name : arguments.operands()) {
    const std::vector<pid_t> pids = process::find_processes(name);
    if (pids.empty()) {
      complain(streams, process::no_process_text(name));
      status = kFailed;
    }
    for (const pid_t pid : pids) {
      if (!known.insert(pid).second) continue;
      const auto process = process::TracedProcess::find(pid, true, why);
      if (process) {
        processes.push_back(process_json(*process, gaps));
        continue;
      }
      complain(streams,
               fmt::format("{} ({}) {}", pid, util::escaped(process::process_name(pid), ""), why));
      status = kFailed;
    }
  }
  print(streams, listing(processes, arguments.has("--json")));
  return status;
}

}  // namespace

const Command& status_command() {
  static const Command command = {
      {"status",
       "list traced processes, or say why one is not traced",
       "[OPTION]... [PID|NAME]...",
       kStatusHelp,
       {{"--clean", "", "",
         R"(Remove ledgers that no process has open: what memlog recover lists in $XDG_RUNTIME_DIR and
         /dev/shm.)",
         "", "", "--json"},
        kJsonOption},
       R"(0: every named process is traced, or, without a name, at least one process is; with --clean:
       nothing is left; 1: not so; 2: wrong command line.)",
       R"(  memlog status
  memlog status nginx
  memlog status --json | jq -r '.processes[].ledger'
)"},
      run_status};
  return command;
}

}  // namespace mtrace::cli
