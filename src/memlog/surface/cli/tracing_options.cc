#include "surface/cli/tracing_options.h"

#include <sys/stat.h>
#include <unistd.h>

#include "format/memlog.h"
#include "process/inspect/process.h"
#include "process/ptrace/attach.h"
#include "process/ptrace/safe_point.h"
#include "surface/cli/exit_looks.h"
#include "surface/cli/filter_options.h"
#include "surface/cli/report_options.h"
#include "util/text.h"
#include "view/reports/catalog.h"
#include "view/text/style.h"

namespace mtrace::cli {
namespace {

constexpr char kText[] = R"(
Runs PROGRAM with libmtrace.so preloaded. Its arguments, standard streams, signals and exit status
stay as they are. Signals that memlog receives are passed on; if a signal kills the program, memlog
ends by the same signal. Options end where PROGRAM begins.

When the program has ended, memlog prints its peak and what was live at exit to standard error, each
with the five functions that hold most. If several processes have reported, it prints this for the
largest, and a line about each of the others. Memory live at exit is not necessarily leaked:
--unreachable finds what is.

The program and the programs that it starts keep their tables in files while they run. memlog top
reads these files. They are deleted when a process ends. If it was killed (Ctrl-C, SIGTERM, lack of
memory), memlog first makes a report from its file, PROGRAM-PID-recovered.memlog, and sums up that.

memlog looks for the library beside itself, then where it is installed. MTRACE_ variables in the
environment (memlog help options) apply unless an option here replaces them. Programs that are
statically linked or set-uid run untraced, and a message says so. So do programs of another word size,
and of a libc other than glibc and musl; memlog runs them without the library in LD_PRELOAD.
)";

void make_directory(const std::string& command, const char* option, const std::string& path) {
  const auto refuse = [&](const char* why) {
    throw UsageError(fmt::format("{}: {} {}: {}", command, option, path, why));
  };
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    refuse(std::strerror(errno));
  }
  struct stat state = {};
  if (::stat(path.c_str(), &state) != 0 || !S_ISDIR(state.st_mode)) {
    refuse("not a directory");
  }
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    refuse(std::strerror(errno));
  }
}

// The value is a template unless it ends with a slash, and percent signs are special in both.
std::string output_setting(const std::string& directory) {
  std::string path = std::filesystem::absolute(directory).lexically_normal();
  for (size_t at = 0; (at = path.find('%', at)) != std::string::npos; at += 2) path.insert(at, "%");
  return path.ends_with('/') ? path : path + '/';
}

// "collector", "collector:7040" or a URL.
fleet::HttpServerAddress read_receiver(const Arguments& arguments) {
  const std::string wish = arguments.value("--to");
  const bool has_port = wish.find(':', wish.rfind(']') + 1) != std::string::npos;
  const bool is_url = wish.find("://") != std::string::npos;
  try {
    return fleet::read_url(is_url ? wish : "http://" + wish + (has_port ? "" : ":7040"));
  } catch (const std::runtime_error& error) {
    throw UsageError(fmt::format("{}: --to {}", arguments.command(), error.what()));
  }
}

void read_streaming(const Arguments& arguments, RunOptions& options) {
  if (!arguments.has("--to")) return;
  options.receiver = read_receiver(arguments);
  options.settings.push_back("MTRACE_EVENTS=" + options.receiver.origin + options.receiver.path);
  // The same files for programs that are started elsewhere.
  const auto set_file = [&](const char* option, const char* variable) {
    if (!arguments.has(option)) return std::string();
    const std::string path = std::filesystem::absolute(arguments.value(option));
    options.settings.push_back(variable + path);
    return path;
  };
  options.token_file = set_file("--token-file", "MEMLOG_EVENTS_TOKEN_FILE=");
  options.receiver.ca_file = set_file("--ca-file", "MEMLOG_EVENTS_CA_FILE=");
}

std::chrono::milliseconds read_timeline_interval(const Arguments& arguments) {
  if (arguments.value("--timeline") == "none") return std::chrono::milliseconds(0);
  const auto interval = arguments.milliseconds("--timeline", 10, 1000, "from 10ms to 1s, nor none");
  return std::chrono::milliseconds(interval.value_or(10));
}

}  // namespace

std::vector<std::string> unknown_variables() {
  const std::string prefix = "MTRACE_";
  const std::vector<std::string> options = {
#define MTRACE_OPTION(member, variable, ...) std::string(variable).substr(prefix.size()),
#include "format/options.def"
#undef MTRACE_OPTION
  };
  std::vector<std::string> complaints;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string name = std::string(*entry).substr(0, std::strcspn(*entry, "="));
    if (name.size() <= prefix.size() || !name.starts_with(prefix)) continue;
    const std::string word = name.substr(prefix.size());
    if (std::find(options.begin(), options.end(), word) != options.end()) continue;
    const std::string meant = nearest(word, options);
    complaints.push_back(
        util::escaped(name, "") + " is not an option" +
        (meant.empty() ? " (memlog help options)" : ": did you mean " + prefix + meant + '?'));
  }
  return complaints;
}

RunOptions read_run_options(const Arguments& arguments) {
  RunOptions options;
  const std::string& command = arguments.command();
  options.quiet = arguments.has("--quiet");
  const auto set = [&](const char* variable, const auto& value) {
    options.settings.push_back(fmt::format("{}={}", variable, value));
  };
  if (arguments.has("--depth")) {
    set("MTRACE_DEPTH", arguments.number("--depth", format::kMaxDepth, 1, format::kMaxDepth));
  }
  if (arguments.has("--signal")) {
    const std::string name = arguments.value("--signal");
    if (!process::signal_number(name)) {
      throw UsageError(
          fmt::format("{}: --signal {} is not a signal that can be caught", command, name));
    }
    set("MTRACE_SIGNAL", name);
  }
  if (arguments.has("--follow")) {
    if (arguments.value("--follow").empty()) throw UsageError(command + ": --follow is empty");
    set("MTRACE_FOLLOW", arguments.value("--follow"));
  }
  if (const auto size = arguments.bytes("--sample", 1, "like 4096 or 512K")) {
    set("MTRACE_SAMPLE", *size);
  }
  for (const text::Runtime& runtime : text::kRuntimes) {
    const char* const now = std::getenv(runtime.variable);
    const std::string before = now != nullptr && runtime.is_list ? std::string(now) + ' ' : "";
    const bool wanted = arguments.has(runtime.option);
    if (wanted ||
        (now != nullptr && std::string_view(now).find(runtime.value) != std::string::npos)) {
      options.seen.push_back(&runtime);
    }
    if (wanted) options.settings.push_back(runtime.variable + ('=' + before) + runtime.value);
  }
  if (arguments.has("--compress")) {
    options.settings.emplace_back("MTRACE_COMPRESS=1");
  } else if (command == "run" && !arguments.has("--no-compress") &&
             std::getenv("MTRACE_COMPRESS") == nullptr) {
    options.compress_large = true;
    options.settings.emplace_back("MTRACE_COMPRESS=2");
  }
  if (arguments.has("--events") && !arguments.has("--to")) {
    options.settings.emplace_back("MTRACE_EVENTS=1");
  }
  read_streaming(arguments, options);
  for (const auto& [option, setting] :
       {std::pair{"--events=full", "MTRACE_EVENTS_FULL=1"},
        std::pair{"--events-drop", "MTRACE_EVENTS_DROP=1"},
        std::pair{"--free-stacks", "MTRACE_EVENTS_FREE_STACKS=1"}}) {
    if (arguments.has(option)) options.settings.emplace_back(setting);
  }
  if (const auto cull = arguments.milliseconds("--cull", 1, 60'000, "from 1ms to 60s, like 1s")) {
    set("MTRACE_EVENTS_CULL_MS", *cull);
  }
  if (const auto most = arguments.bytes("--events-max", 1 << 20, "from 1M, like 1G")) {
    set("MTRACE_EVENTS_MAX", *most);
  }
  if (arguments.has("--events-files")) {
    set("MTRACE_EVENTS_FILES", arguments.number("--events-files", 2, 1, 1000));
  }
  if (const auto every =
          arguments.milliseconds("--every", 100, 31536000000, "from 100ms to 365d, like 10s")) {
    options.every = std::chrono::milliseconds(*every);
  }
  if (arguments.has("--keep")) {
    options.keep = static_cast<size_t>(arguments.number("--keep", 0, 1, 1000000));
  }
  options.unreachable = arguments.has("--unreachable");
  options.bytes = wants_bytes(arguments);
  options.timeline = read_timeline_interval(arguments);
  options.responsible = read_responsible(arguments);
  options.directory = reports::report_directory();
  if (arguments.has("--output")) {
    options.directory = arguments.value("--output");
    make_directory(command, "--output", options.directory);
    // The same directory for programs that are started elsewhere.
    options.settings.push_back("MTRACE_OUTPUT=" + output_setting(options.directory));
  }
  return options;
}

Manual run_manual() {
  return {
      "run",
      "run a program under libmtrace.so",
      "[OPTION]... [--] PROGRAM [ARGUMENT]...",
      kText,
      {{"--every", "-e", "TIME",
        R"(Ask the program and the processes that it started for a report at this interval, as
        memlog report does: 500ms, 10s, 5min (a number alone: seconds).)"},
       {"--keep", "", "N",
        R"(With --every: keep the newest N reports of each process and merge older ones into one, as
        memlog merge does; their sum stays exact.)",
        "", "--every"},
       {"--output", "-o", "DIR", "Directory for reports; created if it does not exist."},
       {"--depth", "", "N",
        R"(Return addresses to keep for each allocation, the innermost, 1 to 256 (default: 256, which
        is nearly every stack to its root).)"},
       {"--signal", "", "NAME",
        R"(Signal that makes the process write a report, for programs that use USR1 themselves:
        USR2, RTMIN+1, none.)"},
       {"--follow", "", "1|0|GLOB[:GLOB]",
        R"(Which started programs to trace: 1 all (default), 0 none, or those whose name matches a
        pattern; a pattern applies to PROGRAM, too.)"},
       {"--sample", "", "BYTES",
        "Record one allocation per this many bytes on average, instead of every one."},
       {"--events", "", "",
        R"(Write every allocation and free to PROGRAM-PID.events, beside the reports. memlog events
        prints it, memlog report --from makes the report of any moment. Takes longer, and a file
        that grows with the run. Blocks have numbers in place of addresses, times are whole
        milliseconds.)",
        "", "", "--sample"},
       {"--events=full", "", "",
        R"(The same with the address of each block and times in steps of 100 ns: for --address,
        lifetimes of microseconds, fragmentation. The log is several times as large.)"},
       {"--events-max", "", "SIZE",
        R"(With --events: keep only the newest files of the log, so that they take about SIZE
        together: 100M, 1G. Each file begins with the live blocks and the sums of all events
        before it, so that its totals are right.)",
        "", "--events", "--to"},
       {"--events-files", "", "N",
        R"(With --events-max: the number of files, default 2. The newest is PROGRAM-PID.events,
        older ones have .old1, .old2 and so on behind their names.)",
        "", "--events-max"},
       {"--to", "", "HOST[:PORT]",
        R"(With --events: send the log to the memlog serve --receive there while the program runs,
        and write no file. Port 7040 unless named; also a URL, https://HOST:PORT. doc/events.md.)",
        "", "--events"},
       needing(kServerTokenOption, "--to"),
       needing(kCaFileOption, "--to"),
       {"--events-drop", "", "",
        R"(With --events: lose events rather than have the program wait for the disk, and count
        them.)",
        "", "--events"},
       {"--free-stacks", "", "", "With --events: keep the call stack of each free, too.", "",
        "--events"},
       {"--cull", "", "TIME",
        R"(With --events: leave out blocks that live shorter, 1ms to 60s. The log counts them by
        stack. memlog strip does the same afterwards.)",
        "", "--events"},
       {"--compress", "", "",
        R"(Compress reports with zstd when their frames are named: PROGRAM-PID-1.memlog.zst. Every
        command of memlog reads them. Otherwise only those of more than 1 MiB.)"},
       {"--no-compress", "", "", "Compress no report."},
       {"--ledger", "", "DIR|none",
        R"(Each process keeps its tables in a file in this directory while it runs, for memlog top
        and memlog recover. none: no file. Default: a directory of this run in memory
        ($XDG_RUNTIME_DIR, else /dev/shm), which is lost when the machine stops.)"},
       {"--timeline", "", "TIME|none",
        R"(Sample what each process holds, its resident memory and its allocations at this interval,
        10ms (default) to 1s, from its ledger. A process that runs for five samples gets a file
        PROGRAM-PID.timeline, which memlog export draws as html and massif. Of a long run the
        resolution is halved again and again, so that the file stays small. none: no samples.)"},
       {"--unreachable", "", "", kExitLookHelp},
       kAfterExitOption,
       needing(kSuppressionsOption, "--unreachable"),
       {"--python", "", "",
        R"(Let Python take each object from malloc (PYTHONMALLOC=malloc), so that objects of up to 512
        bytes are seen with their stacks. Otherwise they are parts of arenas of 1 MiB.)"},
       {"--js", "", "",
        R"(Name JavaScript functions of node: adds --perf-basic-prof and
        --interpreted-frames-native-stack to NODE_OPTIONS. node then writes a file
        /tmp/perf-PID.map for each of its processes.)"},
       {"--java", "", "",
        R"(Name Java methods that are compiled, and keep the frame pointer in them: adds options of
        OpenJDK 17 and later to JAVA_TOOL_OPTIONS. Java says so on standard error, and writes
        /tmp/perf-PID.map at its end.)"},
       {"--quiet", "-q", "", "Print no summary."},
       kBytesOption,
       {"--keep-status", "", "",
        R"(End with the program's status also when a report, event log or timeline could not be written
        in full.)"},
       kLibraryOption,
       kOwnOption},
      R"(that of the program, but 1 if that is 0 and something could not be written in full, which
      standard error then says (--keep-status: 0); 127 if it is not found, 126 if it cannot be run; 1 if libmtrace.so is
      not found or the receiver of --to does not answer; 2 if the command line is wrong.)",
      R"(  memlog run ./app --config x
  memlog run --every 10s --output /tmp/reports -- ./app -v
  memlog run --follow 'worker*' -- make test
  memlog run --unreachable ./app --selftest
)",
      true};
}

std::vector<Option> with_run_options(const std::vector<std::string>& names,
                                     std::vector<Option> others) {
  std::vector<Option> options;
  for (const Option& option : run_manual().options) {
    if (std::find(names.begin(), names.end(), option.name) != names.end()) {
      options.push_back(option);
    }
  }
  options.insert(options.end(), others.begin(), others.end());
  return options;
}

std::string ledger_place(const std::string& command, const std::string& path) {
  make_directory(command, "--ledger", path);
  return std::filesystem::canonical(path);
}

std::vector<pid_t> named_processes(const Arguments& arguments, const Streams& streams, bool& good) {
  if (arguments.operands().empty()) {
    throw UsageError(arguments.lacking("no process given"));
  }
  std::vector<pid_t> pids;
  for (const std::string& name : arguments.operands()) {
    const std::vector<pid_t> found = process::find_processes(name);
    if (found.empty()) {
      complain(streams, process::no_process_text(name));
      good = false;
    }
    for (const pid_t pid : found) {
      if (std::find(pids.begin(), pids.end(), pid) == pids.end()) pids.push_back(pid);
    }
  }
  return pids;
}

WatchedProcess::WatchedProcess(const Arguments& arguments, const Streams& streams) {
  const auto attach = [&](pid_t pid) {
    const std::string name = util::escaped(process::process_name(pid), "");
    try {
      attachment_.emplace(pid);
    } catch (const process::AttachError& error) {
      throw std::runtime_error(fmt::format("{} ({}) {}", pid, name, error.what()));
    }
    complain(streams, fmt::format("attached to {} ({}), stopped for {:.1f} ms; detaches at the end",
                                  pid, name, process::in_milliseconds(attachment_->stopped())));
  };
  std::function<void(pid_t)> wanted;
  if (arguments.has("--attach")) wanted = attach;
  target_.emplace(arguments.operands()[0], arguments.command(), wanted);
  if (attachment_) process::catch_interruption();
}

}  // namespace mtrace::cli
