// memlog resolve: fills in functions, source lines and inlined functions.
#include "cli/command.h"
#include "cli/inputs.h"
#include "profile/error.h"
#include "profile/file.h"
#include "profile/reader.h"
#include "profile/writer.h"
#include "symbolize/resolver.h"

namespace mtrace::cli {
namespace {

constexpr char kText[] =
    "Gives each frame of the reports what is known about it: function, source file and line, and "
    "the functions that the compiler inlined there. Names of C++ and Rust are demangled. A report "
    "is replaced at once or not at all; one that is resolved already may be resolved again, and "
    "gains what is known by now.\n\n"
    "For each module, its file is opened and compared with the build-id in the report. If the "
    "file has changed since, its frames keep (module+offset) and a note says so. Debugging "
    "information may stand in the file itself or apart: in the directories named by --symbols, "
    "beside the file, in its .debug directory and below /usr/lib/debug; by build-id, by debuglink, "
    "and in .gnu_debugdata. Servers are asked only where DEBUGINFOD_URLS names some, for at most "
    "DEBUGINFOD_TIMEOUT seconds (10 if unset) without an answer.\n\n"
    "Code that a runtime compiled is named from /tmp/perf-PID.map if the report was taken on this "
    "machine since it was started.";

struct Outcome {
  int status = kGood;
  void worse(int other) { status = status > other ? status : other; }
};

void write_to(const std::string& output, const std::string& content, const Streams& streams) {
  if (output == "-") {
    print(streams, content);
  } else {
    profile::replace_file(output, content);
  }
}

int run_resolve(const Arguments& arguments, const Streams& streams) {
  const std::vector<std::string>& files = arguments.operands();
  const bool quiet = arguments.has("--quiet");
  if (files.empty()) throw UsageError("resolve: no file given");
  if (arguments.has("--output") && files.size() != 1) {
    throw UsageError("resolve: --output takes exactly one file");
  }
  symbolize::Resolver resolver(search_path(arguments));
  Outcome outcome;
  for (const std::string& file : files) {
    try {
      profile::Memlog memlog = profile::read_path(file);
      resolver.resolve(memlog);
      const std::string output = arguments.value("--output", file);
      write_to(output, profile::write(memlog), streams);
    } catch (const profile::FormatError& error) {
      if (!quiet) std::fprintf(streams.err, "%s\n", error.what());
      outcome.worse(kUnusable);
    } catch (const std::exception& error) {
      if (!quiet) complain(streams, error.what());
      outcome.worse(kFailed);
    }
  }
  return outcome.status;
}

}  // namespace

const Command& resolve_command() {
  static const Command command = {
      {"resolve",
       "fill functions, lines and inlined functions into reports",
       "[--sysroot DIR] [--symbols DIR]... FILE...\n[OPTION]... -o FILE|- FILE",
       kText,
       {kSysrootOption,
        kSymbolsOption,
        {"--output", "-o", "FILE",
         "Write there instead of replacing the report; - is the standard output."},
        {"--quiet", "-q", "", "Say nothing; the exit status tells."}},
       "0: done, also if some frames stay without a name; 1: a file cannot be read or replaced; "
       "2: a file is not a proper memlog (and stays as it is), or the command line is wrong.",
       "  memlog resolve app-4711-2.memlog\n"
       "  memlog resolve --sysroot /srv/image --symbols ./debug -o - app-4711-2.memlog\n"},
      run_resolve};
  return command;
}

}  // namespace mtrace::cli
