// memlog recover: a report from what a killed process left behind.
#include <unistd.h>

#include "model/profile/writer.h"
#include "model/symbols/symbolizer.h"
#include "process/inspect/ledgers.h"
#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "util/compression.h"
#include "util/error.h"
#include "util/text.h"

namespace mtrace::cli {
namespace {

constexpr char kRecoverHelp[] = R"(
Makes a report of the last state of a process that was killed (by SIGKILL, because memory ran out,
or with the machine) and kept its ledger in a file (MTRACE_LEDGER, which memlog run sets). It
contains what a report at that moment would have contained: the changes since the process's last
report. It also lists stacks that held memory but did not change. What each thread was doing at that
very moment may be missing: at most one allocation or free per thread. After a power failure, the
file is as old as what the kernel had written of it.

The report is named PROGRAM-PID-recovered.memlog, in the current directory; no file is replaced. Its
number is the one that the next report would have had; its time is the last sign of life in the
ledger. Frames are named from the files on this machine.

Without operands, lists the ledgers that killed processes have left in $XDG_RUNTIME_DIR, in /dev/shm
and in the current directory, and makes no report.

The ledger of a running process can be read, too. The report then shows the present, with what the
kernel says about the process's memory.
)";

void recover(const std::string& name, const Arguments& arguments, symbols::Symbolizer& resolver,
             const Streams& streams) {
  const ledger::LedgerFile file(name);
  const pid_t alive = process::process_of(file);
  profile::Memlog memlog = process::recovered_memlog(file, arguments.value("--label"));
  if (!arguments.has("--raw")) resolver.resolve(memlog);
  const std::string output = arguments.value("--output");
  const bool compress = arguments.has("--compress") || profile::is_compressed_name(output);
  if (output == "-" && compress) {
    util::compress(profile::write(memlog),
                   [&](std::string_view piece) { print(streams, std::string(piece)); });
  } else if (output == "-") {
    print(streams, profile::write(memlog));
  } else if (output.empty()) {
    print(streams, process::write_snapshot(memlog, ".", "recovered", compress) + '\n');
  } else {
    profile::write_report(output, profile::write(memlog), compress);
    print(streams, output + '\n');
  }
  if (arguments.has("--remove") && alive == 0 && ::unlink(name.c_str()) != 0) {
    throw util::FileError("cannot remove " + name, errno);
  }
}

// Lists what can be recovered, and says how.
int list_left(const Arguments& arguments, const Streams& streams) {
  for (const char* option : {"--output", "--compress", "--label", "--raw", "--remove"}) {
    if (arguments.has(option)) throw UsageError(fmt::format("recover: {} needs a ledger", option));
  }
  std::string first;
  for (const std::string& path : process::left_ledgers(".")) {
    try {
      const ledger::LedgerFile file(path);
      const profile::Header header = process::recovered_memlog(file, "").header;
      print(streams, fmt::format("{}\n    {} ({}): {} bytes live in {} blocks, last seen {}\n",
                                 util::escaped(path, ""), header.pid,
                                 util::escaped(util::array_text(file.header().name), ""),
                                 header.live.bytes, header.live.blocks, header.taken));
      if (first.empty()) first = path;
    } catch (const std::runtime_error& error) {
      complain(streams, error.what());
    }
  }
  if (first.empty()) {
    complain(streams,
             "no ledger of a killed process, neither here nor where memlog run keeps them");
    return kFailed;
  }
  print(
      streams,
      fmt::format("\nmemlog recover {} makes a report of the first; memlog status --clean removes "
                  "what lies outside the current directory\n",
                  util::escaped(first, "")));
  return kGood;
}

int run_recover(const Arguments& arguments, const Streams& streams) {
  const std::vector<std::string>& files = arguments.operands();
  if (files.empty()) return list_left(arguments, streams);
  if (arguments.has("--output") && files.size() != 1) {
    throw UsageError("recover: --output takes exactly one ledger");
  }
  symbols::Symbolizer resolver(search_path(arguments));
  int status = kGood;
  for (const std::string& file : files) {
    try {
      recover(file, arguments, resolver, streams);
    } catch (const util::FileError& error) {
      complain(streams, error.what());
      status = std::max<int>(status, kFailed);
    } catch (const std::runtime_error& error) {
      fmt::print(streams.err, "{}\n", error.what());
      status = kUnusable;
    }
  }
  return status;
}

}  // namespace

const Command& recover_command() {
  static const Command command = {
      {"recover",
       "make a report of the last state of a killed process",
       "\n[--label TEXT] [--raw] [--compress] [--remove] LEDGER...\n[OPTION]... -o FILE|- LEDGER",
       kRecoverHelp,
       {kSysrootOption,
        kSymbolsOption,
        {"--label", "-l", "TEXT", "Put this text into the header of the report."},
        {"--output", "-o", "FILE", "Write to FILE, replacing it; -: standard output."},
        {"--compress", "", "", "Compress the report with zstd; its name then ends in .memlog.zst."},
        {"--raw", "", "", "Keep frames as module and offset; memlog resolve can name them later."},
        {"--remove", "", "", "Remove the ledger afterwards, unless its process still runs."}},
       R"(0: done; 1: a ledger cannot be read, its report cannot be written, or there is none to
       list; 2: a file is not a ledger or too damaged to read, or the command line is wrong.)",
       R"(  memlog recover
  memlog recover /dev/shm/mtrace-4710/app-4711.ledger
  memlog recover -o - app-4711.ledger | memlog show --by live -
)"},
      run_recover};
  return command;
}

}  // namespace mtrace::cli
