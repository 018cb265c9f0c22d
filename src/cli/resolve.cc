// memlog resolve: fills in functions, source lines and inlined functions.
#include <algorithm>
#include <cstdio>

#include "cli/command.h"
#include "cli/inputs.h"
#include "cli/progress.h"
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

void resolve_file(const std::string& file, const Arguments& arguments,
                  symbolize::Resolver& resolver, const Streams& streams) {
  const std::string before = profile::read_file(file);
  profile::Memlog memlog = profile::read(file == "-" ? "<stdin>" : file, before);
  resolver.resolve(memlog);
  const std::string after = profile::write(memlog);
  const std::string output = arguments.value("--output", file);
  if (output == "-") {
    print(streams, after);
  } else if (output != file || after != before) {
    profile::replace_file(output, after);
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
  int status = kGood;
  Progress progress(files.size());
  for (const std::string& file : files) {
    progress.step();
    try {
      resolve_file(file, arguments, resolver, streams);
    } catch (const profile::FormatError& error) {
      if (!quiet) std::fprintf(streams.err, "%s\n", error.what());
      status = kUnusable;
    } catch (const std::exception& error) {
      if (!quiet) complain(streams, error.what());
      status = std::max<int>(status, kFailed);
    }
  }
  return status;
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
