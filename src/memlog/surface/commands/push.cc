// memlog push: sends reports to a memlog serve on another machine.

#include "surface/cli/command.h"
#include "surface/cli/report_options.h"
#include "surface/serve/heaps.h"
#include "util/text.h"
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

// memlog collect: gathers reports of directories and servers in one directory.
namespace {

constexpr char kCollectHelp[] = R"(
Copies the reports of each SOURCE that the directory --to does not hold yet, compressed, as
DIR/HOST/PROGRAM-PID-START-BOOT-SEQ.memlog.zst. A source is a file, a directory with reports, there
or in directories below, or the URL of a memlog serve: of the directories that it serves and of the
reports that it has received. Each report is there once, whatever the sources have in common, and
however often memlog collect runs or is killed. A report is known by its host, boot, pid, start and
number. Snapshots of ledgers are not copied.

--discover asks on the local network which memlog serve --announce there are, lists them, and takes
their reports, too; without --to it only lists them. Any machine there can answer: the token of
--token-file is sent only to servers with https whose certificate is trusted (--ca-file).

A report without names gets them where it comes from: here for a file, at the server for a URL.
)";

// Lists the servers that announce themselves. Returns the URLs of those to collect from.
std::vector<std::string> discovered(const Arguments& arguments, const Streams& streams) {
  const uint64_t wait =
      arguments.milliseconds("--wait", 100, 60'000, "from 100ms to 1min, like 3s").value_or(3000);
  std::vector<std::string> urls;
  std::string out;
  for (const auto& server : serve::discover(std::chrono::milliseconds(wait))) {
    const bool exposes = arguments.has("--token-file") && !server.tls;
    out += fmt::format("{}  {}, memlog {}{}\n", server.url(), server.name, server.version,
                       exposes ? ": left out: without https, anybody could read the token" : "");
    if (!exposes) urls.push_back(server.url());
  }
  print(streams, out.empty() ? "no memlog serve --announce answers\n" : out);
  return urls;
}

int run_collect(const Arguments& arguments, const Streams& streams) {
  std::vector<std::string> sources = arguments.values("--from");
  if (!arguments.operands().empty()) throw UsageError("collect: sources are given by --from");
  const bool discovers = arguments.has("--discover");
  if (sources.empty() && !discovers) {
    throw UsageError("collect: give --from DIR, --from URL or --discover");
  }
  if (discovers && !arguments.has("--to") && sources.empty()) {
    discovered(arguments, streams);
    return kGood;
  }
  if (!arguments.has("--to")) throw UsageError("collect: give --to DIR");
  const std::string to = arguments.value("--to");
  if (discovers) {
    const std::vector<std::string> urls = discovered(arguments, streams);
    sources.insert(sources.end(), urls.begin(), urls.end());
  }
  fleet::Store store(to, read_store_limits(arguments));
  fleet::Transferred done;
  bool failed = false;
  for (const std::string& source : sources) {
    fleet::Copier copier(store, [&](const std::string& text) { complain(streams, text); });
    try {
      if (fleet::is_url(source)) {
        fleet::Remote remote = remote_at(source, arguments);
        copier.copy(remote, done);
      } else {
        fleet::LocalReports local({source}, search_path(arguments));
        copier.copy(local, done);
      }
    } catch (const std::runtime_error& error) {
      complain(streams, error.what());  // the other sources may do
      failed = true;
    }
  }
  print(streams, fmt::format("{} copied to {}{}\n", text::count_text(done.stored, "report"),
                             util::escaped(to, ""), done.left_text()));
  return failed || done.refused != 0 ? kFailed : kGood;
}

}  // namespace

const Command& collect_command() {
  static const Command command = {
      {"collect",
       "gather reports of directories and servers in one directory",
       "[--from SOURCE]... [--discover] --to DIR [OPTION]...",
       kCollectHelp,
       {{"--from", "", "SOURCE", "A file, a directory, or the URL of a memlog serve."},
        {"--discover", "", "",
         "Also from each memlog serve --announce that answers on the local network."},
        {"--wait", "", "TIME", "How long to wait for answers, 100ms to 1min. Default 3s.", "",
         "--discover"},
        {"--to", "", "DIR", "Where the reports go. Made if it does not exist."},
        kMaxDiskOption,
        kMaxAgeOption,
        kServerTokenOption,
        kCaFileOption,
        kSysrootOption,
        kSymbolsOption},
       R"(0: all are there; 1: a source cannot be read or does not answer, or a report is damaged;
       2: wrong command line.)",
       R"(  memlog collect --from http://web3:7040 --from http://web4:7040 --to fleet
  memlog collect --discover --token-file token --to fleet
  memlog collect --from /var/tmp/reports --to /srv/memlogs --max-disk 50G
)"},
      run_collect};
  return command;
}

}  // namespace mtrace::cli
