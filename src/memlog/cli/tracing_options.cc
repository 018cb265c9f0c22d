#include "cli/tracing_options.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "collect/catalog.h"
#include "format/memlog.h"
#include "target/process.h"
#include "text/quantity.h"

namespace mtrace::cli {
namespace {

constexpr char kText[] =
    "Runs PROGRAM as it would run by itself, with libmtrace.so preloaded: its arguments, standard "
    "streams, signals and exit status stay what they are. Signals that memlog gets are passed on; "
    "a program that a signal killed ends memlog by the same signal. Options end where the program "
    "begins.\n\n"
    "When the program has ended, standard error has its peak, what was live at exit and the five "
    "largest stacks of that. What is live at exit is not all leaked: nobody has looked whether it "
    "could still be reached.\n\n"
    "While they run, the program and what it starts have their tables in files, which memlog top "
    "reads, and go at a normal end. When one was killed its file is kept, and standard error says "
    "how memlog recover makes a report of it.\n\n"
    "The library is looked for beside memlog, then where it is installed. Variables of the "
    "environment (memlog help options) are in force as far as no option here replaces them. "
    "Programs that are statically linked or set-uid run as always; a message says that they are "
    "not traced. So do those of another libc (musl) or word size, which are run without the "
    "library in LD_PRELOAD.";

void make_directory(const std::string& command, const std::string& path) {
  const auto refuse = [&](const char* why) {
    throw UsageError(fmt::format("{}: --output {}: {}", command, path, why));
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

}  // namespace

RunOptions read_run_options(const Arguments& arguments) {
  RunOptions options;
  const std::string& command = arguments.command();
  options.quiet = arguments.has("--quiet");
  if (arguments.has("--depth")) {
    options.settings.push_back(
        fmt::format("MTRACE_DEPTH={}", arguments.number("--depth", 10, 1, format::kMaxDepth)));
  }
  if (arguments.has("--signal")) {
    const std::string name = arguments.value("--signal");
    if (!target::signal_number(name)) {
      throw UsageError(
          fmt::format("{}: --signal {} is not a signal that can be caught", command, name));
    }
    options.settings.push_back("MTRACE_SIGNAL=" + name);
  }
  if (arguments.has("--follow")) {
    if (arguments.value("--follow").empty()) throw UsageError(command + ": --follow is empty");
    options.settings.push_back("MTRACE_FOLLOW=" + arguments.value("--follow"));
  }
  if (arguments.has("--sample")) {
    const auto size = text::read_size(arguments.value("--sample"));
    if (!size || *size == 0) {
      throw UsageError(fmt::format("{}: --sample {} is not a size like 4096 or 512K", command,
                                   arguments.value("--sample")));
    }
    options.settings.push_back(fmt::format("MTRACE_SAMPLE={}", *size));
  }
  if (arguments.has("--every")) {
    const auto every = text::read_duration(arguments.value("--every"), 1000);
    constexpr uint64_t kLeast = 100;
    constexpr uint64_t kMost = 31536000000;
    if (!every || *every < kLeast || *every > kMost) {
      throw UsageError(fmt::format("{}: --every {} is not a time from 100ms to 365d, like 10s",
                                   command, arguments.value("--every")));
    }
    options.every = std::chrono::milliseconds(*every);
  }
  options.directory = collect::report_directory();
  if (arguments.has("--output")) {
    options.directory = arguments.value("--output");
    make_directory(command, options.directory);
    options.settings.push_back("MTRACE_OUTPUT=" + options.directory);
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
        "Ask the program, and those that it has started, for a report every so often: 500ms, "
        "10s, 5min (a number alone: seconds). They are asked as memlog report does."},
       {"--output", "-o", "DIR", "Directory for reports; made if there is none."},
       {"--depth", "", "N", "Return addresses kept for each allocation, 1 to 128."},
       {"--signal", "", "NAME",
        "Signal that writes a report, for programs that use USR1 themselves: USR2, RTMIN+1, "
        "none."},
       {"--follow", "", "1|0|GLOB[:GLOB]",
        "Programs that this one starts: all (as without the option), none, or those whose name "
        "matches a pattern, this one included."},
       {"--sample", "", "BYTES",
        "Record an allocation for every so many bytes on average instead of each."},
       {"--ledger", "", "DIR|none",
        "Directory in which each process has its tables in a file while it runs, for memlog "
        "top and memlog recover. Without the option one of this run's own in memory "
        "($XDG_RUNTIME_DIR, else /dev/shm), which does not outlive the machine; none: no file."},
       {"--quiet", "-q", "", "No summary."}},
      "that of the program; 127 or 126 if it is not there or cannot be run; 1 if there is no "
      "library; 2 if the command line is wrong.",
      "  memlog run ./app --config x\n"
      "  memlog run --every 10s --output /tmp/reports -- ./app -v\n"
      "  memlog run --follow 'worker*' -- make test\n",
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

std::string ledger_place(const std::string& path) {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::canonical(path, error);
  if (error || !std::filesystem::is_directory(place)) {
    throw UsageError(fmt::format("--ledger {}: not a directory", path));
  }
  return place;
}

}  // namespace mtrace::cli
