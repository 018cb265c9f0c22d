// memlog push: sends reports to a memlog serve on another machine.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "surface/cli/command.h"
#include "surface/cli/fleet_export.h"
#include "surface/cli/report_options.h"
#include "view/reports/catalog.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

using fleet::ServerError;
using std::chrono::seconds;

constexpr char kPushHelp[] = R"(
Sends reports to memlog serve --receive at URL: those in the files and directories PATH, and in
directories below. Without PATH, the directory is that of MTRACE_OUTPUT, else the current one.

The server says which reports it holds, and memlog sends the others. So memlog remembers nothing: it
can be killed and started again at any time, and no report is lost or there twice. A report is known
by its host, boot, pid, start and number. Snapshots of ledgers are not sent.

A report without names gets them before it is sent, since the programs and their debug information
are on this machine. The files here stay as they are.

When the server does not answer, memlog tries again after 1, 2, 4 and 8 seconds, and then fails;
with --follow it goes on trying, once a minute at last.
)";

constexpr seconds kLook{1};          // between two looks at the directories
constexpr seconds kLongestWait{60};  // between two tries
constexpr unsigned kTries = 5;

// Tries until it succeeds or patience ends.
void push_patiently(fleet::Copier& copier, fleet::LocalReports& local, fleet::Transferred& done,
                    bool forever, const Streams& streams) {
  for (unsigned tries = 1;; ++tries) {
    const size_t stored = done.stored;
    try {
      return copier.copy(local, done);
    } catch (const ServerError& error) {
      if (error.kind() != ServerError::Kind::kPassing) throw;
      if (done.stored != stored) tries = 1;
      if (!forever && tries == kTries) throw;
      const seconds wait = std::min(seconds(1 << std::min(tries - 1, 6U)), kLongestWait);
      complain(streams, fmt::format("{}: trying again in {} s", error.what(), wait.count()));
      std::this_thread::sleep_for(wait);
    }
  }
}

int run_push(const Arguments& arguments, const Streams& streams) {
  if (arguments.operands().empty()) throw UsageError("push: give the URL of a memlog serve");
  const std::string url = arguments.operands().front();
  std::vector<std::string> paths(arguments.operands().begin() + 1, arguments.operands().end());
  if (paths.empty()) paths.push_back(reports::report_directory());
  if (!fleet::is_url(url)) {
    throw UsageError(fmt::format("push: {} is not a URL like http://web3:7040", url));
  }
  fleet::LocalReports local(paths, search_path(arguments));
  fleet::Remote remote = remote_at(url, arguments);
  fleet::Copier copier(remote, [&](const std::string& text) { complain(streams, text); });
  const bool follow = arguments.has("--follow");
  size_t refused = 0;
  do {
    fleet::Transferred done;
    push_patiently(copier, local, done, follow, streams);
    refused += done.refused;
    if (!follow || done.stored != 0) {
      print(streams,
            fmt::format("{} sent to {}, {} compressed{}\n", text::count_text(done.stored, "report"),
                        url, text::count_text(done.bytes, "byte"), done.left_text()));
    }
    std::fflush(streams.out);
    if (follow) std::this_thread::sleep_for(kLook);
  } while (follow);
  return refused == 0 ? kGood : kFailed;
}

}  // namespace

const Command& push_command() {
  static const Command command = {
      {"push",
       "send reports to memlog serve on another machine",
       "[OPTION]... URL [PATH...]",
       kPushHelp,
       {{"--follow", "-f", "", "Go on sending what appears, until memlog is killed."},
        kServerTokenOption,
        kCaFileOption,
        kSysrootOption,
        kSymbolsOption},
       R"(0: all are there; 1: the server does not answer or refuses, or a file is damaged or cannot
       be read; 2: wrong command line.)",
       R"(  memlog push http://collector:7040 --token-file token /var/tmp/reports
  memlog push --follow https://collector.example /var/tmp/reports
)"},
      run_push};
  return command;
}

}  // namespace mtrace::cli
