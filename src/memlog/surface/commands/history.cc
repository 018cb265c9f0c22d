// memlog history: whose block an address is, or was.

#include "model/events/event_log.h"
#include "process/inspect/process.h"
#include "process/ptrace/heap_scan.h"
#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "surface/cli/tracing_options.h"
#include "util/text.h"
#include "view/reports/reports.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

constexpr char kHistoryHelp[] = R"(
Prints where and how long ago the live block at an address was allocated, and what points to it, as
memlog unreachable --block does; its help says how memlog looks for pointers.

Of other addresses it prints the last events, allocations and frees with times, threads and stacks,
if the process writes an event log with addresses (memlog run --events=full). The ledger knows live
blocks only.
)";

// The log that the process writes; empty: none.
std::string log_of_process(pid_t pid, const std::string& directory) {
  const std::string root = process::foreign_root(pid);
  std::string place = process::start_environment(pid, "MTRACE_EVENTS").value_or("");
  place = place.starts_with('/') ? root + place : fmt::format("/proc/{}/cwd/{}", pid, place);
  std::string found;
  uint64_t latest = 0;
  for (const std::string& where : {place, root + directory}) {
    for (const std::string& path : reports::event_logs(where)) {
      const bool named = path.find(fmt::format("-{}.", pid)) != std::string::npos;
      std::error_code error;
      const bool begun = std::filesystem::file_size(path, error) != 0;  // memlog writes it later
      if ((!named && path != where) || !begun) continue;
      const events::EventLog log(path);
      if (log.header().started < latest) continue;
      latest = log.header().started;
      found = path;
    }
  }
  return found;
}

int tell_history(const Arguments& arguments, const Streams& streams) {
  if (arguments.operands().size() != 2) {
    throw UsageError(arguments.lacking("give a process and an address"));
  }
  const std::string address = arguments.operands()[1];
  Arguments::Given given = {{"--block", address}};
  for (const Option& option : history_command().manual.options) {
    for (const std::string& value : arguments.values(option.name))
      given.emplace(option.name, value);
  }
  try {
    // Not its status: a lost block is an answer here.
    unreachable_command().run({history_command().manual, given, {arguments.operands()[0]}},
                              streams);
  } catch (const process::NoLiveBlock& gone) {
    const std::string log = log_of_process(gone.pid, gone.directory);
    if (log.empty()) throw;
    if (!arguments.has("--json")) {
      print(streams, fmt::format("{} lies in no live block of {}; the last events in {}:\n",
                                 address, gone.pid, text::plain(log)));
    }
    given.erase("--block");
    given.insert({{"--address", address}, {"--last", "20"}});
    return events_command().run({events_command().manual, given, {log}}, streams);
  }
  return kGood;
}

}  // namespace

const Command& history_command() {
  static const Command command = {
      {"history",
       "show who allocated the block at an address",
       "[OPTION]... PID|NAME ADDRESS",
       kHistoryHelp,
       {kJsonOption, kBytesOption, kColorOption, kLibraryOption, kOwnOption, kSysrootOption,
        kSymbolsOption},
       R"(0: done; 1: the address is in no live block and there is no event log, or the process does
       not exist, has no readable ledger, or cannot be stopped or copied; 2: wrong command line, or a
       part of the event log is missing.)",
       R"(  memlog history app 0x55d0c0a01100
)"},
      tell_history};
  return command;
}

}  // namespace mtrace::cli
